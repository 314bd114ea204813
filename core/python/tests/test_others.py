"""Arrays of torch, JAX and CuPy, where these are installed. What needs a GPU is skipped without one that they can use."""

import gc

import numpy as np
import pytest

from oxshmem import errors


def test_torchs_tensors_on_the_cpu(world, right, left):
    torch = pytest.importorskip("torch")
    x = world.zeros((4, 5), "float32")
    # The same memory, by either way.
    for ours in (torch.from_numpy(x), torch.from_dlpack(x)):
        ours.fill_(world.my_pe)
        assert (x == world.my_pe).all() and ours.data_ptr() == x.ctypes.data
    world.barrier_all()
    world.put(x, torch.full((4, 5), 0.5 + world.my_pe), right)
    world.barrier_all()
    assert (x == 0.5 + left).all()
    out = torch.zeros((4, 5))
    assert world.get(x, right, out=out) is out and (out == 0.5 + world.my_pe).all()
    world.barrier_all()
    for _ in range(3):
        world.put_nbi(x, torch.full((4, 5), 7.0 + world.my_pe), right)
    gc.collect()
    world.quiet()
    world.barrier_all()
    assert (x == 7 + left).all()
    world.reduce(x, x, "max")
    assert (torch.from_numpy(x) == 6 + world.n_pes).all()
    with pytest.raises(errors.DTypeError, match="float64"):
        world.put(x, torch.zeros((4, 5), dtype=torch.float64), right)
    with pytest.raises(errors.ArgumentError, match="one after the other"):
        world.put(x, torch.zeros((5, 4)).T, right)
    x.free()


def test_torchs_bfloat16(world, right, left):
    torch = pytest.importorskip("torch")
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = world.zeros(100, ml_dtypes.bfloat16)
    world.put(x, torch.full((100,), 1.5 + world.my_pe, dtype=torch.bfloat16), right)
    world.barrier_all()
    assert (x.astype("float32") == 1.5 + left).all()
    out = torch.zeros(100, dtype=torch.bfloat16)
    world.get(x, right, out=out)
    assert (out == 1.5 + world.my_pe).all()
    world.barrier_all()
    world.reduce(x, x)
    assert x[0] == ml_dtypes.bfloat16(sum(1.5 + pe for pe in range(world.n_pes)))
    x.free()


def test_gradients_by_torch(world):
    torch = pytest.importorskip("torch")
    # Each PE has other data; the mean of the gradients is that of all data.
    weight = torch.ones(3, requires_grad=True)
    data = torch.arange(3.0) + world.my_pe
    (weight * data).sum().backward()
    gradient = world.array(weight.grad)
    world.reduce(gradient, gradient)
    weight.grad.copy_(torch.from_numpy(gradient) / world.n_pes)
    assert torch.allclose(weight.grad, torch.arange(3.0) + (world.n_pes - 1) / 2)
    gradient.free()


def test_jaxs_arrays(world, right, left):
    jax = pytest.importorskip("jax")
    x = world.zeros(10, "float32")
    world.put(x, jax.numpy.full(10, 2.5 + world.my_pe), right)
    world.barrier_all()
    assert (jax.numpy.asarray(x) == 2.5 + left).all()
    with pytest.raises(errors.ArgumentError, match="read-only"):
        world.get(x, right, out=jax.numpy.zeros(10))
    world.barrier_all()
    x.free()


def test_torch_on_the_gpu(world, right, left):
    torch = pytest.importorskip("torch")
    if world.gpu is None or not torch.cuda.is_available():
        pytest.skip("torch has no GPU here, or the job no GPU heap")
    x = world.zeros(1000, "float32", device="gpu")
    ours = torch.from_dlpack(x)
    assert ours.data_ptr() == x.ptr and ours.is_cuda
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        mine = torch.full((1000,), 1.0 + world.my_pe, device="cuda")
        world.put_on_stream(x, mine, right, stream)
        world.barrier_all_on_stream(stream)
        world.synchronize(stream)
    assert (ours == 1 + left).all()
    world.put(x, torch.full((1000,), 3.0, device="cuda"), right)
    world.barrier_all()
    assert (ours == 3).all()
    assert (world.get(x, right, out=torch.zeros(1000, device="cuda")) == 3).all()
    world.barrier_all()
    x.free()


def test_cupy(world, right, left):
    cupy = pytest.importorskip("cupy")
    try:
        usable = cupy.cuda.runtime.getDeviceCount() > 0
    except Exception:  # noqa: BLE001 - without a driver CuPy raises what it likes
        usable = False
    if world.gpu is None or not usable:
        pytest.skip("CuPy has no GPU here, or the job no GPU heap")
    x = world.zeros(1000, "float32", device="gpu")
    ours = cupy.asarray(x)
    assert ours.data.ptr == x.ptr
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        mine = cupy.full(1000, 1 + world.my_pe, "float32")
        world.put_on_stream(x, mine, right, stream)
        world.barrier_all_on_stream(stream)
        world.synchronize(stream)
    assert (ours == 1 + left).all()
    world.put(x, cupy.full(1000, 3, "float32"), right)
    world.barrier_all()
    assert (x.get() == 3).all()
    world.barrier_all()
    x.free()


def test_numpys_own_dlpack(world, right, left):
    x = world.zeros(6, "int64")
    same = np.from_dlpack(x)
    assert same.ctypes.data == x.ctypes.data
    x[:] = world.my_pe
    assert (same == world.my_pe).all()

    class Lent:
        """An array by DLPack alone."""

        def __init__(self, array):
            self.array = array

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

        def __dlpack__(self, **given):
            return self.array.__dlpack__(**given)

    class Old(Lent):
        """The same of a library that knows no versions."""

        def __dlpack__(self):
            return self.array.__dlpack__()

    world.barrier_all()
    for kind in (Lent, Old):
        world.put(x, kind(np.arange(6) + 10 * world.my_pe), right)
        world.barrier_all()
        assert (x == np.arange(6) + 10 * left).all()
        world.barrier_all()
        out = np.zeros(6, "int64")
        world.get(x, right, out=kind(out))
        assert (out == np.arange(6) + 10 * world.my_pe).all()
    frozen = np.zeros(6, "int64")
    frozen.flags.writeable = False
    with pytest.raises((errors.ArgumentError, BufferError)):
        world.get(x, right, out=Lent(frozen))
    with pytest.raises(errors.ArgumentError, match="one after the other"):
        world.put(x, Lent(np.arange(12)[::2]), right)
    with pytest.raises(TypeError):
        from oxshmem import _oxshmem

        _oxshmem.dlpack_import("no capsule")
    world.barrier_all()
    x.free()


def test_lent_tensors_are_given_back(world, right):
    import weakref

    class Owner(np.ndarray):
        pass

    x = world.zeros(5)
    owner = np.zeros(5).view(Owner)
    seen = weakref.ref(owner)

    class Lent:
        def __init__(self, array):
            self.array = array

        def __dlpack_device__(self):
            return (1, 0)

        def __dlpack__(self, **given):
            return self.array.__dlpack__(**given)

    world.put(x, Lent(owner), right)
    del owner
    gc.collect()
    assert seen() is None
    world.barrier_all()
    x.free()
