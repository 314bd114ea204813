"""The world: a PE and its job."""

from __future__ import annotations

import contextlib
from typing import Any, Iterable, Iterator, Literal, overload

import numpy as np

from . import _local, _oxshmem
from ._arrays import GpuArray, Place, SymmetricArray, block_of
from ._collectives import Collectives
from ._context import _WAITABLE, LOCKS, Context, bits, check_word, names, signal_operation, value_of
from ._streams import handle
from .errors import ArgumentError, DTypeError, Error, GpuError, OutOfRange, Unsupported, WorldEnded

_ALL, _SHARED = 0, 1


def init(
    *,
    heap_size: int | None = None,
    gpu_heap_size: int | None = None,
    check: bool | None = None,
    timeout: float | None = None,
    atomics: str | None = None,
    model: str | None = None,
    trace: str | None = None,
    stats: str | None = None,
) -> World:
    """Joins the job that the environment describes, with all its PEs; without one this is a world of one PE.

    ``heap_size`` and ``gpu_heap_size``: limits in bytes for each PE. ``check``: checked mode. ``timeout``: the limit of waits in seconds.
    ``atomics``: auto, cpu or nic. ``model``: ordered or relaxed. ``trace``, ``stats``: files. What is left out comes from the environment
    (``oxshmem info --variables``).
    """
    settings = {
        "heap_size": heap_size, "gpu_heap_size": gpu_heap_size, "check": check, "timeout": timeout, "atomics": atomics, "model": model,
        "trace": trace, "stats": stats,
    }  # fmt: skip
    return World(_oxshmem.init(settings))


class Team(Collectives):
    """PEs that make collective calls together. A team numbers its PEs from 0.

    Use it as a context manager: its end is the team's end, which is collective over it.
    """

    def __init__(self, world: World, number: int) -> None:
        self._world, self._job, self._team_number = world, world._job, number
        self._members = tuple(_oxshmem.team_members(world._job, number))
        self._is_destroyed = False

    @property
    def _size(self) -> int:
        return len(self._members)

    @property
    def my_pe(self) -> int:
        """This PE's number in the team."""
        return self._members.index(self._job.my_pe)

    @property
    def n_pes(self) -> int:
        """The number of PEs in the team."""
        return len(self._members)

    @property
    def world_pes(self) -> tuple[int, ...]:
        """The PEs' numbers in the world, in the team's order."""
        return self._members

    def translate(self, pe: int, to: Team) -> int | None:
        """A PE's number in another team; None if it is not there."""
        if not 0 <= pe < self.n_pes:
            return None
        member = self._members[pe]
        return to._members.index(member) if member in to._members else None

    def _new(self, number: int | None) -> Team | None:
        return None if number is None else Team(self._world, number)

    def split_strided(self, start: int, stride: int, size: int) -> Team | None:
        """A team of ``size`` PEs of this one, from ``start`` on, each ``stride`` after the one before. Collective; None for PEs outside it."""
        return self._new(_oxshmem.team_split_strided(self._job, self._team_number, start, stride, size))

    def split_list(self, pes: Iterable[int]) -> Team | None:
        """A team of the PEs of this one that are listed, in this order. Collective; None for PEs outside it."""
        return self._new(_oxshmem.team_split_list(self._job, self._team_number, list(pes)))

    def split_colors(self, colors: Iterable[int]) -> Team:
        """Splits this team into teams of the members with one colour each, and gives this PE's. Collective."""
        return Team(self._world, _oxshmem.team_split_colors(self._job, self._team_number, list(colors)))

    def split_2d(self, xrange: int) -> tuple[Team, Team]:
        """Splits this team into rows of ``xrange`` PEs, and columns: gives this PE's row and its column. Collective."""
        x, y = _oxshmem.team_split_2d(self._job, self._team_number, xrange)
        return Team(self._world, x), Team(self._world, y)

    def sync(self) -> None:
        """Waits for all members, and completes nothing."""
        self._sync()

    def barrier(self) -> None:
        """Waits for all members, and completes this PE's operations on the world's own context."""
        self._barrier()

    def sync_on_stream(self, stream: Any) -> None:
        """:meth:`sync`, queued on a stream."""
        self._sync_on_stream(stream)

    def barrier_on_stream(self, stream: Any) -> None:
        """:meth:`barrier`, queued on a stream."""
        self._barrier_on_stream(stream)

    def device_number(self) -> int:
        """The team's number in kernels. Collective over it; it opens the device library if that is not open."""
        return _oxshmem.team_device_number(self._job, self._team_number)

    def create_context(self, *, nostore: bool = False) -> Context:
        """A context for operations towards the team's PEs, by their numbers in the team."""
        return Context(self._world, _oxshmem.context_create(self._job, self._team_number, nostore), self)

    def destroy(self) -> None:
        """Ends the team and its contexts. Collective over it."""
        _oxshmem.team_destroy(self._job, self._team_number)
        self._is_destroyed = True

    def __enter__(self) -> Team:
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        if self._is_destroyed or self._team_number in (_ALL, _SHARED):
            return
        try:
            if kind is None:
                self.destroy()
            else:
                # The others may be elsewhere: they are told that this PE makes no call of the team any more.
                self._is_destroyed = True
                _oxshmem.team_leave(self._job, self._team_number)
        except WorldEnded:
            # The world's end has ended it.
            pass

    def __repr__(self) -> str:
        return f"<Team of PEs {list(self._members)}>"


