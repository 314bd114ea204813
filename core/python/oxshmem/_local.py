"""Local operands of calls: memory of this process, or of its GPU, as other libraries show it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from . import _oxshmem
from .errors import ArgumentError, DTypeError, Unsupported

# Kinds of devices of DLPack whose memory the CPU loads and stores: its own, page-locked, and managed by CUDA.
_CPU_KINDS = (1, 3, 13)
_GPU_KIND = 2
_CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
_LETTERS = {code: letter for letter, code in _CODES.items()}
_BFLOAT16 = 4


class Local(NamedTuple):
    """Memory that a call reads or writes, of which the elements lie one after the other."""

    address: int
    size: int
    dtype: np.dtype[Any]
    on_gpu: bool
    # Keeps the memory.
    owner: Any

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize


def dlpack_type(dtype: np.dtype[Any]) -> tuple[int, int, int]:
    """DLPack's code, bits and lanes of a type."""
    if dtype.name == "bfloat16":
        return (_BFLOAT16, 16, 1)
    if dtype.kind not in _CODES or not dtype.isnative:
        raise DTypeError(f"{dtype} is no type of DLPack's; give numbers in this machine's byte order", call="__dlpack__")
    return (_CODES[dtype.kind], 8 * dtype.itemsize, 1)


def _dtype_of(data_type: tuple[int, int, int], call: str) -> np.dtype[Any]:
    code, bits, lanes = data_type
    if code == _BFLOAT16 and bits == 16 and lanes == 1:
        try:
            import ml_dtypes  # type: ignore[import-not-found, unused-ignore]
        except ImportError:
            raise DTypeError(f"{call}: a tensor of bfloat16, for which numpy needs the package ml_dtypes: pip install ml_dtypes", call=call) from None
        bfloat16: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
        return bfloat16
    if code not in _LETTERS or lanes != 1 or bits % 8:
        raise DTypeError(f"{call}: a tensor of DLPack's type {code} with {bits} bits and {lanes} lanes; give one of numpy's types", call=call)
    return np.dtype(f"{_LETTERS[code]}{bits // 8}")


def _is_contiguous(shape: Any, strides: Any, itemsize: int = 1) -> bool:
    """Whether elements lie one after the other, with strides in units of an element's ``itemsize``."""
    if strides is None or 0 in shape:
        return True
    expected = itemsize
    for length, stride in zip(reversed(shape), reversed(strides)):
        if length != 1 and stride != expected:
            return False
        expected *= length
    return True


def _refuse_strides(call: str) -> ArgumentError:
    return ArgumentError(
        f"{call}: the array's elements do not lie one after the other; make a contiguous copy first", call=call, what="not contiguous"
    )


def _by_cuda_interface(value: Any, call: str, synchronize: Any) -> Local:
    shown = value.__cuda_array_interface__
    shape, dtype = tuple(shown["shape"]), np.dtype(shown["typestr"])
    if shown.get("mask") is not None:
        raise ArgumentError(f"{call}: a masked array; give its data", call=call, what="masked")
    if not _is_contiguous(shape, shown.get("strides"), dtype.itemsize):
        raise _refuse_strides(call)
    stream = shown.get("stream")
    if stream is not None and synchronize is not None:
        synchronize(stream)
    return Local(int(shown["data"][0]), int(np.prod(shape, dtype=np.int64)), dtype, True, (value, shown))


def _by_dlpack(value: Any, call: str, writable: bool, stream: int | None) -> Local:
    kind, _ = value.__dlpack_device__()
    on_gpu = kind == _GPU_KIND
    if not on_gpu and kind not in _CPU_KINDS:
        raise Unsupported(f"{call}: a tensor on a device of DLPack's kind {kind}; copy it to the CPU or a CUDA GPU first", call=call)
    given = {} if not on_gpu or stream is None else {"stream": stream}
    try:
        capsule = value.__dlpack__(max_version=(1, 0), **given)
    except TypeError:
        # A library of an older version.
        capsule = value.__dlpack__(**given)
    tensor = _oxshmem.dlpack_import(capsule)
    if writable and tensor.is_read_only:
        raise ArgumentError(f"{call}: the tensor is read-only; give one that may be written", call=call, what="read-only")
    if not _is_contiguous(tensor.shape, tensor.strides):
        raise _refuse_strides(call)
    size = int(np.prod(tensor.shape, dtype=np.int64))
    return Local(tensor.address, size, _dtype_of(tensor.data_type, call), on_gpu, (value, tensor))


