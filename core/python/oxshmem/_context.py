"""Contexts: sequences of operations towards PEs, each ordered and completed independently of the others."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Collection

import numpy as np

from . import _local, _oxshmem
from ._arrays import GpuArray, Place, SymmetricArray, place_of
from .errors import ArgumentError, DTypeError, NoSuchPe, Unreachable, Unsupported, WorldEnded

if TYPE_CHECKING:
    from ._world import Team, World

Symmetric = "SymmetricArray | GpuArray"

Types = Collection["np.dtype[Any]"]


def _types(*names: str) -> dict[np.dtype[Any], None]:
    return {np.dtype(name): None for name in names}


# The types of atomics, of those that do no arithmetic, of waits, and of locks, in this machine's byte order.
_WORDS = _types("int32", "int64", "uint32", "uint64")
_ATOMIC = {**_WORDS, **_types("float32", "float64")}
_WAITABLE = {**_types("int16", "uint16"), **_WORDS}
LOCKS = _types("int64", "uint64")
_UINT64 = np.dtype("uint64")
# The integers that a call passes as numbers: their least and greatest values, and the mask of their bits.
_INTEGERS = {
    dtype: (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max), (1 << 8 * dtype.itemsize) - 1)
    for dtype in _types("int8", "uint8", *(kind.name for kind in _WAITABLE))
}


def bits(value: Any, dtype: np.dtype[Any]) -> int:
    """An element's bits, as a number."""
    limits = _INTEGERS.get(dtype)
    if limits is not None and isinstance(value, (int, np.integer)):
        number = int(value)
        if limits[0] <= number <= limits[1]:
            return number & limits[2]
        raise OverflowError(f"{number} is no {dtype}, which is {limits[0]} to {limits[1]}")
    element = np.asarray(value, dtype=dtype)
    if element.size != 1:
        raise ArgumentError(f"{element.size} values where one is wanted", what="one value is wanted")
    return int.from_bytes(element.tobytes(), "little")


def value_of(word: int, dtype: np.dtype[Any]) -> Any:
    """An element by its bits."""
    limits = _INTEGERS.get(dtype)
    if limits is not None:
        return dtype.type(word if word <= limits[1] else word - limits[2] - 1)
    return np.frombuffer(word.to_bytes(8, "little"), dtype=dtype, count=1)[0]


def names(types: Types) -> str:
    """The types for a message."""
    return ", ".join(str(kind) for kind in types)


def check_word(array: Any, call: str, types: Types) -> None:
    """Refuses an array that is not one word of a type."""
    if array.dtype not in types:
        raise DTypeError(f"{call}: an element of {array.dtype}; give one of {names(types)}", call=call)
    if array.size != 1:
        raise ArgumentError(f"{call}: {array.size} elements where one is wanted; give words[i:i + 1]", call=call, what="one element is wanted")


def signal_operation(op: str, call: str) -> bool:
    """Whether a signal's operation adds."""
    if op not in ("set", "add"):
        raise ArgumentError(f"{call}: {op!r} is no operation of a signal; give 'set' or 'add'", call=call, what="op")
    return op == "add"


