"""Numpy arrays over symmetric memory, by OpenSHMEM's calls in liboxshmem.

Run with as many PEs as you like: ``oshrun -n 4 python3 ring.py``. The library is found beside the ``oshcc`` on PATH, or
where OXSHMEM_LIBRARY says. Only arrays from :func:`zeros` are symmetric: Python's own variables are each process's, and
the library says so at start.

A call that makes no sense ends the job with a message, as in C; what can be seen here before is an exception.
"""

import ctypes
import functools
import os
import shutil
from ctypes import c_int, c_size_t, c_void_p

import numpy as np

__all__ = [
    "EQ", "NE", "GT", "GE", "LT", "LE", "init", "finalize", "my_pe", "n_pes", "barrier_all", "fence", "quiet", "zeros",
    "free", "put", "get", "atomic_add", "atomic_fetch_add", "wait_until", "reduce", "broadcast", "fcollect",
]

# Comparisons of a word with a value: SHMEM_CMP_EQ and so on.
EQ, NE, GT, GE, LT, LE = range(1, 7)

_WORLD = c_void_p(1)


def _find():
    named = os.environ.get("OXSHMEM_LIBRARY")
    compiler = shutil.which("oshcc")
    if named is None and compiler is not None:
        prefix = os.path.dirname(os.path.dirname(os.path.realpath(compiler)))
        named = os.path.join(prefix, "lib", "liboxshmem.so")
    return named or "liboxshmem.so.0"


_library = ctypes.CDLL(_find())


@functools.lru_cache(maxsize=None)
def _function(name, returns, *arguments):
    function = getattr(_library, name)
    function.restype = returns
    function.argtypes = arguments
    return function


# The library's type names for numpy's types.
_NAMES = {
    "i1": "int8", "i2": "int16", "i4": "int32", "i8": "int64", "u1": "uint8", "u2": "uint16", "u4": "uint32",
    "u8": "uint64", "f4": "float", "f8": "double", "c8": "complexf", "c16": "complexd",
}  # fmt: skip
# The types of atomics and waits.
_WORDS = {"i4": ctypes.c_int32, "i8": ctypes.c_int64, "u4": ctypes.c_uint32, "u8": ctypes.c_uint64}


def _code(array):
    # The library uses the processor's byte order.
    if not array.dtype.isnative:
        raise TypeError(f"{array.dtype} is in another byte order: give array.astype(array.dtype.newbyteorder('='))")
    return array.dtype.str[1:]


def _named(array):
    try:
        return _NAMES[_code(array)]
    except KeyError:
        raise TypeError(f"there are no functions of {array.dtype}") from None


def _word(array):
    code = _code(array)
    if array.size != 1 or code not in _WORDS:
        raise TypeError("one integer of 32 or 64 bits is wanted: give words[i:i + 1]")
    return _named(array), _WORDS[code]


def _address(array):
    if not array.flags.c_contiguous:
        raise ValueError("the array's elements do not lie one after the other")
    return array.ctypes.data


def _matching(dest, source):
    source = np.ascontiguousarray(source, dtype=dest.dtype)
    if source.size != dest.size:
        raise ValueError(f"{source.size} elements for a place of {dest.size}")
    return source


def _done(name, status):
    if status != 0:
        raise RuntimeError(f"{name} failed with status {status}; the library has said why")


def init():
    """Joins the job. Before it no other call is made."""
    _function("shmem_init", None)()


def finalize():
    """Leaves the job, together with all PEs. Symmetric arrays are gone then."""
    _function("shmem_finalize", None)()


def my_pe():
    """This PE's number."""
    return _function("shmem_my_pe", c_int)()


def n_pes():
    """How many PEs there are."""
    return _function("shmem_n_pes", c_int)()


def barrier_all():
    """Waits for all PEs; what was put before, by any of them, is there after."""
    _function("shmem_barrier_all", None)()


