"""Arrays on the GPU, and calls on streams."""

import ctypes
import os

import numpy as np
import pytest

import oxshmem
from gpu import Driver, Memory
from oxshmem import _oxshmem, errors


@pytest.fixture(scope="module")
def driver(world):
    if world.gpu is None:
        pytest.skip("no GPU heap: set OXSHMEM_CUDA_SYMMETRIC_SIZE")
    return Driver(world.gpu)


@pytest.fixture(scope="module")
def stream(world, driver):
    # Where this PE's GPU does not reach the others, calls on streams need the device library.
    if "TEST_DEVICE_LIBRARY" in os.environ:
        world.open_device_library(teams=4)
    return driver.stream()


def test_without_a_heap_the_error_says_how(world):
    if world.gpu is not None:
        pytest.skip("there is a GPU heap")
    with pytest.raises(errors.GpuError, match="gpu_heap_size"):
        world.zeros(3, device="gpu")
    with pytest.raises(errors.GpuError, match="gpu_heap_size"):
        world.synchronize(0)
    world.barrier_all()


def test_an_array_on_the_gpu(world, driver):
    x = world.zeros((3, 4), "float32", device="gpu")
    assert isinstance(x, oxshmem.GpuArray) and x.shape == (3, 4) and x.size == 12 and x.nbytes == 48 and len(x) == 3 and x.ndim == 2
    assert not x.get().any()
    x.set(np.arange(12, dtype="float32").reshape(3, 4))
    assert (x.get() == np.arange(12).reshape(3, 4)).all()
    assert (x[1].get() == [4, 5, 6, 7]).all() and (x[1:, 2:].get() == [[6, 7], [10, 11]]).all() and x[2, 3].get() == 11
    assert (x.reshape(4, 3)[3].get() == [9, 10, 11]).all() and (x.reshape(-1)[-1:].get() == [11]).all()
    x[1].set(0)
    assert x.get().sum() == 66 - 22
    with pytest.raises(IndexError):
        x[3]
    with pytest.raises(errors.ArgumentError, match="numbers and slices"):
        x[[0, 1]]
    x.free()
    with pytest.raises(errors.Stale):
        x.get()
    with pytest.raises(errors.Stale):
        x.__cuda_array_interface__


def test_other_libraries_see_it(world, driver):
    x = world.array(np.arange(6, dtype="int32").reshape(2, 3), device="gpu")
    shown = x.__cuda_array_interface__
    assert shown["shape"] == (2, 3) and shown["typestr"] == "<i4" and shown["version"] == 3 and shown["strides"] is None
    out = np.empty(6, "int32")
    driver.call("cuMemcpyDtoH_v2", ctypes.c_void_p(out.ctypes.data), ctypes.c_uint64(shown["data"][0]), ctypes.c_size_t(24))
    assert list(out) == list(range(6))
    assert x[:, 1:].__cuda_array_interface__["strides"] == (12, 4)
    assert x.__dlpack_device__() == (2, world.gpu)
    for versions in ({}, {"max_version": (1, 0)}):
        tensor = _oxshmem.dlpack_import(x.__dlpack__(**versions))
        assert (tensor.address, tensor.shape, tensor.strides, tensor.data_type) == (x.ptr, [2, 3], [3, 1], (0, 32, 1))
        assert tensor.device == (2, world.gpu)
    with pytest.raises(BufferError):
        x.__dlpack__(copy=True)
    with pytest.raises(BufferError):
        x.__dlpack__(dl_device=(1, 0))
    with pytest.raises(errors.GpuMemory):
        np.asarray(x._block)
    world.barrier_all()
    x.free()


@pytest.mark.parametrize("dtype", ["int8", "float16", "int64", "complex128"])
@pytest.mark.parametrize("count", [1, 1000, 100_000])
def test_put_and_get_in_any_combination(world, right, left, driver, elements, dtype, count):
    host, gpu, gpu2 = world.zeros(count, dtype), world.zeros(count, dtype, device="gpu"), world.zeros(count, dtype, device="gpu")
    mine, theirs = elements(dtype, count, world.my_pe), elements(dtype, count, left)
    # From host memory, from symmetric GPU memory, and from a program's own GPU memory.
    world.put(gpu, mine, right)
    world.barrier_all()
    assert (gpu.get() == theirs).all()
    assert (world.get(gpu, right) == mine).all()
    world.barrier_all()
    world.put(gpu2, gpu, right)
    world.put(host, gpu, right)
    world.barrier_all()
    twice = elements(dtype, count, (left - 1) % world.n_pes)
    assert (gpu2.get() == twice).all() and (host == twice).all()
    world.barrier_all()
    own = Memory(driver, mine)
    world.put(gpu, own, right)
    world.put(host, own, right)
    world.barrier_all()
    assert (gpu.get() == theirs).all() and (host == theirs).all()
    # To each of them.
    into = Memory(driver, np.zeros(count, dtype))
    world.get(gpu, right, out=into)
    assert (into.get() == mine).all()
    into = Memory(driver, np.zeros(count, dtype))
    world.get(host, right, out=into)
    assert (into.get() == mine).all()
    assert world.get(host, right, out=gpu2) is gpu2 and (gpu2.get() == mine).all()
    world.barrier_all()
    for made in (host, gpu, gpu2):
        made.free()


