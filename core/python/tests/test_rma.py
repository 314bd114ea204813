"""Put, get, strides, nonblocking calls and signals."""

import array
import gc

import numpy as np
import pytest

from oxshmem import errors

TYPES = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64", "complex64", "complex128", "bool"]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("count", [1, 7, 1000, 100_000])
def test_put_and_get_of_each_type(world, right, left, elements, dtype, count):
    x = world.zeros(count, dtype)
    world.put(x, elements(dtype, count, world.my_pe), right)
    world.barrier_all()
    assert (x == elements(dtype, count, left)).all()
    assert (world.get(x, right) == elements(dtype, count, world.my_pe)).all()
    out = np.zeros(count, dtype)
    assert world.get(x, right, out=out) is out and (out == elements(dtype, count, world.my_pe)).all()
    x.free()


def test_sources_of_many_kinds(world, right):
    x = world.zeros(4, "int64")

    def seen():
        world.barrier_all()
        found = list(x)
        world.barrier_all()
        x[:] = 0
        world.barrier_all()
        return found

    world.put(x, [1, 2, 3, 4], right)
    assert seen() == [1, 2, 3, 4]
    world.put(x, 5, right)
    assert seen() == [5] * 4
    world.put(x, np.int64(6), right)
    assert seen() == [6] * 4
    world.put(x, array.array("q", [1, 2, 3, 4]), right)
    assert seen() == [1, 2, 3, 4]
    world.put(x, memoryview(np.arange(4)), right)
    assert seen() == [0, 1, 2, 3]
    world.put(x, np.arange(8)[::2], right)
    assert seen() == [0, 2, 4, 6]
    world.put(x[1:3], (8, 9), right)
    assert seen() == [0, 8, 9, 0]
    y = world.zeros(4, "uint8")
    world.put(y, b"abcd", right)
    world.barrier_all()
    assert bytes(y) == b"abcd"
    out = bytearray(4)
    world.get(y, right, out=out)
    assert out == b"abcd"
    world.barrier_all()
    x[:] = [1, 2, 3, 4]
    z = world.zeros(4, "int64")
    world.put(z, x, right)
    world.barrier_all()
    assert list(z) == [1, 2, 3, 4]
    for made in (x, y, z):
        made.free()


def test_p_and_g(world, right, left):
    x = world.zeros(3, "float32")
    world.p(x[1:], 2.5 + world.my_pe, right)
    world.barrier_all()
    assert world.g(x[1:2], world.my_pe) == 2.5 + left
    assert isinstance(world.g(x[1:2], right), np.float32)
    with pytest.raises(errors.ArgumentError, match="use put"):
        world.p(x, [1, 2], right)
    x.free()


def test_strides(world, right):
    x = world.zeros(20, "int32")
    world.iput(x, np.arange(10, dtype="int32"), 2, 3, 4, right)
    world.iput(x[10:], np.arange(10, dtype="int32"), 4, 3, 2, right, block=2)
    world.barrier_all()
    assert list(x[:8:2]) == [0, 3, 6, 9] and not x[1:8:2].any()
    assert list(x[10:16]) == [0, 1, 0, 0, 3, 4]
    out = np.zeros(8, "int32")
    world.iget(x, out, 2, 2, 4, right)
    assert list(out) == [0, 0, 3, 0, 6, 0, 9, 0]
    with pytest.raises(errors.ArgumentError, match="leave the symmetric array"):
        world.iput(x, np.arange(10, dtype="int32"), 10, 1, 4, right)
    with pytest.raises(errors.ArgumentError, match="local elements are needed"):
        world.iput(x, np.arange(3, dtype="int32"), 1, 1, 4, right)
    with pytest.raises(errors.ArgumentError, match="1 element at least"):
        world.iget(x, out, 0, 1, 4, right)
    x.free()


