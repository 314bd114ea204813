"""The world of a run: all PEs run all tests, in the same order."""

import os
import sys

import numpy as np
import pytest

import oxshmem

sys.path.insert(0, os.path.dirname(__file__))


@pytest.fixture(scope="session")
def world():
    """The world, until the last test has ended."""
    with oxshmem.init() as world:
        yield world


@pytest.fixture
def right(world):
    """The PE after this one."""
    return (world.my_pe + 1) % world.n_pes


@pytest.fixture
def left(world):
    """The PE before this one."""
    return (world.my_pe - 1) % world.n_pes


@pytest.fixture(autouse=True)
def _together(request):
    # No PE begins a test while another one is in the test before.
    yield
    if "world" in request.fixturenames:
        world = request.getfixturevalue("world")
        if world.is_live:
            world.barrier_all()


@pytest.fixture
def elements():
    """Some elements of any type of numbers."""

    def make(dtype, count, seed=1):
        values = (np.arange(count) * 7 + seed) % 100
        return values.astype(dtype)

    return make
