"""Symmetric arrays as numpy's arrays, and their lives."""

import pickle

import numpy as np
import pytest

import oxshmem
from oxshmem import errors


def test_an_array_of_zeros_is_numpys(world):
    x = world.zeros((3, 4), "float32")
    assert isinstance(x, np.ndarray) and isinstance(x, oxshmem.SymmetricArray)
    assert x.shape == (3, 4) and x.dtype == np.float32 and not x.any()
    assert x.ctypes.data % 64 == 0
    x[1] = 5
    assert x.sum() == 20 and isinstance(x.sum(), np.floating)
    memory = memoryview(x)
    assert memory.format == "f" and memory[1, 2] == 5.0
    x.free()


def test_the_same_place_on_every_pe(world, right, left):
    x = world.zeros((4, 5), "int32")
    for row in range(4):
        world.put(x[row], np.full(5, 10 * world.my_pe + row, "int32"), right)
    world.barrier_all()
    assert (x == 10 * left + np.arange(4)[:, None]).all()
    x.free()


def test_views_are_symmetric_and_copies_are_not(world, right):
    x = world.zeros(10, "int64")
    world.put(x[2:4].reshape(2, 1), [[1], [2]], right)
    world.put(x.view("uint64")[5:6], np.array([9], "uint64"), right)
    world.barrier_all()
    assert list(x) == [0, 0, 1, 2, 0, 9, 0, 0, 0, 0]
    for private in (x.copy(), x + 1, np.zeros(10, "int64"), [0] * 10):
        with pytest.raises(errors.NotSymmetric, match=r"put: .*world\.zeros"):
            world.put(private, x, right)
    assert type(x + 1) is np.ndarray
    same = x
    x += 1
    assert x is same and isinstance(x, oxshmem.SymmetricArray)
    x.free()


def test_columns_and_blocks_are_put_as_runs(world, right, left):
    x = world.zeros((4, 6), "float64")
    world.put(x[:, 1], np.arange(4) + 100.0 * world.my_pe, right)
    world.put(x[:, 3:5], np.full((4, 2), 7.0), right)
    world.barrier_all()
    assert (x[:, 1] == np.arange(4) + 100.0 * left).all() and (x[:, 3:5] == 7).all()
    assert not x[:, [0, 2, 5]].any()
    assert (world.get(x[:, 1], right) == np.arange(4) + 100.0 * world.my_pe).all()
    with pytest.raises(errors.Unsupported, match="equal runs"):
        world.put(x.reshape(2, 2, 6)[:, :1, ::2], np.zeros((2, 1, 3)), right)
    with pytest.raises(errors.Unsupported, match="equal runs"):
        world.put(x[::-1], np.zeros((4, 6)), right)
    x.free()


def test_structures_and_text_are_elements_too(world, right, left):
    kind = np.dtype([("place", "f8", 3), ("mass", "f4"), ("kind", "i4")])
    x = world.zeros(2, kind)
    mine = np.zeros(2, kind)
    mine["mass"], mine["kind"] = 1.5, world.my_pe
    world.put(x, mine, right)
    world.barrier_all()
    assert (x["kind"] == left).all() and (x["mass"] == 1.5).all()
    x.free()
    with pytest.raises(errors.ArgumentError, match="Python's objects"):
        world.zeros(1, object)
    with pytest.raises(errors.ArgumentError, match="have no bytes"):
        world.zeros(1, "S")


def test_arrays_without_elements(world, right):
    x = world.zeros((0, 3), "int64")
    world.put(x, np.zeros((0, 3), "int64"), right)
    assert world.get(x, right).shape == (0, 3)
    x.free()


def test_empty_and_array(world):
    x = world.empty(3, "int16")
    assert x.shape == (3,)
    y = world.array([[world.my_pe, 2.0]])
    assert y.shape == (1, 2) and y[0, 0] == world.my_pe
    assert world.get(y, (world.my_pe + 1) % world.n_pes)[0, 0] == (world.my_pe + 1) % world.n_pes
    world.sync_all()
    x.free()
    y.free()


def test_a_freed_array_is_refused(world, right):
    x = world.zeros(4, "int64")
    part = x[1:2]
    x.free()
    assert x.is_freed and part.is_freed
    for call in (
        lambda: world.put(x, [1] * 4, right), lambda: world.get(part, right), lambda: world.atomic_inc(part, right),
        lambda: world.wait_until(part, "==", 0), x.free,
    ):  # fmt: skip
        with pytest.raises(errors.Stale, match="was freed") as raised:
            call()
        assert raised.value.offset >= 0
    # Its memory is mapped still: no access of numpy's disturbs anything.
    assert part.shape == (1,) and int(part[0]) is not None


def test_a_part_is_not_freed(world):
    x = world.zeros(4)
    with pytest.raises(errors.NotABlock, match="the array that the allocation gave"):
        x[1:].free()
    x.reshape(2, 2).free()
    assert x.is_freed


def test_a_block_ends_its_array(world):
    with world.zeros(4) as x:
        x[:] = 3
    assert x.is_freed
    with pytest.raises(ZeroDivisionError), world.zeros(4) as y:
        1 / 0
    assert not y.is_freed
    y.free()


def test_the_heap_is_reused(world):
    before = world.zeros(1000)
    offset = before._block.offset
    before.free()
    after = world.zeros(1000)
    assert after._block.offset == offset
    after.free()


def test_too_much_memory_is_an_error_on_all(world):
    with pytest.raises(errors.OutOfMemory) as raised:
        world.zeros(2 * world.heap_limit, "int8")
    assert isinstance(raised.value, MemoryError)
    assert raised.value.bytes == 2 * world.heap_limit and raised.value.limit == world.heap_limit and raised.value.why
    x = world.zeros(1)
    x.free()


def test_pickle_makes_an_ordinary_copy(world):
    x = world.zeros(3, "int64")
    x[:] = [1, 2, 3]
    copy = pickle.loads(pickle.dumps(x))
    assert type(copy) is np.ndarray and list(copy) == [1, 2, 3]
    x.free()


def test_peers_copies_where_memory_is_mapped(world, right, left):
    x = world.zeros(3, "int64")
    there = x.peer(right)
    if world.my_pe == right or there is not None:
        assert there is not None
        there[:] = [1, 2, world.my_pe]
        world.barrier_all()
        assert list(x) == [1, 2, left]
    else:
        world.barrier_all()
    x.free()