class Context:
    """A sequence of operations with a fence and a quiet of its own. :meth:`World.create_context` and :meth:`Team.create_context` make them.

    Any number of threads use it. Use it as a context manager: its end completes what it has issued.
    """

    _world: World
    _job: _oxshmem.Job
    _number: int

    def __init__(self, world: World, number: int, team: Team | None = None) -> None:
        self._world, self._job, self._number, self._team = world, world._job, number, team
        self._is_destroyed = False
        of = self._job if team is None else team
        self._me, self._n = of.my_pe, of.n_pes

    @property
    def my_pe(self) -> int:
        """This PE's number, from 0: in the job, or in the context's team."""
        return self._me

    @property
    def n_pes(self) -> int:
        """The number of PEs: of the job, or of the context's team."""
        return self._n

    def destroy(self) -> None:
        """Completes what was issued, and ends the context."""
        _oxshmem.context_destroy(self._job, self._number)
        self._is_destroyed = True

    def __enter__(self) -> Any:
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        if self._is_destroyed:
            return
        try:
            self.destroy()
        except WorldEnded:
            # The world's end has completed it.
            pass

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of PE {self.my_pe} of {self.n_pes}>"

    # Arguments.

    def _pe(self, pe: Any, call: str) -> int:
        number = operator.index(pe)
        if not 0 <= number < self._n:
            raise NoSuchPe(f"{call}: there is no PE {number}; the PEs are 0 to {self._n - 1}", call=call, pe=number, size=self._n)
        return number

    def _place(self, array: Any, call: str) -> Place:
        return place_of(array, call, self._world)

    def _word(self, array: Any, call: str, types: Types) -> Place:
        place = self._place(array, call)
        check_word(array, call, types)
        return place

    def _signal(self, array: Any, call: str) -> Place:
        place = self._place(array, call)
        if array.dtype != _UINT64 or array.size != 1:
            raise DTypeError(f"{call}: a signal is one element of uint64; give world.zeros(1, 'uint64'), or one of its elements as x[i:i + 1]", call=call)
        return place

    def _whole(self, array: Any, call: str) -> Place:
        place = self._place(array, call)
        if not place.is_whole:
            raise Unsupported(f"{call}: the symmetric view's elements do not lie one after the other; use put or get, or a contiguous array", call=call)
        return place

    def _sizes(self, symmetric: Any, local: _local.Local, call: str) -> None:
        if symmetric.size != local.size:
            raise ArgumentError(
                f"{call}: {local.size} local elements for {symmetric.size} symmetric ones; give as many, or a part as x[:n]", call=call, what="sizes differ"
            )

    def _source(self, value: Any, dst: Any, call: str) -> _local.Local:
        if type(value) is np.ndarray and value.dtype == dst.dtype and value.size == dst.size and value.flags.c_contiguous:
            return _local.of_numpy(value)
        stream = self._world._own_stream() if dst._block.on_gpu or hasattr(value, "__cuda_array_interface__") or _is_on_gpu(value) else None
        if not isinstance(value, np.ndarray) and np.ndim(value) == 0 and isinstance(value, (int, float, complex, np.generic)):
            value = np.full(dst.shape, value, dst.dtype)
        found = _local.source(value, dst.dtype, call, stream, self._world._synchronize_if_any)
        self._sizes(dst, found, call)
        return found

    def _destination(self, out: Any, src: Any, call: str) -> tuple[Any, _local.Local]:
        if out is None:
            out = np.empty(src.shape, src.dtype)
        stream = self._world._own_stream() if hasattr(out, "__cuda_array_interface__") or _is_on_gpu(out) else None
        found = _local.destination(out, src.dtype, call, stream, self._world._synchronize_if_any)
        self._sizes(src, found, call)
        return out, found

    # Put and get.

    def put(self, dst: Any, src: Any, pe: int) -> None:
        """Copies ``src`` to PE ``pe``'s copy of ``dst``, and returns when ``src`` may be changed.

        ``src`` is an array with as many elements of the same type, of numpy or of another library, in host memory or on this PE's GPU; or a list, or
        a number for all elements. ``dst`` may be a strided view, such as a column.
        """
        to, pe = self._place(dst, "put"), self._pe(pe, "put")
        if isinstance(src, GpuArray):
            at = self._whole(src, "put")
            if src.dtype != dst.dtype or src.size != dst.size or not to.is_whole:
                self._put_staged(to, dst, src.get(), pe)
                return
            _oxshmem.put_from(self._job, self._number, to.block, to.offset, at.block, at.offset, to.nbytes, pe)
            return
        source = self._source(src, dst, "put")
        if to.nbytes == 0:
            return
        if source.on_gpu:
            if to.block.on_gpu and to.is_whole and self._team is None:
                try:
                    _oxshmem.gpu_put(self._job, False, to.block, to.offset, source.address, to.nbytes, pe)
                    return
                except Unreachable:
                    # This PE's GPU does not reach it: the data goes through host memory.
                    pass
            self._put_staged(to, dst, self._world._copy_from_gpu(source), pe)
            return
        self._put_host(to, source, pe)

    def _put_staged(self, to: Place, dst: Any, array: np.ndarray[Any, Any], pe: int) -> None:
        self._put_host(to, self._source(array, dst, "put"), pe)

    def _put_host(self, to: Place, source: _local.Local, pe: int) -> None:
        if to.is_whole:
            _oxshmem.put(self._job, self._number, to.block, to.offset, source.address, to.nbytes, pe)
        else:
            layout = (to.stride, to.run, to.run, to.runs)
            _oxshmem.put_blocks(self._job, self._number, to.block, to.offset, source.address, layout, pe)

    def get(self, src: Any, pe: int, out: Any = None) -> Any:
        """Copies PE ``pe``'s copy of ``src`` to ``out``, or to a new numpy array, and gives that."""
        of, pe = self._place(src, "get"), self._pe(pe, "get")
        if isinstance(out, GpuArray):
            to = self._whole(out, "get")
            if src.dtype != out.dtype or src.size != out.size:
                _local._check_type(out.dtype, src.dtype, "get")
                self._sizes(src, _local.Local(0, out.size, out.dtype, True, None), "get")
            if of.is_whole:
                _oxshmem.get_into(self._job, self._number, of.block, of.offset, to.block, to.offset, of.nbytes, pe)
            else:
                out.set(self.get(src, pe))
            return out
        out, destination = self._destination(out, src, "get")
        if of.nbytes == 0:
            return out
        if destination.on_gpu:
            if of.block.on_gpu and of.is_whole and self._team is None:
                try:
                    _oxshmem.gpu_put(self._job, True, of.block, of.offset, destination.address, of.nbytes, pe)
                    return out
                except Unreachable:
                    pass
            self._world._copy_to_gpu(destination, self.get(src, pe))
        elif of.is_whole:
            _oxshmem.get(self._job, self._number, of.block, of.offset, destination.address, of.nbytes, pe)
        else:
            layout = (of.run, of.stride, of.run, of.runs)
            _oxshmem.get_blocks(self._job, self._number, of.block, of.offset, destination.address, layout, pe)
        return out

    def _host_only(self, local: _local.Local, call: str) -> None:
        if local.on_gpu:
            raise Unsupported(f"{call}: the local array is on a GPU; use {call.removesuffix('_nbi')}, or {call}_on_stream", call=call)

    def put_nbi(self, dst: Any, src: Any, pe: int) -> None:
        """:meth:`put` that is complete at the next :meth:`quiet`. ``src`` is held until then; do not change it before."""
        to, pe = self._whole(dst, "put_nbi"), self._pe(pe, "put_nbi")
        source = self._source(src, dst, "put_nbi")
        self._host_only(source, "put_nbi")
        _oxshmem.put_nbi(self._job, self._number, to.block, to.offset, source.address, to.nbytes, pe, source.owner)

    def get_nbi(self, src: Any, pe: int, out: Any = None) -> Any:
        """:meth:`get` whose data is there after the next :meth:`quiet`. ``out`` is held until then; do not use it before."""
        of, pe = self._whole(src, "get_nbi"), self._pe(pe, "get_nbi")
        out, destination = self._destination(out, src, "get_nbi")
        self._host_only(destination, "get_nbi")
        _oxshmem.get_nbi(self._job, self._number, of.block, of.offset, destination.address, of.nbytes, pe, destination.owner)
        return out

    def p(self, dst: Any, value: Any, pe: int) -> None:
        """Puts one element: the first of ``dst``."""
        to, pe = self._place(dst, "p"), self._pe(pe, "p")
        if dst.size == 0:
            raise ArgumentError("p: an array without elements; give one that has one", call="p", what="no element")
        if dst.dtype in _INTEGERS and isinstance(value, (int, np.integer)):
            _oxshmem.p(self._job, self._number, to.block, to.offset, dst.dtype.itemsize, bits(value, dst.dtype), pe)
            return
        element = np.asarray(value, dtype=dst.dtype)
        source = _local.of_numpy(element)
        if source.size != 1:
            raise ArgumentError(f"p: {source.size} values where one is wanted; use put", call="p", what="one value is wanted")
        _oxshmem.put(self._job, self._number, to.block, to.offset, source.address, dst.dtype.itemsize, pe)

    def g(self, src: Any, pe: int) -> Any:
        """Gets one element: the first of ``src``."""
        of, pe = self._place(src, "g"), self._pe(pe, "g")
        if src.size == 0:
            raise ArgumentError("g: an array without elements; give one that has one", call="g", what="no element")
        if src.dtype in _INTEGERS:
            return value_of(_oxshmem.g(self._job, self._number, of.block, of.offset, src.dtype.itemsize, pe), src.dtype)
        element = np.empty(1, src.dtype)
        _oxshmem.get(self._job, self._number, of.block, of.offset, _local.of_numpy(element).address, src.dtype.itemsize, pe)
        return element[0]

    def _strided(self, dst_stride: int, src_stride: int, count: int, block: int, call: str) -> None:
        for name, value in (("dst_stride", dst_stride), ("src_stride", src_stride), ("block", block)):
            if value < 1:
                raise ArgumentError(f"{call}: {name}={value}; it is 1 element at least", call=call, what=name)
        if count < 0:
            raise ArgumentError(f"{call}: count={count}; it is 0 at least", call=call, what="count")

    def _extent(self, local: _local.Local, stride: int, count: int, block: int, call: str) -> None:
        self._host_only(local, call)
        needed = (count - 1) * stride + block
        if local.size < needed:
            raise ArgumentError(f"{call}: {needed} local elements are needed, and there are {local.size}; give a longer array", call=call, what="too short")

    def iput(self, dst: Any, src: Any, dst_stride: int, src_stride: int, count: int, pe: int, block: int = 1) -> None:
        """Puts ``count`` blocks of ``block`` elements, which lie at strides (in elements) on both sides."""
        to, pe = self._whole(dst, "iput"), self._pe(pe, "iput")
        self._strided(dst_stride, src_stride, count, block, "iput")
        if count == 0:
            return
        source = _local.source(src, dst.dtype, "iput")
        self._extent(source, src_stride, count, block, "iput")
        size = dst.dtype.itemsize
        if ((count - 1) * dst_stride + block) * size > to.nbytes:
            raise ArgumentError("iput: the blocks leave the symmetric array; shorten them or allocate more", call="iput", what="out of range")
        layout = (dst_stride * size, src_stride * size, block * size, count)
        _oxshmem.put_blocks(self._job, self._number, to.block, to.offset, source.address, layout, pe)

    def iget(self, src: Any, out: Any, dst_stride: int, src_stride: int, count: int, pe: int, block: int = 1) -> Any:
        """Gets ``count`` blocks of ``block`` elements, which lie at strides (in elements) on both sides, into ``out``."""
        of, pe = self._whole(src, "iget"), self._pe(pe, "iget")
        self._strided(dst_stride, src_stride, count, block, "iget")
        if count == 0:
            return out
        destination = _local.destination(out, src.dtype, "iget")
        self._extent(destination, dst_stride, count, block, "iget")
        size = src.dtype.itemsize
        if ((count - 1) * src_stride + block) * size > of.nbytes:
            raise ArgumentError("iget: the blocks leave the symmetric array; shorten them or allocate more", call="iget", what="out of range")
        layout = (dst_stride * size, src_stride * size, block * size, count)
        _oxshmem.get_blocks(self._job, self._number, of.block, of.offset, destination.address, layout, pe)
        return out

    # Signals.

    def _put_signal(self, dst: Any, src: Any, signal: Any, value: int, pe: int, op: str, nonblocking: bool) -> None:
        call = "put_signal_nbi" if nonblocking else "put_signal"
        to, pe, word = self._whole(dst, call), self._pe(pe, call), self._signal(signal, call)
        is_add = signal_operation(op, call)
        if isinstance(src, GpuArray) or hasattr(src, "__cuda_array_interface__") or _is_on_gpu(src):
            found = _local.source(src, dst.dtype, call, self._world._own_stream(), self._world._synchronize_if_any)
            self._sizes(dst, found, call)
            src = self._world._copy_from_gpu(found)
        source = self._source(src, dst, call)
        owner = source.owner if nonblocking else None
        how = (word.block, word.offset, int(value), is_add)
        _oxshmem.put_signal(self._job, self._number, to.block, to.offset, source.address, to.nbytes, how, pe, owner)

    def put_signal(self, dst: Any, src: Any, signal: Any, value: int, pe: int, op: str = "set") -> None:
        """:meth:`put`, and then the update of PE ``pe``'s copy of ``signal``: who sees the new value sees the data.

        ``op`` is ``"set"`` or ``"add"``. A signal is one element of uint64.
        """
        self._put_signal(dst, src, signal, value, pe, op, False)

    def put_signal_nbi(self, dst: Any, src: Any, signal: Any, value: int, pe: int, op: str = "set") -> None:
        """:meth:`put_signal` that is complete at the next :meth:`quiet`. ``src`` is held until then; do not change it before."""
        self._put_signal(dst, src, signal, value, pe, op, True)

    def signal_set(self, signal: Any, value: int, pe: int) -> None:
        """Sets PE ``pe``'s copy of a signal."""
        word, pe = self._signal(signal, "signal_set"), self._pe(pe, "signal_set")
        _oxshmem.signal(self._job, self._number, word.block, word.offset, int(value), False, pe)

    def signal_add(self, signal: Any, value: int, pe: int) -> None:
        """Adds to PE ``pe``'s copy of a signal."""
        word, pe = self._signal(signal, "signal_add"), self._pe(pe, "signal_add")
        _oxshmem.signal(self._job, self._number, word.block, word.offset, int(value), True, pe)

    def signal_fetch(self, signal: Any) -> int:
        """Reads this PE's own signal."""
        word = self._signal(signal, "signal_fetch")
        return _oxshmem.signal_fetch(self._job, self._number, word.block, word.offset)

    def signal_wait_until(self, signal: Any, cmp: str, value: int) -> int:
        """Waits until this PE's own signal compares as asked (``"=="``, ``"!="``, ``">"``, ``">="``, ``"<"``, ``"<="``), and gives it."""
        self._signal(signal, "signal_wait_until")
        self._wait(signal, cmp, value, None, True, False, "signal_wait_until")
        return self.signal_fetch(signal)

    # Waits and tests of this PE's own words.

    def _wait(self, words: Any, cmp: str, value: Any, skip: Any, of_all: bool, is_test: bool, call: str) -> list[int] | None:
        place = self._whole(words, call)
        if words.dtype not in _WAITABLE:
            raise DTypeError(f"{call}: words of {words.dtype}; give one of {names(_WAITABLE)}", call=call)
        if isinstance(value, (int, np.integer)):
            values: Any = np.empty(1)
            numbers = [bits(value, words.dtype)]
        else:
            values = np.atleast_1d(np.asarray(value, dtype=words.dtype)).ravel()
            numbers = [bits(each, words.dtype) for each in values]
        if values.size not in (1, words.size):
            raise ArgumentError(f"{call}: {values.size} values for {words.size} words; give one for all or one for each", call=call, what="values")
        if skip is not None:
            skip = [bool(left_out) for left_out in np.asarray(skip).ravel()]
            if len(skip) != words.size:
                raise ArgumentError(f"{call}: skip has {len(skip)} elements for {words.size} words; give one for each", call=call, what="skip")
        shape = (words.size, words.dtype.itemsize, words.dtype.kind == "i")
        return _oxshmem.wait(self._job, self._number, place.block, place.offset, shape, cmp, numbers, skip, (of_all, is_test))

    def wait_until(self, word: Any, cmp: str, value: Any) -> None:
        """Waits until the one element of ``word``, in this PE's own copy, compares as asked. Later reads see what its writer put before it."""
        self._word(word, "wait_until", _WAITABLE)
        self._wait(word, cmp, value, None, True, False, "wait_until")

    def wait_until_all(self, words: Any, cmp: str, value: Any, skip: Any = None) -> None:
        """Waits until all words compare as asked, with ``value`` or each with its own. ``skip[i]`` leaves word i out."""
        self._wait(words, cmp, value, skip, True, False, "wait_until_all")

    def wait_until_some(self, words: Any, cmp: str, value: Any, skip: Any = None) -> list[int]:
        """Waits until some words compare as asked, and gives their indices; none if there are no words."""
        return self._wait(words, cmp, value, skip, False, False, "wait_until_some") or []

    def wait_until_any(self, words: Any, cmp: str, value: Any, skip: Any = None) -> int | None:
        """Waits until a word compares as asked, and gives the index of one that does; None if there are no words."""
        return self._one(self.wait_until_some(words, cmp, value, skip))

    def test(self, word: Any, cmp: str, value: Any) -> bool:
        """Whether the one element of ``word`` compares as asked."""
        self._word(word, "test", _WAITABLE)
        return self._wait(word, cmp, value, None, True, True, "test") is not None

    def test_all(self, words: Any, cmp: str, value: Any, skip: Any = None) -> bool:
        """Whether all words compare as asked."""
        return self._wait(words, cmp, value, skip, True, True, "test_all") is not None

    def test_some(self, words: Any, cmp: str, value: Any, skip: Any = None) -> list[int]:
        """The indices of the words that compare as asked."""
        return self._wait(words, cmp, value, skip, False, True, "test_some") or []

    def test_any(self, words: Any, cmp: str, value: Any, skip: Any = None) -> int | None:
        """The index of a word that compares as asked; None if none does."""
        return self._one(self.test_some(words, cmp, value, skip))

    def _one(self, found: list[int]) -> int | None:
        # Another one each time, so that no word starves.
        self._world._turn += 1
        return found[self._world._turn % len(found)] if found else None

    # Atomics.

    def _atomic(self, name: str, word: Any, pe: int, value: Any = 0, compare: Any = 0, types: Types = _WORDS) -> Any:
        call = f"atomic_{name}"
        place, pe = self._word(word, call, types), self._pe(pe, call)
        operands = (bits(value, word.dtype), bits(compare, word.dtype))
        old = _oxshmem.atomic(self._job, self._number, name, place.block, place.offset, word.dtype.itemsize, *operands, pe)
        return value_of(old, word.dtype)

    def _atomic_nbi(self, name: str, word: Any, out: Any, pe: int, value: Any = 0, compare: Any = 0, types: Types = _WORDS) -> None:
        call = f"atomic_{name}_nbi"
        place, pe = self._word(word, call, types), self._pe(pe, call)
        result = _local.destination(out, word.dtype, call)
        self._host_only(result, call)
        self._sizes(word, result, call)
        operands = (bits(value, word.dtype), bits(compare, word.dtype))
        _oxshmem.atomic_nbi(
            self._job, self._number, name, place.block, place.offset, word.dtype.itemsize, *operands, pe, (result.address, result.owner)
        )  # fmt: skip

    def atomic_fetch(self, word: Any, pe: int) -> Any:
        """Reads PE ``pe``'s copy of a word atomically."""
        return self._atomic("fetch", word, pe, types=_ATOMIC)

    def atomic_set(self, word: Any, value: Any, pe: int) -> None:
        """Writes a word atomically."""
        self._atomic("set", word, pe, value, types=_ATOMIC)

    def atomic_swap(self, word: Any, value: Any, pe: int) -> Any:
        """Writes a word atomically, and gives what it held."""
        return self._atomic("swap", word, pe, value, types=_ATOMIC)

    def atomic_compare_swap(self, word: Any, expected: Any, value: Any, pe: int) -> Any:
        """Writes ``value`` if the word is ``expected``, and gives what it held."""
        return self._atomic("compare_swap", word, pe, value, expected)

    def atomic_add(self, word: Any, value: Any, pe: int) -> None:
        """Adds to a word, wrapping."""
        self._atomic("add", word, pe, value)

    def atomic_inc(self, word: Any, pe: int) -> None:
        """Adds 1 to a word."""
        self._atomic("add", word, pe, 1)

    def atomic_and(self, word: Any, value: Any, pe: int) -> None:
        """Bitwise and."""
        self._atomic("and", word, pe, value)

    def atomic_or(self, word: Any, value: Any, pe: int) -> None:
        """Bitwise or."""
        self._atomic("or", word, pe, value)

    def atomic_xor(self, word: Any, value: Any, pe: int) -> None:
        """Bitwise exclusive or."""
        self._atomic("xor", word, pe, value)

    def atomic_fetch_add(self, word: Any, value: Any, pe: int) -> Any:
        """Adds to a word, wrapping, and gives what it held."""
        return self._atomic("fetch_add", word, pe, value)

    def atomic_fetch_inc(self, word: Any, pe: int) -> Any:
        """Adds 1 to a word, and gives what it held."""
        return self._atomic("fetch_add", word, pe, 1)

    def atomic_fetch_and(self, word: Any, value: Any, pe: int) -> Any:
        """Bitwise and; gives what the word held."""
        return self._atomic("fetch_and", word, pe, value)

    def atomic_fetch_or(self, word: Any, value: Any, pe: int) -> Any:
        """Bitwise or; gives what the word held."""
        return self._atomic("fetch_or", word, pe, value)

    def atomic_fetch_xor(self, word: Any, value: Any, pe: int) -> Any:
        """Bitwise exclusive or; gives what the word held."""
        return self._atomic("fetch_xor", word, pe, value)

    def atomic_fetch_nbi(self, word: Any, pe: int, out: Any) -> None:
        """:meth:`atomic_fetch` whose value is in ``out`` after the next :meth:`quiet`."""
        self._atomic_nbi("fetch", word, out, pe, types=_ATOMIC)

    def atomic_swap_nbi(self, word: Any, value: Any, pe: int, out: Any) -> None:
        """:meth:`atomic_swap` whose value is in ``out`` after the next :meth:`quiet`."""
        self._atomic_nbi("swap", word, out, pe, value, types=_ATOMIC)

    def atomic_compare_swap_nbi(self, word: Any, expected: Any, value: Any, pe: int, out: Any) -> None:
        """:meth:`atomic_compare_swap` whose value is in ``out`` after the next :meth:`quiet`."""
        self._atomic_nbi("compare_swap", word, out, pe, value, expected)

    def atomic_fetch_add_nbi(self, word: Any, value: Any, pe: int, out: Any) -> None:
        """:meth:`atomic_fetch_add` whose value is in ``out`` after the next :meth:`quiet`."""
        self._atomic_nbi("fetch_add", word, out, pe, value)

    def atomic_fetch_inc_nbi(self, word: Any, pe: int, out: Any) -> None:
        """:meth:`atomic_fetch_inc` whose value is in ``out`` after the next :meth:`quiet`."""
        self._atomic_nbi("fetch_add", word, out, pe, 1)

    def atomic_fetch_and_nbi(self, word: Any, value: Any, pe: int, out: Any) -> None:
        """:meth:`atomic_fetch_and` whose value is in ``out`` after the next :meth:`quiet`."""
        self._atomic_nbi("fetch_and", word, out, pe, value)

    def atomic_fetch_or_nbi(self, word: Any, value: Any, pe: int, out: Any) -> None:
        """:meth:`atomic_fetch_or` whose value is in ``out`` after the next :meth:`quiet`."""
        self._atomic_nbi("fetch_or", word, out, pe, value)

    def atomic_fetch_xor_nbi(self, word: Any, value: Any, pe: int, out: Any) -> None:
        """:meth:`atomic_fetch_xor` whose value is in ``out`` after the next :meth:`quiet`."""
        self._atomic_nbi("fetch_xor", word, out, pe, value)

    # Order and completion.

    def fence(self) -> None:
        """Orders this context's operations to each PE: those before it come there before those after it."""
        _oxshmem.fence(self._job, self._number)

    def quiet(self) -> None:
        """Completes this context's operations, and gives up the arrays of nonblocking ones."""
        _oxshmem.quiet(self._job, self._number)

    def progress(self) -> None:
        """Drives the operations in flight."""
        _oxshmem.progress(self._job, self._number)


def _is_on_gpu(value: Any) -> bool:
    """Whether another library's array is on a GPU."""
    if isinstance(value, np.ndarray) or not hasattr(value, "__dlpack_device__"):
        return False
    return bool(value.__dlpack_device__()[0] == 2)