def of_numpy(array: np.ndarray[Any, Any], given: Any = None) -> Local:
    """A contiguous array of numpy's, and the object that it was made of."""
    return Local(array.__array_interface__["data"][0], array.size, array.dtype, False, (array, given))


def _check_type(found: np.dtype[Any], dtype: np.dtype[Any], call: str) -> None:
    if found != dtype:
        raise DTypeError(f"{call}: the local array has elements of {found}, and the symmetric one of {dtype}; convert by astype({str(dtype)!r})", call=call)


def _foreign(value: Any, call: str, writable: bool, stream: int | None, synchronize: Any) -> Local | None:
    """An array of another library than numpy."""
    if hasattr(value, "__cuda_array_interface__"):
        return _by_cuda_interface(value, call, synchronize)
    if hasattr(value, "__dlpack__") and hasattr(value, "__dlpack_device__"):
        return _by_dlpack(value, call, writable, stream)
    return None


def source(value: Any, dtype: np.dtype[Any], call: str, stream: int | None = None, synchronize: Any = None) -> Local:
    """The source of a put. Lists and numbers become elements of the type; arrays must have it."""
    if isinstance(value, np.ndarray):
        _check_type(value.dtype, dtype, call)
        return of_numpy(np.ascontiguousarray(value), value)
    found = _foreign(value, call, False, stream, synchronize)
    if found is None:
        array = np.asarray(value)
        # A buffer or an array of a third library has a type of its own; a list or a number takes the wanted one.
        if hasattr(value, "__array_interface__") or hasattr(value, "__array__") or isinstance(value, (bytes, bytearray, memoryview)):
            if isinstance(value, (bytes, bytearray)):
                array = np.frombuffer(value, dtype=np.uint8)
            _check_type(array.dtype, dtype, call)
        else:
            array = np.asarray(value, dtype=dtype)
        return of_numpy(np.ascontiguousarray(array), value)
    _check_type(found.dtype, dtype, call)
    return found


def destination(value: Any, dtype: np.dtype[Any], call: str, stream: int | None = None, synchronize: Any = None) -> Local:
    """The destination of a get."""
    if isinstance(value, np.ndarray):
        _check_type(value.dtype, dtype, call)
        if not value.flags.writeable:
            raise ArgumentError(f"{call}: the array is read-only; give one that may be written", call=call, what="read-only")
        if not value.flags.c_contiguous:
            raise _refuse_strides(call)
        return of_numpy(value)
    found = _foreign(value, call, True, stream, synchronize)
    if found is None:
        array = np.asarray(memoryview(value)) if isinstance(value, (bytearray, memoryview)) else None
        if array is None:
            raise ArgumentError(f"{call}: {type(value).__name__} is no array that can be written; give one of numpy's", call=call, what="no array")
        return destination(array, dtype, call)
    _check_type(found.dtype, dtype, call)
    if not found.on_gpu and _is_immutable(value):
        raise ArgumentError(f"{call}: {type(value).__name__} is read-only; give an array that may be written", call=call, what="read-only")
    return found


def _is_immutable(value: Any) -> bool:
    """Whether a library's array is never written, though its tensor of DLPack does not say so, as JAX's."""
    if not hasattr(value, "__array__"):
        return False
    try:
        return not np.asarray(value).flags.writeable
    except Exception:  # A type that numpy does not have, such as torch's bfloat16.
        return False
