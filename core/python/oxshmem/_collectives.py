"""Collective calls of a team, by the host and on streams."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Iterator

import numpy as np

from . import _oxshmem
from ._arrays import Place, place_of
from ._streams import handle
from .errors import ArgumentError, DTypeError, Error, NoSuchPe, Unsupported

if TYPE_CHECKING:
    from ._world import World

def _type_name(dtype: np.dtype[Any], op: str, call: str) -> str:
    """The name of an element's type, for a reduction."""
    if not dtype.isnative:
        raise DTypeError(f"{call}: {dtype} is in another byte order; convert by astype(dtype.newbyteorder('='))", call=call)
    if dtype.kind == "b":
        if op in ("sum", "prod"):
            raise DTypeError(f"{call}: elements of bool have no {op}; use 'and', 'or' or 'xor', or integers", call=call)
        return "uint8"
    return dtype.name


class Collectives:
    """The collective calls of a team. Every member makes them, in the same order and with the same arguments."""

    _world: World
    _job: _oxshmem.Job
    _team_number: int

    @property
    def _size(self) -> int:
        raise NotImplementedError

    @contextlib.contextmanager
    def _arguments(self, call: str) -> Iterator[None]:
        # The other members are in the call already, or will be: they get an error, too.
        try:
            yield
        except Error as error:
            _oxshmem.refuse(self._job, call, self._team_number, str(error))
            raise

    def _whole(self, array: Any, call: str) -> Place:
        place = place_of(array, call, self._world)
        if not place.is_whole:
            raise Unsupported(f"{call}: the view's elements do not lie one after the other; give contiguous arrays", call=call)
        return place

    def _both(self, dst: Any, src: Any, call: str) -> tuple[_oxshmem.Block, tuple[int, int], _oxshmem.Block, tuple[int, int]]:
        to, of = self._whole(dst, call), self._whole(src, call)
        if dst.dtype != src.dtype:
            raise DTypeError(f"{call}: elements of {src.dtype} for those of {dst.dtype}; give arrays of one type", call=call)
        return (to.block, (to.offset, to.nbytes), of.block, (of.offset, of.nbytes))

    def _equal(self, dst: Any, src: Any, call: str, dst_times: int = 1, src_times: int = 1) -> None:
        if dst.size * src_times != src.size * dst_times:
            words = f"{call}: the destination has {dst.size} elements, and the source {src.size}"
            raise ArgumentError(f"{words}; with {self._size} PEs give {dst_times} to {src_times}", call=call, what="sizes")

    def _root(self, root: int, call: str) -> int:
        if not 0 <= int(root) < self._size:
            raise NoSuchPe(f"{call}: there is no PE {root}; the PEs are 0 to {self._size - 1}", call=call, pe=int(root), size=self._size)
        return int(root)

    def _sync(self) -> None:
        _oxshmem.sync(self._job, self._team_number)

    def _barrier(self) -> None:
        _oxshmem.barrier(self._job, self._team_number)

    def broadcast(self, dst: Any, src: Any, root: int) -> None:
        """Copies ``src`` of PE ``root`` to ``dst`` of every PE."""
        with self._arguments("broadcast"):
            both = self._both(dst, src, "broadcast")
            self._equal(dst, src, "broadcast")
            root = self._root(root, "broadcast")
        _oxshmem.broadcast(self._job, self._team_number, *both, dst.dtype.itemsize, root)

    def fcollect(self, dst: Any, src: Any) -> None:
        """Copies every PE's ``src`` to all, one after the other: ``dst`` has as many elements for each PE."""
        with self._arguments("fcollect"):
            both = self._both(dst, src, "fcollect")
            self._equal(dst, src, "fcollect", self._size, 1)
        _oxshmem.fcollect(self._job, self._team_number, *both, dst.dtype.itemsize)

    def collect(self, dst: Any, src: Any) -> int:
        """:meth:`fcollect` of any number of elements from each PE. Gives the number of all, which ``dst`` has room for."""
        with self._arguments("collect"):
            both = self._both(dst, src, "collect")
        size = dst.dtype.itemsize
        count = _oxshmem.collect(self._job, self._team_number, *both, size)
        return count if size in (1, 2, 4, 8, 16) else count // size

    def alltoall(self, dst: Any, src: Any) -> None:
        """Gives the i-th part of ``src`` to PE i, whose ``dst`` has a part from each PE."""
        with self._arguments("alltoall"):
            both = self._both(dst, src, "alltoall")
            self._equal(dst, src, "alltoall")
            if dst.size % self._size:
                raise ArgumentError(f"alltoall: {dst.size} elements for {self._size} PEs; give as many for each", call="alltoall", what="sizes")
        _oxshmem.alltoall(self._job, self._team_number, *both, dst.dtype.itemsize)

    def alltoalls(self, dst: Any, src: Any, dst_stride: int, src_stride: int, count: int) -> None:
        """:meth:`alltoall` of ``count`` elements for each PE, which lie at strides (in elements)."""
        with self._arguments("alltoalls"):
            both = self._both(dst, src, "alltoalls")
            if min(dst_stride, src_stride) < 1 or count < 0:
                raise ArgumentError("alltoalls: strides are 1 element at least, and the count is 0 at least", call="alltoalls", what="strides")
        _oxshmem.alltoalls(self._job, self._team_number, *both, dst.dtype.itemsize, (dst_stride, src_stride, count))

    def _fold(self, call: str, dst: Any, src: Any, op: str, times: int = 1) -> None:
        with self._arguments(call):
            both = self._both(dst, src, call)
            self._equal(dst, src, call, 1, times)
            name = _type_name(dst.dtype, op, call)
        _oxshmem.reduce(self._job, call, self._team_number, *both, name, op)

    def reduce(self, dst: Any, src: Any, op: str = "sum") -> None:
        """Folds every PE's ``src``, element by element, to ``dst`` of all. ``op``: sum, prod, min, max, and, or, xor."""
        self._fold("reduce", dst, src, op)

    def reduce_scatter(self, dst: Any, src: Any, op: str = "sum") -> None:
        """:meth:`reduce` of which PE i gets the i-th part."""
        self._fold("reduce_scatter", dst, src, op, self._size)

    def inscan(self, dst: Any, src: Any, op: str = "sum") -> None:
        """Folds the ``src`` of the PEs up to this one."""
        self._fold("inscan", dst, src, op)

    def exscan(self, dst: Any, src: Any, op: str = "sum") -> None:
        """Folds the ``src`` of the PEs before this one."""
        self._fold("exscan", dst, src, op)

    # On streams.

    def _barrier_on_stream(self, stream: Any) -> None:
        _oxshmem.barrier_on_stream(self._job, self._team_number, handle(stream))

    def _sync_on_stream(self, stream: Any) -> None:
        _oxshmem.sync_on_stream(self._job, self._team_number, handle(stream))

    def broadcast_on_stream(self, dst: Any, src: Any, root: int, stream: Any) -> None:
        """:meth:`broadcast`, queued on a stream."""
        both = self._both(dst, src, "broadcast_on_stream")
        self._equal(dst, src, "broadcast_on_stream")
        _oxshmem.broadcast_on_stream(self._job, self._team_number, *both, self._root(root, "broadcast_on_stream"), handle(stream))

    def fcollect_on_stream(self, dst: Any, src: Any, stream: Any) -> None:
        """:meth:`fcollect`, queued on a stream."""
        both = self._both(dst, src, "fcollect_on_stream")
        self._equal(dst, src, "fcollect_on_stream", self._size, 1)
        _oxshmem.fcollect_on_stream(self._job, self._team_number, *both, handle(stream))

    def alltoall_on_stream(self, dst: Any, src: Any, stream: Any) -> None:
        """:meth:`alltoall`, queued on a stream."""
        both = self._both(dst, src, "alltoall_on_stream")
        self._equal(dst, src, "alltoall_on_stream")
        _oxshmem.alltoall_on_stream(self._job, self._team_number, *both, handle(stream))

    def _fold_on_stream(self, is_scatter: bool, dst: Any, src: Any, op: str, stream: Any, call: str) -> None:
        both = self._both(dst, src, call)
        self._equal(dst, src, call, 1, self._size if is_scatter else 1)
        name = _type_name(dst.dtype, op, call)
        _oxshmem.reduce_on_stream(self._job, is_scatter, self._team_number, *both, name, op, handle(stream))

    def reduce_on_stream(self, dst: Any, src: Any, op: str = "sum", *, stream: Any) -> None:
        """:meth:`reduce`, queued on a stream."""
        self._fold_on_stream(False, dst, src, op, stream, "reduce_on_stream")

    def reduce_scatter_on_stream(self, dst: Any, src: Any, op: str = "sum", *, stream: Any) -> None:
        """:meth:`reduce_scatter`, queued on a stream."""
        self._fold_on_stream(True, dst, src, op, stream, "reduce_scatter_on_stream")