def test_tensors_of_dlpack_on_the_gpu(world, right, left, driver, stream):
    class Tensor:
        """As torch's: DLPack alone."""

        def __init__(self, memory):
            self.memory = memory
            self.streams = []

        def __dlpack_device__(self):
            return (2, world.gpu)

        def __dlpack__(self, *, stream=None, max_version=None):
            self.streams.append(stream)
            return _oxshmem.dlpack_export(self.memory, self.memory.pointer.value, [4], [1], (2, 64, 1), (2, world.gpu), max_version is not None)

    x = world.zeros(4, "float64", device="gpu")
    tensor = Tensor(Memory(driver, np.full(4, 1.5 + world.my_pe)))
    world.put(x, tensor, right)
    world.barrier_all()
    assert (x.get() == 1.5 + left).all() and tensor.streams[-1] == world._own_stream()
    number = driver.stream()
    world.put_on_stream(x, tensor, right, number)
    world.synchronize(number)
    assert tensor.streams[-1] == number
    world.barrier_all()
    x.free()


def test_atomics_signals_and_p(world, right, left, driver):
    words, signal = world.zeros(2, "int64", device="gpu"), world.zeros(1, "uint64")
    data = world.zeros(100, "float32", device="gpu")
    world.atomic_add(words[:1], 5, 0)
    world.p(words[1:], 9, right)
    world.put_signal(data, np.full(100, world.my_pe, "float32"), signal, 1, right)
    assert world.signal_wait_until(signal, "==", 1) == 1
    assert (data.get() == left).all()
    world.barrier_all()
    assert world.atomic_fetch(words[:1], 0) == 5 * world.n_pes and world.g(words[1:], right) == 9
    with pytest.raises(errors.GpuMemory, match="GPU memory"):
        world.wait_until(words[1:], "==", 9)
    world.barrier_all()
    for made in (words, signal, data):
        made.free()


def test_collective_calls(world, driver):
    n = world.n_pes
    x, y = world.array(np.full(1000, world.my_pe + 1.0), device="gpu"), world.zeros(1000)
    world.reduce(y, x)
    assert (y == sum(range(1, n + 1))).all()
    big = world.zeros((n, 1000), device="gpu")
    world.fcollect(big, x)
    assert (big.get()[:, 0] == np.arange(1, n + 1)).all()
    world.broadcast(x, y, n - 1)
    assert (x.get() == y).all()
    for made in (x, y, big):
        made.free()


def test_peers_copies_for_kernels(world, right, driver):
    x = world.zeros(8, "int32", device="gpu")
    there = x.peer(right)
    if there is not None:
        out = np.full(8, world.my_pe + 3, "int32")
        driver.call("cuMemcpyHtoD_v2", ctypes.c_uint64(there.ptr), ctypes.c_void_p(out.ctypes.data), ctypes.c_size_t(32))
        driver.call("cuCtxSynchronize")
        assert there.__cuda_array_interface__["shape"] == (8,)
        world.barrier_all()
        assert (x.get() == (world.my_pe - 1) % world.n_pes + 3).all()
    world.barrier_all()
    x.free()


class OfTorch:
    def __init__(self, handle):
        self.cuda_stream = handle


class OfCupy:
    def __init__(self, handle):
        self.ptr = handle


class OfCudaCore:
    def __init__(self, handle):
        self.handle = handle

    def __cuda_stream__(self):
        return (0, self.handle)


