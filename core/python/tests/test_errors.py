"""Exceptions."""

import pickle

import pytest

import oxshmem
from oxshmem import errors


def test_each_class_is_listed_and_is_an_error():
    for name in errors.__all__:
        assert issubclass(getattr(errors, name), oxshmem.Error)


def test_fields_survive_pickle():
    error = errors.PeerLost("put: PE 3 is lost", call="put", pe=3)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is errors.PeerLost and str(again) == str(error) and (again.call, again.pe) == ("put", 3)


def test_the_librarys_own_errors_have_its_fields(world):
    # Past the checks of Python's side.
    x = world.zeros(8, "uint8")
    core = oxshmem._world._oxshmem
    with pytest.raises(errors.OutOfRange) as raised:
        core.put(world._job, 0, x._block, 6, 0, 3, 0)
    assert (raised.value.call, raised.value.start, raised.value.end, raised.value.len) == ("put", 6, 9, 8)
    with pytest.raises(errors.NoSuchPe) as raised:
        core.put(world._job, 0, x._block, 0, x.ctypes.data, 4, 99)
    assert (raised.value.call, raised.value.pe, raised.value.size) == ("put", 99, world.n_pes)
    with pytest.raises(errors.Misaligned) as raised:
        core.atomic(world._job, 0, "fetch", x._block, 1, 4, 0, 0, 0)
    assert raised.value.align == 4 and raised.value.offset % 4 == 1
    x.free()


def test_a_second_world_is_refused(world):
    with pytest.raises(errors.AlreadyJoined, match="joined its job already"):
        oxshmem.init()


def test_wrong_settings():
    with pytest.raises(errors.ArgumentError, match="auto, cpu and nic"):
        oxshmem.init(atomics="gpu")
    with pytest.raises(errors.ArgumentError, match="timeout=-1"):
        oxshmem.init(timeout=-1.0)
    with pytest.raises(TypeError):
        oxshmem.init(heap=3)