def fence():
    """Puts to a PE before it come there before those after it."""
    _function("shmem_fence", None)()


def quiet():
    """Waits until all puts and atomics of this PE have been done."""
    _function("shmem_quiet", None)()


def zeros(shape, dtype=np.float64):
    """A symmetric array of zeros: a collective call, with equal arguments on all PEs.

    It lasts until :func:`free` or :func:`finalize`, not until Python forgets it.
    """
    dtype = np.dtype(dtype)
    count = int(np.prod(shape))
    if count == 0:
        return np.empty(shape, dtype=dtype)
    address = _function("shmem_calloc", c_void_p, c_size_t, c_size_t)(count, dtype.itemsize)
    if address is None:
        raise MemoryError(f"{count * dtype.itemsize} bytes: the symmetric heap has fewer left; see SHMEM_SYMMETRIC_SIZE")
    buffer = (ctypes.c_char * (count * dtype.itemsize)).from_address(address)
    return np.frombuffer(buffer, dtype=dtype).reshape(shape)


def free(array):
    """Gives a whole symmetric array's memory back: a collective call."""
    if array.size > 0:
        _function("shmem_free", None, c_void_p)(_address(array))


def put(dest, source, pe):
    """Copies to a PE's symmetric array, or a slice of it."""
    source = _matching(dest, source)
    call = _function("shmem_putmem", None, c_void_p, c_void_p, c_size_t, c_int)
    call(_address(dest), _address(source), source.nbytes, pe)


def get(source, pe):
    """A copy of a PE's symmetric array, or of a slice of it."""
    copy = np.empty(source.shape, dtype=source.dtype)
    call = _function("shmem_getmem", None, c_void_p, c_void_p, c_size_t, c_int)
    call(_address(copy), _address(source), copy.nbytes, pe)
    return copy


def atomic_add(word, value, pe):
    """Adds to a PE's word, which is an array of one integer."""
    name, c = _word(word)
    _function(f"shmem_{name}_atomic_add", None, c_void_p, c, c_int)(_address(word), value, pe)


def atomic_fetch_add(word, value, pe):
    """The same, and gives what was there before."""
    name, c = _word(word)
    return _function(f"shmem_{name}_atomic_fetch_add", c, c_void_p, c, c_int)(_address(word), value, pe)


def wait_until(word, comparison, value):
    """Waits until this PE's own word compares so with the value (``wait_until(flag, GE, 3)``)."""
    name, c = _word(word)
    _function(f"shmem_{name}_wait_until", None, c_void_p, c_int, c)(_address(word), comparison, value)


def reduce(operation, dest, source):
    """Combines all PEs' symmetric sources, element by element; ``operation`` is sum, prod, max, min, and, or, xor."""
    name = f"shmem_{_named(dest)}_{operation}_reduce"
    if source.dtype != dest.dtype or source.size != dest.size:
        raise ValueError("source and destination differ in type or size")
    call = _function(name, c_int, c_void_p, c_void_p, c_void_p, c_size_t)
    _done(name, call(_WORLD, _address(dest), _address(source), source.size))


def broadcast(dest, source, root):
    """Copies one PE's symmetric source to all PEs' destinations."""
    if source.nbytes != dest.nbytes:
        raise ValueError("source and destination differ in size")
    call = _function("shmem_broadcastmem", c_int, c_void_p, c_void_p, c_void_p, c_size_t, c_int)
    _done("shmem_broadcastmem", call(_WORLD, _address(dest), _address(source), source.nbytes, root))


def fcollect(dest, source):
    """All PEs' symmetric sources, one after the other, in each PE's destination."""
    if dest.nbytes != source.nbytes * n_pes():
        raise ValueError("the destination is not as large as all sources")
    call = _function("shmem_fcollectmem", c_int, c_void_p, c_void_p, c_void_p, c_size_t)
    _done("shmem_fcollectmem", call(_WORLD, _address(dest), _address(source), source.nbytes))
