"""Waits and tests."""

import numpy as np
import pytest

from oxshmem import errors


@pytest.mark.parametrize("dtype", ["int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_wait_until(world, right, dtype):
    x = world.zeros(1, dtype)
    assert not world.test(x, "!=", 0)
    world.sync_all()
    world.p(x, 7, right)
    world.wait_until(x, "==", 7)
    for cmp, value in (("==", 7), ("!=", 6), (">", 6), (">=", 7), ("<", 8), ("<=", 7)):
        world.wait_until(x, cmp, value)
        assert world.test(x, cmp, value)
    world.sync_all()
    if np.dtype(dtype).kind == "i":
        world.p(x, -3, right)
        world.wait_until(x, "<", 0)
        assert world.test(x, "==", -3)
    world.barrier_all()
    x.free()


def test_sets_of_words(world):
    me, n = world.my_pe, world.n_pes
    flags = world.zeros(n, "int64")
    for pe in range(n):
        world.p(flags[me : me + 1], me + 1, pe)
    world.wait_until_all(flags, ">", 0)
    world.wait_until_all(flags, "==", np.arange(1, n + 1))
    assert world.test_all(flags, "==", np.arange(1, n + 1))
    assert world.wait_until_some(flags, ">=", 1) == list(range(n))
    assert world.test_some(flags, "==", 1) == [0]
    assert world.test_some(flags, "==", 99) == []
    assert world.test_any(flags, "==", 99) is None
    assert not world.test_all(flags, "==", 99)
    seen = np.zeros(n, bool)
    while (found := world.wait_until_any(flags, ">", 0, skip=seen)) is not None:
        assert not seen[found]
        seen[found] = True
    assert seen.all()
    assert world.wait_until_some(flags, ">", 0, skip=seen) == []
    world.barrier_all()
    flags.free()


def test_wrong_waits(world):
    x = world.zeros(2, "float64")
    with pytest.raises(errors.DTypeError, match="float64"):
        world.wait_until(x[:1], "==", 1)
    y = world.zeros(2, "int64")
    with pytest.raises(errors.ArgumentError, match="==, !=, >, >=, < and <="):
        world.test(y[:1], "=", 0)
    with pytest.raises(errors.ArgumentError, match="one for all or one for each"):
        world.test_all(y, "==", [1, 2, 3])
    with pytest.raises(errors.ArgumentError, match="skip has 1"):
        world.test_all(y, "==", 1, skip=[True])
    with pytest.raises(OverflowError):
        world.test(y[:1], "==", 2**64)
    x.free()
    y.free()
