"""Symmetric arrays: of numpy in host memory, and on the GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from . import _local, _oxshmem
from .errors import ArgumentError, Foreign, NotABlock, NotSymmetric, Unsupported

if TYPE_CHECKING:
    from ._world import World

_GPU_KIND = 2


class Place(NamedTuple):
    """The place of a symmetric array: `runs` runs of `run` bytes, each `stride` bytes after the one before, in a block."""

    block: _oxshmem.Block
    offset: int
    run: int
    runs: int
    stride: int

    @property
    def nbytes(self) -> int:
        return self.run * self.runs

    @property
    def is_whole(self) -> bool:
        return self.runs == 1


def _runs(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int, call: str) -> tuple[int, int, int]:
    """The bytes of a run, the number of runs, and their stride in bytes."""
    if 0 in shape:
        return (0, 1, 0)
    run, dimensions = itemsize, [(n, s) for n, s in zip(shape, strides) if n != 1]
    while dimensions and dimensions[-1][1] == run:
        run *= dimensions.pop()[0]
    if not dimensions:
        return (run, 1, run)
    count, stride = dimensions.pop()
    while dimensions and dimensions[-1][1] == count * stride:
        count *= dimensions.pop()[0]
    if dimensions or stride < run:
        raise Unsupported(
            f"{call}: a view with shape {shape} and strides {strides} is no sequence of equal runs; call it for each row, or use a contiguous array",
            call=call,
        )
    return (run, count, stride)


class SymmetricArray(np.ndarray):
    """A numpy array in this PE's symmetric heap. :meth:`World.zeros` makes them.

    It is an array as any other. Its views (``x[2:5]``, ``x.reshape(...)``) name the same places on every PE; copies and the results of
    arithmetic are ordinary arrays. It lasts until :meth:`free`, or until the world ends; Python's forgetting it frees nothing, because that would
    have to happen on all PEs at once.
    """

    _block: _oxshmem.Block | None
    _world: World | None
    # The place that a call has found, with the shape, strides and type for which it holds.
    _found: tuple[Any, Any, Any, Place] | None

    def __array_finalize__(self, of: Any) -> None:
        self._block = getattr(of, "_block", None)
        self._world = getattr(of, "_world", None)
        self._found = None

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        if array is self:
            return self
        plain = np.asarray(array)
        return plain[()] if plain.ndim == 0 else plain

    def __reduce__(self) -> Any:
        return np.array(self, subok=False).__reduce__()

    @property
    def world(self) -> World:
        """The world that it belongs to."""
        _, world = _owner(self, "world")
        return world

    @property
    def is_freed(self) -> bool:
        """Whether its memory was freed."""
        return self._block is not None and self._block.is_freed

    def free(self) -> None:
        """Gives the memory back. Collective: all PEs free the same array."""
        self.world.free(self)

    def peer(self, pe: int) -> np.ndarray[Any, Any] | None:
        """PE ``pe``'s copy of it for direct loads and stores; None where this process does not map that PE's memory.

        Order such accesses by fences, barriers or waits.
        """
        place = place_of(self, "peer")
        if not place.is_whole:
            raise ArgumentError("peer: the view's elements do not lie one after the other; take the peer's copy of the whole array", call="peer")
        mapped = self.world._ptr(place, pe)
        return None if mapped is None else np.asarray(mapped).view(self.dtype).reshape(self.shape)

    def __enter__(self) -> SymmetricArray:
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        # The other PEs may not come to free it: after an exception it is left to the end of the world.
        if kind is None and not self.is_freed:
            self.free()


class GpuArray:
    """A symmetric array on this PE's GPU. :meth:`World.zeros` makes them with ``device="gpu"``.

    Other libraries use it by ``__cuda_array_interface__`` and DLPack: ``cupy.asarray(x)``, ``torch.from_dlpack(x)``. Its parts (``x[2:5]``) are
    such arrays, too.
    """

    def __init__(self, world: World, block: _oxshmem.Block, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self._world, self._block, self._offset = world, block, offset
        self._found: tuple[Any, Any, Any, Place] | None = None
        self.shape, self.strides, self.dtype = shape, strides, dtype

    @property
    def world(self) -> World:
        """The world that it belongs to."""
        return self._world

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    @property
    def ptr(self) -> int:
        """The address of this PE's copy on its GPU."""
        return self._block.address + self._offset

    @property
    def is_freed(self) -> bool:
        """Whether its memory was freed."""
        return self._block.is_freed

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an array without dimensions")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"GpuArray(shape={self.shape}, dtype={self.dtype}, ptr={self.ptr:#x})"

    def _like(self) -> np.ndarray[Any, Any]:
        # Never read: it has the shape and the strides alone.
        return np.lib.stride_tricks.as_strided(np.empty(1, self.dtype), self.shape, self.strides)

    def __getitem__(self, index: Any) -> GpuArray:
        like = self._like()
        part = like[index if isinstance(index, tuple) else (index,)]
        if not isinstance(part, np.ndarray):
            # One element.
            part = like[(*(index if isinstance(index, tuple) else (index,)), ...)]
        if part.base is None:
            raise ArgumentError("a list of indices makes a copy; give numbers and slices", call="__getitem__")
        begin = part.__array_interface__["data"][0] - like.__array_interface__["data"][0]
        return GpuArray(self._world, self._block, self._offset + begin, part.shape, part.strides, self.dtype)

    def reshape(self, *shape: Any) -> GpuArray:
        """The same elements in another shape."""
        self._check_contiguous("reshape")
        like = np.empty(0, self.dtype) if self.size == 0 else np.lib.stride_tricks.as_strided(np.empty(1, np.uint8), (self.size,), (0,))
        new = like.reshape(*shape).shape
        strides, step = [], self.dtype.itemsize
        for length in reversed(new):
            strides.append(step)
            step *= length
        return GpuArray(self._world, self._block, self._offset, new, tuple(reversed(strides)), self.dtype)

    def _check_contiguous(self, call: str) -> None:
        if not _local._is_contiguous(self.shape, self.strides, self.dtype.itemsize):
            raise ArgumentError(f"{call}: the view's elements do not lie one after the other", call=call)

    def get(self) -> np.ndarray[Any, Any]:
        """A copy in host memory."""
        copy: np.ndarray[Any, Any] = self._world.get(self, self._world.my_pe)
        return copy

    def set(self, value: Any) -> None:
        """Copies elements into this PE's copy."""
        if np.ndim(value) == 0 and not hasattr(value, "__dlpack__"):
            value = np.full(self.shape, value, self.dtype)
        self._world.put(self, value, self._world.my_pe)
        self._world.quiet()

    def free(self) -> None:
        """Gives the memory back. Collective: all PEs free the same array."""
        self._world.free(self)

    def peer(self, pe: int) -> PeerGpuArray | None:
        """PE ``pe``'s copy of it for kernels of this PE's GPU; None where that does not reach the PE's memory."""
        place = place_of(self, "peer")
        if not place.is_whole:
            raise ArgumentError("peer: the view's elements do not lie one after the other; take the peer's copy of the whole array", call="peer")
        mapped = self._world._ptr(place, pe)
        return None if mapped is None else PeerGpuArray(mapped, self.shape, self.strides, self.dtype, self._world._gpu_number())

    def __enter__(self) -> GpuArray:
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        if kind is None and not self.is_freed:
            self.free()

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        place_of(self, "__cuda_array_interface__")
        return _interface(self.ptr, self.shape, self.strides, self.dtype)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (_GPU_KIND, self._world._gpu_number())

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None) -> Any:
        place_of(self, "__dlpack__")
        return _capsule(self, self.ptr, self.shape, self.strides, self.dtype, self.__dlpack_device__(), max_version, dl_device, copy)


class PeerGpuArray:
    """A peer's copy of an array on a GPU, for kernels of this PE's GPU."""

    def __init__(self, mapped: _oxshmem.Mapped, shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype[Any], gpu: int) -> None:
        self._mapped, self._gpu = mapped, gpu
        self.shape, self.strides, self.dtype = shape, strides, dtype

    @property
    def ptr(self) -> int:
        """The address for this PE's GPU."""
        return self._mapped.address

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return _interface(self.ptr, self.shape, self.strides, self.dtype)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (_GPU_KIND, self._gpu)

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None) -> Any:
        return _capsule(self, self.ptr, self.shape, self.strides, self.dtype, self.__dlpack_device__(), max_version, dl_device, copy)


