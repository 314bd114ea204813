"""Atomics and locks."""

import numpy as np
import pytest

from oxshmem import errors

WORDS = ["int32", "int64", "uint32", "uint64"]


@pytest.mark.parametrize("dtype", WORDS)
def test_every_pe_counts_on_pe_0(world, dtype):
    count = world.zeros(2, dtype)
    seen = [int(world.atomic_fetch_inc(count[:1], 0)) for _ in range(20)]
    assert seen == sorted(set(seen))
    for _ in range(20):
        world.atomic_inc(count[1:], 0)
        world.atomic_add(count[1:], 2, 0)
    world.barrier_all()
    assert world.atomic_fetch(count[:1], 0) == 20 * world.n_pes
    assert world.atomic_fetch(count[1:], 0) == 60 * world.n_pes
    assert world.atomic_fetch(count[1:], 0).dtype == np.dtype(dtype)
    world.barrier_all()
    count.free()


@pytest.mark.parametrize("dtype", WORDS)
def test_each_operation(world, right, dtype):
    x = world.zeros(1, dtype)
    world.atomic_set(x, 12, right)
    world.fence()
    assert world.atomic_swap(x, 10, right) == 12
    assert world.atomic_compare_swap(x, 11, 1, right) == 10
    assert world.atomic_compare_swap(x, 10, 0b1100, right) == 10
    assert world.atomic_fetch_add(x, 3, right) == 0b1100
    assert world.atomic_fetch_and(x, 0b0111, right) == 0b1111
    assert world.atomic_fetch_or(x, 0b1000, right) == 0b0111
    assert world.atomic_fetch_xor(x, 0b0001, right) == 0b1111
    world.atomic_and(x, 0b0110, right)
    world.fence()
    world.atomic_or(x, 0b0001, right)
    world.fence()
    world.atomic_xor(x, 0b0011, right)
    world.quiet()
    assert world.atomic_fetch(x, right) == 0b0100
    if np.dtype(dtype).kind == "i":
        world.atomic_set(x, -5, right)
        world.fence()
        assert world.atomic_fetch_add(x, -1, right) == -5
        assert world.atomic_fetch(x, right) == -6
    world.barrier_all()
    x.free()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_floats_are_set_and_swapped(world, right, dtype):
    x = world.zeros(1, dtype)
    world.atomic_set(x, 1.25, right)
    world.fence()
    assert world.atomic_swap(x, -0.5, right) == 1.25
    assert world.atomic_fetch(x, right) == -0.5
    with pytest.raises(errors.DTypeError, match="give one of int32, int64"):
        world.atomic_add(x, 1.0, right)
    world.barrier_all()
    x.free()


def test_nonblocking_atomics(world, right):
    x, old = world.zeros(1, "int64"), np.full(8, -1, "int64")
    world.atomic_set(x, 5, right)
    world.quiet()
    world.atomic_fetch_nbi(x, right, old[0:1])
    world.quiet()
    world.atomic_swap_nbi(x, 6, right, old[1:2])
    world.quiet()
    world.atomic_compare_swap_nbi(x, 6, 7, right, old[2:3])
    world.quiet()
    world.atomic_fetch_add_nbi(x, 1, right, old[3:4])
    world.quiet()
    world.atomic_fetch_inc_nbi(x, right, old[4:5])
    world.quiet()
    world.atomic_fetch_and_nbi(x, 8, right, old[5:6])
    world.quiet()
    world.atomic_fetch_or_nbi(x, 1, right, old[6:7])
    world.quiet()
    world.atomic_fetch_xor_nbi(x, 1, right, old[7:8])
    world.quiet()
    assert list(old) == [5, 5, 6, 7, 8, 9, 8, 9]
    assert world.atomic_fetch(x, right) == 8
    world.barrier_all()
    x.free()


def test_wrong_words(world, right):
    x = world.zeros(2, "int64")
    with pytest.raises(errors.ArgumentError, match=r"words\[i:i \+ 1\]"):
        world.atomic_inc(x, right)
    y = world.zeros(1, "int16")
    with pytest.raises(errors.DTypeError, match="int16"):
        world.atomic_inc(y, right)
    with pytest.raises(OverflowError):
        world.atomic_add(x[:1], 2**70, right)
    x.free()
    y.free()


def test_a_lock_excludes_other_pes(world):
    lock, count = world.zeros(1, "int64"), world.zeros(1, "int64")
    for _ in range(20):
        with world.lock(lock):
            world.p(count, world.g(count, 0) + 1, 0)
    world.barrier_all()
    assert world.g(count, 0) == 20 * world.n_pes
    world.barrier_all()
    if world.my_pe == 0:
        assert world.test_lock(lock)
        with pytest.raises(errors.ArgumentError, match="has the lock already"):
            world.set_lock(lock)
    world.barrier_all()
    if world.my_pe != 0:
        assert not world.test_lock(lock)
    world.barrier_all()
    if world.my_pe == 0:
        world.clear_lock(lock)
    world.barrier_all()
    lock.free()
    count.free()
