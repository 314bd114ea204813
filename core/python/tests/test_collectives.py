"""Collective calls."""

import numpy as np
import pytest

from oxshmem import errors

INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
FLOATS = ["float16", "float32", "float64"]
COMPLEX = ["complex64", "complex128"]


def of(pe, count, dtype):
    return ((np.arange(count) + pe) % 3 + 1).astype(dtype)


@pytest.mark.parametrize("dtype", ["int8", "int16", "float32", "float64", "complex128", "S3"])
def test_movement_of_each_width(world, dtype):
    me, n = world.my_pe, world.n_pes

    def mine(pe, count):
        values = of(pe, count, "int64")
        return values.astype("S1").astype(dtype) if dtype == "S3" else values.astype(dtype)

    src, dst, big = world.zeros(5, dtype), world.zeros(5, dtype), world.zeros(5 * n, dtype)
    for root in range(n):
        src[:] = mine(me + root, 5)
        dst[:] = mine(1000, 5)
        world.barrier_all()
        world.broadcast(dst, src, root)
        assert (dst == mine(root + root, 5)).all()
    src[:] = mine(me, 5)
    world.fcollect(big, src)
    assert (big.reshape(n, 5) == np.stack([mine(pe, 5) for pe in range(n)])).all()
    world.barrier_all()
    lengths = [pe % 6 for pe in range(n)]
    assert world.collect(big, src[: lengths[me]]) == sum(lengths)
    assert (big[: sum(lengths)] == np.concatenate([mine(pe, 5)[: lengths[pe]] for pe in range(n)])).all()
    world.barrier_all()
    out = world.zeros(5 * n, dtype)
    big[:] = np.concatenate([mine(me * n + pe, 5) for pe in range(n)])
    world.alltoall(out, big)
    assert (out == np.concatenate([mine(pe * n + me, 5) for pe in range(n)])).all()
    for made in (src, dst, big, out):
        made.free()


def test_alltoalls(world):
    me, n = world.my_pe, world.n_pes
    src, dst = world.zeros(4 * n, "int32"), world.zeros(6 * n, "int32")
    src[:] = np.arange(4 * n) + 1000 * me
    world.alltoalls(dst, src, 3, 2, 2)
    for pe in range(n):
        got = dst[6 * pe : 6 * pe + 6 : 3]
        assert list(got) == [1000 * pe + 4 * me, 1000 * pe + 4 * me + 2]
    src.free()
    dst.free()


@pytest.mark.parametrize("dtype", INTEGERS + FLOATS + COMPLEX)
@pytest.mark.parametrize("op", ["sum", "prod", "min", "max", "and", "or", "xor"])
def test_reductions(world, dtype, op):
    me, n = world.my_pe, world.n_pes
    if (op in ("and", "or", "xor") and dtype not in INTEGERS) or (op in ("min", "max") and dtype in COMPLEX):
        src = world.zeros(1, dtype)
        with pytest.raises(errors.ArgumentError):
            world.reduce(src, src, op)
        src.free()
        return
    ufunc = {"sum": np.add, "prod": np.multiply, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}[op]
    with np.errstate(all="ignore"):
        all_of = np.stack([of(pe, 12 * n, dtype) for pe in range(n)])
        expected = ufunc.reduce(all_of, axis=0, dtype=dtype)
    src, dst = world.zeros(12 * n, dtype), world.zeros(12 * n, dtype)
    src[:] = of(me, 12 * n, dtype)
    world.reduce(dst, src, op)
    assert (dst == expected).all()
    part = world.zeros(12, dtype)
    world.reduce_scatter(part, src, op)
    assert (part == expected[12 * me : 12 * me + 12]).all()
    if op == "sum":
        world.inscan(dst, src)
        assert (dst == all_of[: me + 1].sum(axis=0, dtype=dtype)).all()
        world.exscan(dst, src)
        assert (dst == all_of[:me].sum(axis=0, dtype=dtype)).all()
    for made in (src, dst, part):
        made.free()


def test_bool_is_for_logic(world):
    src, dst = world.zeros(3, bool), world.zeros(3, bool)
    src[world.my_pe % 3] = True
    world.reduce(dst, src, "or")
    assert dst.sum() == min(3, world.n_pes)
    world.reduce(dst, src, "and")
    assert dst.any() == (world.n_pes == 1)
    with pytest.raises(errors.DTypeError, match="bool"):
        world.reduce(dst, src)
    src.free()
    dst.free()


def test_in_place(world):
    x = world.array(np.full(1000, world.my_pe + 1.0))
    world.reduce(x, x)
    assert (x == sum(range(1, world.n_pes + 1))).all()
    x.free()


def test_wrong_arguments_are_errors_on_all(world):
    x, y = world.zeros(4), world.zeros(5)
    with pytest.raises(errors.ArgumentError, match="sizes|the destination has 4"):
        world.reduce(x, y)
    with pytest.raises(errors.ArgumentError, match="the destination has 5"):
        world.fcollect(y, x[:3] if world.n_pes != 1 else x)
    with pytest.raises(errors.NoSuchPe):
        world.broadcast(x, y[:4], world.n_pes)
    with pytest.raises(errors.ArgumentError, match="sum, prod, min"):
        world.reduce(x, x, "mean")
    with pytest.raises(errors.NotSymmetric):
        world.reduce(x, np.zeros(4))
    # The calls go on after that.
    world.reduce(x, y[:4])
    x.free()
    y.free()


def test_a_mismatch_is_told_on_every_pe(world):
    if world.n_pes == 1:
        pytest.skip("one PE agrees with itself")
    x = world.zeros(4)
    with pytest.raises(errors.CollectiveMismatch) as raised:
        if world.my_pe == 0:
            world.reduce(x, x, "sum")
        else:
            world.reduce(x, x, "max")
    assert raised.value.call.startswith("reduce") and "PE" in raised.value.detail
    world.reduce(x, x)
    x.free()


def test_one_pes_fault_is_told_to_the_others(world):
    if world.n_pes == 1:
        pytest.skip("there is no other")
    x, freed = world.zeros(4), world.zeros(4)
    bytes_ = world.zeros(64, "uint8")
    freed.free()
    for wrong, error in (
        (lambda: world.reduce(x, np.zeros(4)), errors.NotSymmetric),
        (lambda: world.reduce(x, freed), errors.Stale),
        (lambda: world.reduce(x, x, "mean"), errors.ArgumentError),
        (lambda: world.reduce(bytes_[1:33].view("float64"), x), errors.Misaligned),
        (lambda: world.fcollect(x[:3], x), errors.ArgumentError),
        (lambda: world.alltoalls(x, x, 0, 1, 1), errors.ArgumentError),
    ):
        if world.my_pe == 1:
            with pytest.raises(error):
                wrong()
        else:
            with pytest.raises(errors.CollectiveMismatch, match="PE 1 gave a bad argument"):
                world.reduce(x, x)
    world.reduce(x, x)
    x.free()
    bytes_.free()