def _interface(address: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype[Any]) -> dict[str, Any]:
    whole = _local._is_contiguous(shape, strides, dtype.itemsize)
    shown = {"shape": shape, "typestr": dtype.str, "data": (address, False), "version": 3, "strides": None if whole else strides}
    if dtype.names is not None:
        shown["descr"] = dtype.descr
    return shown


def _capsule(owner: Any, address: int, shape: Any, strides: Any, dtype: np.dtype[Any], device: tuple[int, int], max_version: Any, wanted: Any, copy: Any) -> Any:
    if copy:
        raise BufferError("a symmetric array is not copied by __dlpack__; copy it by the other library")
    if wanted is not None and tuple(wanted) != device:
        raise BufferError(f"the array is on device {device} of DLPack, not {tuple(wanted)}; use get() for a copy in host memory")
    if any(stride % dtype.itemsize for stride in strides):
        raise BufferError("strides that are no whole elements")
    in_elements = [stride // dtype.itemsize for stride in strides]
    versioned = max_version is not None and max_version[0] >= 1
    return _oxshmem.dlpack_export(owner, address, list(shape), in_elements, _local.dlpack_type(dtype), device, versioned)


def _owner(array: Any, call: str) -> tuple[_oxshmem.Block, World]:
    block, world = getattr(array, "_block", None), getattr(array, "_world", None)
    if block is None or world is None:
        raise NotSymmetric(
            f"{call}: {type(array).__name__} is not in symmetric memory; give an array of world.zeros(), or a view of one", call=call
        )
    return block, world


def place_of(array: Any, call: str, world: World | None = None) -> Place:
    """The place of a symmetric array, and the check that it is one, of this world, and lives."""
    block, of = _owner(array, call)
    if world is not None and of is not world:
        raise Foreign(f"{call}: the array belongs to another world; use the one that allocated it", call=call)
    if block.is_freed:
        raise _stale(call, block)
    shape, strides, dtype = array.shape, array.strides, array.dtype
    found: tuple[Any, Any, Any, Place] | None = array._found
    if found is not None and found[2] is dtype and found[0] == shape and found[1] == strides:
        return found[3]
    run, count, stride = _runs(shape, strides, dtype.itemsize, call)
    if isinstance(array, GpuArray):
        offset = array._offset
    else:
        offset = array.__array_interface__["data"][0] - block.address
        extent = run + (count - 1) * stride if run else 0
        if offset < 0 or offset + extent > block.nbytes:
            raise NotSymmetric(f"{call}: this array is a copy, in private memory; give an array of world.zeros(), or a view of one", call=call)
    place = Place(block, offset, run, count, stride)
    array._found = (shape, strides, dtype, place)
    return place


def _stale(call: str, block: _oxshmem.Block) -> Exception:
    from .errors import Stale

    return Stale(f"{call}: the array at offset {block.offset} was freed; drop its views when you free it", call=call, offset=block.offset)


def block_of(array: Any, call: str, world: World) -> _oxshmem.Block:
    """The block of an array that is all of it."""
    place = place_of(array, call, world)
    if place.offset != 0 or place.nbytes != place.block.nbytes:
        raise NotABlock(f"{call}: this is a part of an array; give the array that the allocation gave", call=call)
    return place.block