@pytest.mark.parametrize("kind", [int, OfTorch, OfCupy, OfCudaCore])
def test_puts_on_streams(world, right, left, driver, stream, kind):
    stream = kind(stream)
    x, y = world.zeros(1000, "int32", device="gpu"), world.zeros(1000, "int32", device="gpu")
    flag = world.zeros(1, "uint64", device="gpu")
    mine = world.array(np.full(1000, world.my_pe + 1, "int32"), device="gpu")
    world.put_on_stream(x, mine, right, stream)
    world.put_nbi_on_stream(x, mine, right, stream)
    world.quiet_on_stream(stream)
    world.put_signal_on_stream(y, mine, flag, 4, right, stream)
    world.wait_until_on_stream(flag, ">=", 4, stream)
    own = Memory(driver, np.zeros(1000, "int32"))
    world.get_on_stream(y, world.my_pe, own, stream)
    world.signal_on_stream(flag, 1, right, stream, op="add")
    world.wait_until_on_stream(flag, "==", 5, stream)
    world.barrier_all_on_stream(stream)
    world.synchronize(stream)
    assert (x.get() == left + 1).all() and (own.get() == left + 1).all()
    with pytest.raises(errors.Unsupported, match="host memory"):
        world.put_on_stream(x, np.zeros(1000, "int32"), right, stream)
    with pytest.raises(errors.ArgumentError, match="no stream"):
        world.synchronize("a stream")
    world.barrier_all()
    for made in (x, y, flag, mine):
        made.free()


def test_collective_calls_on_streams(world, driver, stream):
    n = world.n_pes
    x = world.array(np.full(100 * n, world.my_pe + 1, "float32"), device="gpu")
    y, part = world.zeros(100 * n, "float32", device="gpu"), world.zeros(100, "float32", device="gpu")
    world.reduce_on_stream(y, x, "max", stream=stream)
    world.reduce_scatter_on_stream(part, x, stream=stream)
    world.synchronize(stream)
    assert (y.get() == n).all() and (part.get() == sum(range(1, n + 1))).all()
    world.alltoall_on_stream(y, x, stream)
    world.synchronize(stream)
    assert (y.get().reshape(n, 100)[:, 0] == np.arange(1, n + 1)).all()
    world.fcollect_on_stream(y, part, stream)
    world.broadcast_on_stream(x, y, 0, stream)
    world.sync_all_on_stream(stream)
    world.synchronize(stream)
    assert (x.get() == sum(range(1, n + 1))).all()
    with pytest.raises(errors.DTypeError):
        world.reduce_on_stream(y, world.zeros(3), stream=stream)
    world.barrier_all()
    for made in (x, y, part):
        made.free()


def test_a_streams_arrays_are_held(world, right, driver, stream):
    import gc
    import weakref

    x = world.zeros(10, "int64", device="gpu")
    own = Memory(driver, np.arange(10))
    seen = weakref.ref(own)
    world.put_on_stream(x, own, right, stream)
    del own
    gc.collect()
    assert seen() is not None
    world.synchronize(stream)
    gc.collect()
    assert seen() is None
    world.barrier_all()
    assert (x.get() == np.arange(10)).all()
    x.free()


def test_the_device_library(world, right, left, driver, stream):
    world.open_device_library(teams=4)
    x = world.zeros(20, "int64", device="gpu")
    mine = world.array(np.arange(10) + 100 * world.my_pe, device="gpu")
    world.iput_on_stream(x, mine, 2, 3, 4, right, stream)
    world.barrier_all_on_stream(stream)
    world.synchronize(stream)
    assert list(x.get()[:8:2]) == [100 * left + i for i in (0, 3, 6, 9)]
    out = world.zeros(8, "int64", device="gpu")
    world.iget_on_stream(x, out, 2, 2, 4, right, stream)
    assert world.g_on_stream(mine[3:], right, stream) == 3 + 100 * right
    world.synchronize(stream)
    assert list(out.get()[::2]) == [100 * world.my_pe + i for i in (0, 3, 6, 9)]
    with world.team.split_list(range(world.n_pes)) as team:
        assert team.device_number() > 0
        team.barrier_on_stream(stream)
        team.reduce_on_stream(out, out, "max", stream=stream)
        team.sync_on_stream(stream)
        world.synchronize(stream)
    flags = world.zeros(world.n_pes, "uint64", device="gpu")
    for pe in range(world.n_pes):
        world.signal_on_stream(flags[world.my_pe : world.my_pe + 1], 2, pe, stream)
    world.wait_until_on_stream(flags, "==", 2, stream)
    world.synchronize(stream)
    assert (flags.get() == 2).all()
    world.barrier_all()
    for made in (x, mine, out, flags):
        made.free()