@pytest.mark.parametrize("count", [1, 1000, 300_000])
def test_nonblocking_calls_hold_their_arrays_until_quiet(world, right, left, count):
    x = world.zeros(count, "int64")
    for _ in range(3):
        # Nobody else refers to the sources.
        world.put_nbi(x, np.full(count, world.my_pe + 1), right)
    gc.collect()
    junk = [np.full(count, -1) for _ in range(4)]
    world.quiet()
    world.sync_all()
    assert (x == left + 1).all()
    outs = [world.get_nbi(x, right) for _ in range(3)]
    world.quiet()
    for out in outs:
        assert (out == world.my_pe + 1).all()
    del junk
    world.sync_all()
    x.free()


def test_a_source_is_given_up_by_quiet(world, right):
    import weakref

    class Source(np.ndarray):
        pass

    x = world.zeros(100_000, "int64")
    source = np.zeros(100_000, "int64").view(Source)
    seen = weakref.ref(source)
    world.put_nbi(x, source, right)
    del source
    gc.collect()
    assert seen() is not None
    world.quiet()
    gc.collect()
    assert seen() is None
    world.barrier_all()
    x.free()


def test_put_with_signal(world, right, left):
    x, signal = world.zeros(1000, "float64"), world.zeros(2, "uint64")
    world.put_signal(x, np.full(1000, world.my_pe + 0.5), signal[:1], 7, right)
    assert world.signal_wait_until(signal[:1], "==", 7) == 7
    assert (x == left + 0.5).all()
    world.sync_all()
    world.put_signal_nbi(x, np.full(1000, world.my_pe + 1.5), signal[1:], 3, right, op="add")
    world.put_signal(x[:0], [], signal[1:], 3, right, op="add")
    assert world.signal_wait_until(signal[1:], ">=", 6) == 6
    assert (x == left + 1.5).all()
    world.signal_set(signal[:1], 1, right)
    world.signal_add(signal[:1], 2, right)
    world.barrier_all()
    assert world.signal_fetch(signal[:1]) in (3, 1)
    x.free()
    signal.free()


def test_fence_orders_puts(world, right, left):
    x, flag = world.zeros(5000, "int64"), world.zeros(1, "int64")
    for round_ in range(1, 6):
        world.put(x, np.full(5000, round_), right)
        world.fence()
        world.p(flag, round_, right)
        world.wait_until(flag, ">=", round_)
        assert (x >= round_).all()
        world.sync_all()
    world.barrier_all()
    x.free()
    flag.free()


def test_wrong_arguments_say_the_mend(world, right):
    x = world.zeros(4, "float64")
    with pytest.raises(errors.DTypeError, match=r"float32.*float64.*astype\('float64'\)"):
        world.put(x, np.zeros(4, "float32"), right)
    with pytest.raises(errors.ArgumentError, match=r"3 local elements for 4 symmetric ones.*x\[:n\]"):
        world.put(x, np.zeros(3), right)
    for pe in (-1, world.n_pes):
        with pytest.raises(errors.NoSuchPe, match="there is no PE") as raised:
            world.put(x, np.zeros(4), pe)
        assert (raised.value.call, raised.value.pe, raised.value.size) == ("put", pe, world.n_pes)
        assert isinstance(raised.value, IndexError)
    with pytest.raises(TypeError):
        world.put(x, np.zeros(4), "a PE")
    frozen = np.zeros(4)
    frozen.flags.writeable = False
    with pytest.raises(errors.ArgumentError, match="read-only"):
        world.get(x, right, out=frozen)
    with pytest.raises(errors.ArgumentError, match="contiguous"):
        world.get(x, right, out=np.zeros(8)[::2])
    with pytest.raises(errors.ArgumentError, match="no array that can be written"):
        world.get(x, right, out=[0] * 4)
    with pytest.raises(errors.DTypeError, match="a signal is one element of uint64"):
        world.put_signal(x, np.zeros(4), x[:1], 1, right)
    with pytest.raises(errors.ArgumentError, match="'set' or 'add'"):
        world.put_signal(x, np.zeros(4), world_signal := world.zeros(1, "uint64"), 1, right, op="mul")
    world_signal.free()
    x.free()