class World(Context, Collectives):
    """A PE and its job: made by :func:`init`, once in a process.

    As a context manager it ends the PE's part in the job: by :meth:`finalize`, or after an exception by leaving without the others, to whom this PE is
    lost then. It is its PE's default context, and the team of all PEs.
    """

    def __init__(self, job: _oxshmem.Job) -> None:
        self._job = job
        self._team_number = _ALL
        self._turn = 0
        self._gpu: int | None = None
        Context.__init__(self, self, _ALL)

    @property
    def _size(self) -> int:
        return self._job.n_pes

    @property
    def hosts(self) -> list[str]:
        """Each PE's host."""
        return self._job.hosts

    @property
    def heap_limit(self) -> int:
        """The limit of each PE's heap, in bytes."""
        return self._job.heap_limit

    @property
    def is_live(self) -> bool:
        """Whether calls may be made."""
        return self._job.is_live

    @property
    def gpu(self) -> int | None:
        """The number of this PE's GPU; None without a GPU heap."""
        return _oxshmem.gpu_number(self._job)

    # Life.

    def finalize(self) -> None:
        """Leaves the job. Collective: completes this PE's operations, and waits for all PEs. Arrays keep their contents for this process."""
        _oxshmem.finalize(self._job)

    def destroy(self) -> None:
        """:meth:`finalize`."""
        self.finalize()

    def abandon(self) -> None:
        """Leaves the job without the others, to whom this PE is lost."""
        _oxshmem.abandon(self._job)

    def global_exit(self, status: int) -> None:
        """Ends the whole job with a status."""
        _oxshmem.global_exit(self._job, status)

    def acknowledge_lost(self) -> list[int]:
        """Acknowledges the PEs lost so far, and gives their numbers: waits do not fail because of them from here on."""
        return _oxshmem.acknowledge_lost(self._job)

    def is_accessible(self, pe: int) -> bool:
        """Whether a PE is there and can be reached."""
        return _oxshmem.is_accessible(self._job, pe)

    def __enter__(self) -> World:
        return self

    def __exit__(self, kind: Any, value: Any = None, *_: Any) -> None:
        if not self._job.is_live:
            return
        # A program that ends by sys.exit(0) has not failed.
        if kind is None or (issubclass(kind, SystemExit) and value.code in (None, 0)):
            self.finalize()
        else:
            with contextlib.suppress(Error):
                self.abandon()

    # Memory.

    def _allocate(self, shape: Any, dtype: Any, device: str, zero: bool, hints: str) -> Any:
        dtype = np.dtype(dtype)
        if dtype.hasobject:
            raise ArgumentError(f"zeros: elements of {dtype} are Python's objects; give a type of numbers, or a structure of such", call="zeros", what="dtype")
        if dtype.itemsize == 0:
            raise ArgumentError(f"zeros: elements of {dtype} have no bytes; give their length, such as 'S8'", call="zeros", what="dtype")
        shape = (int(shape),) if np.ndim(shape) == 0 else tuple(int(n) for n in shape)
        if any(n < 0 for n in shape):
            raise ArgumentError(f"zeros: shape {shape}; lengths are 0 at least", call="zeros", what="shape")
        if device not in ("cpu", "gpu"):
            raise ArgumentError(f"zeros: device={device!r}; give 'cpu' or 'gpu'", call="zeros", what="device")
        wanted = {name for name in hints.split("+") if name}
        if not wanted <= {"atomics", "signals"}:
            raise ArgumentError(f"zeros: hints={hints!r}; give 'atomics', 'signals' or 'atomics+signals'", call="zeros", what="hints")
        count = 1
        for length in shape:
            count *= length
        block = _oxshmem.alloc(self._job, count * dtype.itemsize, device == "gpu", zero, ("atomics" in wanted, "signals" in wanted))
        if device == "gpu":
            strides, step = [], dtype.itemsize
            for length in reversed(shape):
                strides.append(step)
                step *= length
            return GpuArray(self, block, 0, shape, tuple(reversed(strides)), dtype)
        array = np.asarray(block).view(dtype).reshape(shape).view(SymmetricArray)
        array._block, array._world = block, self
        return array

    @overload
    def zeros(self, shape: Any, dtype: Any = np.float64, *, device: Literal["cpu"] = "cpu", hints: str = "") -> SymmetricArray: ...

    @overload
    def zeros(self, shape: Any, dtype: Any = np.float64, *, device: Literal["gpu"], hints: str = "") -> GpuArray: ...

    def zeros(self, shape: Any, dtype: Any = np.float64, *, device: str = "cpu", hints: str = "") -> Any:
        """A symmetric array of zeros. Collective: all PEs give the same arguments.

        ``device``: ``"cpu"`` for a :class:`SymmetricArray`, ``"gpu"`` for a :class:`GpuArray`. ``hints``: ``"atomics"`` where NICs shall perform
        atomics, ``"signals"``.
        """
        return self._allocate(shape, dtype, device, True, hints)

    @overload
    def empty(self, shape: Any, dtype: Any = np.float64, *, device: Literal["cpu"] = "cpu", hints: str = "") -> SymmetricArray: ...

    @overload
    def empty(self, shape: Any, dtype: Any = np.float64, *, device: Literal["gpu"], hints: str = "") -> GpuArray: ...

    def empty(self, shape: Any, dtype: Any = np.float64, *, device: str = "cpu", hints: str = "") -> Any:
        """A symmetric array with any contents. Collective."""
        return self._allocate(shape, dtype, device, False, hints)

    @overload
    def array(self, value: Any, dtype: Any = None, *, device: Literal["cpu"] = "cpu") -> SymmetricArray: ...

    @overload
    def array(self, value: Any, dtype: Any = None, *, device: Literal["gpu"]) -> GpuArray: ...

    def array(self, value: Any, dtype: Any = None, *, device: str = "cpu") -> Any:
        """A symmetric array with this PE's elements. Collective: all PEs give the same shape and type. A barrier comes last."""
        local = np.asarray(value, dtype=dtype)
        made = self._allocate(local.shape, local.dtype, device, False, "")
        if device == "gpu":
            made.set(local)
        else:
            made[...] = local
        self.barrier_all()
        return made

    def free(self, array: Any) -> None:
        """Gives an array's memory back. Collective: all PEs free the same array, which is all of an allocation."""
        _oxshmem.free(self._job, block_of(array, "free", self))

    def _ptr(self, place: Place, pe: int) -> _oxshmem.Mapped | None:
        return _oxshmem.ptr(self._job, place.block, place.offset, place.nbytes, self._pe(pe, "peer"))

    # Teams and contexts.

    @property
    def team(self) -> Team:
        """The team of all PEs."""
        return Team(self, _ALL)

    @property
    def shared_team(self) -> Team:
        """The team of the PEs whose memory this process maps."""
        return Team(self, _SHARED)

    def barrier_all(self) -> None:
        """Waits for all PEs, and completes this PE's operations on the world's own context."""
        self._barrier()

    def sync_all(self) -> None:
        """Waits for all PEs, and completes nothing."""
        self._sync()

    def create_context(self, *, nostore: bool = False) -> Context:
        """A context for operations towards all PEs. ``nostore``: its quiet does not complete stores into numpy arrays."""
        return Context(self, _oxshmem.context_create(self._job, _ALL, nostore))

    # Locks.

    def _lock_word(self, lock: Any, call: str) -> Place:
        place = self._place(lock, call)
        check_word(lock, call, LOCKS)
        return place

    def set_lock(self, lock: Any) -> None:
        """Acquires a lock: one element of int64 or uint64, zero before its first use. It belongs to the PE, not to a thread."""
        word = self._lock_word(lock, "set_lock")
        _oxshmem.set_lock(self._job, word.block, word.offset)

    def test_lock(self, lock: Any) -> bool:
        """Acquires a lock if it is free; gives whether this call has."""
        word = self._lock_word(lock, "test_lock")
        return _oxshmem.test_lock(self._job, word.block, word.offset)

    def clear_lock(self, lock: Any) -> None:
        """Releases a lock. What the world's own context has issued before is complete."""
        word = self._lock_word(lock, "clear_lock")
        _oxshmem.clear_lock(self._job, word.block, word.offset)

    @contextlib.contextmanager
    def lock(self, lock: Any) -> Iterator[None]:
        """Holds a lock during a ``with`` block."""
        self.set_lock(lock)
        try:
            yield
        finally:
            self.clear_lock(lock)

    # The GPU.

    def _gpu_number(self) -> int:
        if self._gpu is None:
            self._gpu = self.gpu
        if self._gpu is None:
            why = _oxshmem.why_no_gpu(self._job)
            words = f" ({why})" if why else ""
            raise GpuError(f"this job has no GPU heap{words}; call oxshmem.init(gpu_heap_size=...), or set OXSHMEM_CUDA_SYMMETRIC_SIZE", why=why)
        return self._gpu

    def _own_stream(self) -> int | None:
        return None if self.gpu is None else _oxshmem.own_stream(self._job)

    def _synchronize_if_any(self, stream: Any) -> None:
        if self.gpu is not None:
            _oxshmem.synchronize(self._job, int(stream))

    def _copy_from_gpu(self, source: _local.Local) -> np.ndarray[Any, Any]:
        array = np.empty(source.size, source.dtype)
        if source.nbytes:
            _oxshmem.copy_gpu(self._job, _local.of_numpy(array).address, source.address, source.nbytes)
        return array

    def _copy_to_gpu(self, destination: _local.Local, array: np.ndarray[Any, Any]) -> None:
        array = np.ascontiguousarray(array)
        if destination.nbytes:
            _oxshmem.copy_gpu(self._job, destination.address, _local.of_numpy(array).address, destination.nbytes)

    def open_device_library(self, teams: int = 0) -> None:
        """Opens the device library, with room for so many more teams. Collective. Calls on streams then reach all PEs, and teams have them."""
        _oxshmem.open_device_library(self._job, teams)

    # Calls on streams.

    def _on_gpu(self, value: Any, dtype: np.dtype[Any], call: str, stream: int, writable: bool) -> _local.Local:
        take = _local.destination if writable else _local.source
        # The producer's work comes before the stream's next.
        found = take(value, dtype, call, stream or 1)
        if not found.on_gpu:
            raise Unsupported(
                f"{call}: the local array is in host memory; give one on the GPU, or use {call.removesuffix('_on_stream').removesuffix('_nbi')}", call=call
            )
        return found

    def _put_on_stream(self, dst: Any, src: Any, pe: int, stream: Any, nonblocking: bool) -> None:
        call = "put_nbi_on_stream" if nonblocking else "put_on_stream"
        to, number = self._whole(dst, call), handle(stream)
        source = self._on_gpu(src, dst.dtype, call, number, False)
        self._sizes(dst, source, call)
        _oxshmem.put_on_stream(
            self._job, to.block, (to.offset, to.nbytes), source.address, self._pe(pe, call), nonblocking, number, (source.owner, dst)
        )  # fmt: skip

    def put_on_stream(self, dst: Any, src: Any, pe: int, stream: Any) -> None:
        """Queues a put of an array on the GPU. ``src`` is held until :meth:`synchronize` of the stream."""
        self._put_on_stream(dst, src, pe, stream, False)

    def put_nbi_on_stream(self, dst: Any, src: Any, pe: int, stream: Any) -> None:
        """The same; it is complete at a :meth:`quiet_on_stream`, and the stream goes on before."""
        self._put_on_stream(dst, src, pe, stream, True)

    def _get_on_stream(self, src: Any, pe: int, out: Any, stream: Any, nonblocking: bool) -> Any:
        call = "get_nbi_on_stream" if nonblocking else "get_on_stream"
        of, number = self._whole(src, call), handle(stream)
        destination = self._on_gpu(out, src.dtype, call, number, True)
        self._sizes(src, destination, call)
        _oxshmem.get_on_stream(
            self._job, of.block, (of.offset, of.nbytes), destination.address, self._pe(pe, call), nonblocking, number, (destination.owner, src)
        )  # fmt: skip
        return out

    def get_on_stream(self, src: Any, pe: int, out: Any, stream: Any) -> Any:
        """Queues a get into an array on the GPU. ``out`` is held until :meth:`synchronize` of the stream."""
        return self._get_on_stream(src, pe, out, stream, False)

    def get_nbi_on_stream(self, src: Any, pe: int, out: Any, stream: Any) -> Any:
        """The same; the data is there after a :meth:`quiet_on_stream`."""
        return self._get_on_stream(src, pe, out, stream, True)

    def put_signal_on_stream(self, dst: Any, src: Any, signal: Any, value: int, pe: int, stream: Any, op: str = "set") -> None:
        """Queues a put and the update of a signal behind it. The signal lies on the GPU, where streams of the target wait for it, or in host memory."""
        call = "put_signal_on_stream"
        to, word, number = self._whole(dst, call), self._signal(signal, call), handle(stream)
        is_add = signal_operation(op, call)
        source = self._on_gpu(src, dst.dtype, call, number, False)
        self._sizes(dst, source, call)
        how = (word.block, word.offset, int(value), is_add)
        _oxshmem.put_signal_on_stream(
            self._job, to.block, (to.offset, to.nbytes), source.address, how, self._pe(pe, call), False, number, (source.owner, dst, signal)
        )  # fmt: skip

    def signal_on_stream(self, signal: Any, value: int, pe: int, stream: Any, op: str = "set") -> None:
        """Queues the update of a signal."""
        call = "signal_on_stream"
        word = self._signal(signal, call)
        is_add = signal_operation(op, call)
        _oxshmem.signal_on_stream(self._job, word.block, word.offset, int(value), is_add, self._pe(pe, call), handle(stream))

    def _strided_on_stream(self, is_get: bool, symmetric: Any, local: Any, strides: tuple[int, int], count: int, pe: int, stream: Any) -> None:
        call = "iget_on_stream" if is_get else "iput_on_stream"
        place, number = self._whole(symmetric, call), handle(stream)
        symmetric_stride, local_stride = strides
        self._strided(symmetric_stride, local_stride, count, 1, call)
        if count == 0:
            return
        found = self._on_gpu(local, symmetric.dtype, call, number, is_get)
        size = symmetric.dtype.itemsize
        needed = (count - 1) * local_stride + 1
        if found.size < needed:
            raise ArgumentError(f"{call}: {needed} local elements are needed, and there are {found.size}; give a longer array", call=call, what="too short")
        extent = (count - 1) * symmetric_stride + 1
        if extent > symmetric.size:
            raise OutOfRange(
                f"{call}: elements 0..{extent} leave an array of {symmetric.size}; shorten the range or allocate more",
                call=call, start=0, end=extent, len=symmetric.size,
            )  # fmt: skip
        _oxshmem.strided_on_stream(
            self._job, is_get, place.block, (place.offset, extent * size), symmetric_stride * size, (found.address, local_stride * size),
            count, size, self._pe(pe, call), number, (found.owner, symmetric),
        )  # fmt: skip

    def iput_on_stream(self, dst: Any, src: Any, dst_stride: int, src_stride: int, count: int, pe: int, stream: Any) -> None:
        """Queues a put of elements at strides. It needs the device library."""
        self._strided_on_stream(False, dst, src, (dst_stride, src_stride), count, pe, stream)

    def iget_on_stream(self, src: Any, out: Any, dst_stride: int, src_stride: int, count: int, pe: int, stream: Any) -> None:
        """Queues a get of elements at strides. It needs the device library."""
        self._strided_on_stream(True, src, out, (src_stride, dst_stride), count, pe, stream)

    def g_on_stream(self, src: Any, pe: int, stream: Any) -> Any:
        """The first element of PE ``pe``'s copy of ``src``, when the stream has reached the call. It needs the device library, and waits."""
        of = self._place(src, "g_on_stream")
        if src.size == 0:
            raise ArgumentError("g_on_stream: an array without elements; give one that has one", call="g_on_stream", what="no element")
        word = _oxshmem.g_on_stream(self._job, of.block, of.offset, src.dtype.itemsize, self._pe(pe, "g_on_stream"), handle(stream))
        return value_of(word, src.dtype)

    def wait_until_on_stream(self, words: Any, cmp: str, value: Any, stream: Any) -> None:
        """Queues a wait until this PE's own word, or all of its words, compare as asked. More than one need the device library."""
        call = "wait_until_on_stream"
        place = self._whole(words, call)
        if words.dtype not in _WAITABLE:
            raise DTypeError(f"{call}: words of {words.dtype}; give one of {names(_WAITABLE)}", call=call)
        if words.size == 0:
            return
        shape = (words.size, words.dtype.itemsize, words.dtype.kind == "i")
        _oxshmem.wait_on_stream(self._job, place.block, place.offset, shape, cmp, bits(value, words.dtype), handle(stream))

    def quiet_on_stream(self, stream: Any) -> None:
        """Queues the completion of the stream's operations."""
        _oxshmem.quiet_on_stream(self._job, handle(stream))

    def barrier_all_on_stream(self, stream: Any) -> None:
        """Queues a barrier of all PEs."""
        self._barrier_on_stream(stream)

    def sync_all_on_stream(self, stream: Any) -> None:
        """Queues a meeting of all PEs."""
        self._sync_on_stream(stream)

    def synchronize(self, stream: Any) -> None:
        """Waits for the stream's work, and gives up the arrays that it has used. Use it and not the stream's own: it ends if a PE is lost."""
        _oxshmem.synchronize(self._job, handle(stream))
