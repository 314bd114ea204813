"""The calls. Each checks its arguments' types when a kernel is compiled."""

import triton.language as tl
from triton.language import core

from .symbols import ARITHMETIC, ATOMICS, BITWISE, PREFIX, SYMBOLS, TYPE_NAMES

__all__ = [
    "CMP_EQ", "CMP_NE", "CMP_GT", "CMP_LE", "CMP_LT", "CMP_GE", "SIGNAL_SET", "SIGNAL_ADD", "TEAM_WORLD", "TEAM_SHARED",
    "TEAM_NODE", "my_pe", "n_pes", "team_my_pe", "team_n_pes", "team_translate_pe", "ptr", "put", "put_nbi", "get", "get_nbi",
    "putmem", "putmem_nbi", "getmem", "getmem_nbi", "iput", "iget", "p", "g", "put_signal", "put_signal_nbi", "signal_op",
    "signal_fetch", "signal_wait_until", "wait_until", "wait_until_all", "wait_until_any", "test", "atomic_fetch", "atomic_set",
    "atomic_swap", "atomic_compare_swap", "atomic_add", "atomic_and", "atomic_or", "atomic_xor", "atomic_fetch_add",
    "atomic_fetch_and", "atomic_fetch_or", "atomic_fetch_xor", "fence", "quiet", "flush", "barrier", "sync", "barrier_all",
    "sync_all", "broadcast", "fcollect", "alltoall", "reduce", "reducescatter",
]

CMP_EQ, CMP_NE, CMP_GT, CMP_LE, CMP_LT, CMP_GE = (tl.constexpr(n) for n in range(6))
SIGNAL_SET, SIGNAL_ADD = tl.constexpr(9), tl.constexpr(10)
TEAM_WORLD, TEAM_SHARED, TEAM_NODE = tl.constexpr(0), tl.constexpr(1), tl.constexpr(2)

_COMPARES = {0: "CMP_EQ", 1: "CMP_NE", 2: "CMP_GT", 3: "CMP_LE", 4: "CMP_LT", 5: "CMP_GE"}
_OPERATIONS = {9: "SIGNAL_SET", 10: "SIGNAL_ADD"}


def _constant(value):
    """The value of a constant; None for what is known at run time only."""
    value = value.value if isinstance(value, tl.constexpr) else value
    return value if isinstance(value, (bool, int, float, str)) else None


def _is_lossless(source, dest):
    """Whether each value of one type is one of the other."""
    if source == dest:
        return True
    if source.is_floating():
        return dest.is_floating() and (str(source), str(dest)) in (("fp16", "fp32"), ("fp16", "fp64"), ("bf16", "fp32"), ("bf16", "fp64"),
                                                                   ("fp32", "fp64"))
    if not (source.is_int() and dest.is_int()):
        return False
    if source.is_int_signed() or source.is_bool():
        return dest.is_int_signed() and source.int_bitwidth <= dest.int_bitwidth
    return source.int_bitwidth < dest.int_bitwidth or (source.int_bitwidth == dest.int_bitwidth and not dest.is_int_signed())


class _Call:
    """One call in a kernel that is compiled. Its methods check arguments, by their names and places."""

    def __init__(self, name, semantic, **arguments):
        self.name = name
        self.semantic = semantic
        self.arguments = arguments

    def refuse(self, name, needed, remedy=""):
        value = self.arguments[name]
        constant = _constant(value)
        got = repr(constant) if constant is not None else getattr(value, "type", type(value).__name__)
        place = list(self.arguments).index(name) + 1
        raise TypeError(f"oxshmem_triton.{self.name}: argument {place}, `{name}`, is {got}; {needed} is needed{remedy}")

    def scalar(self, name, dtype):
        """An argument as a value of `dtype`."""
        value = self.arguments[name]
        constant = _constant(value)
        if constant is not None:
            if dtype.is_floating():
                if isinstance(constant, (bool, str)):
                    self.refuse(name, str(dtype))
                return self.semantic.scalar_constant(float(constant), dtype)
            bits = dtype.int_bitwidth
            least, most = (-(1 << bits - 1), (1 << bits - 1) - 1) if dtype.is_int_signed() else (0, (1 << bits) - 1)
            if isinstance(constant, (bool, str, float)) or not least <= constant <= most:
                self.refuse(name, f"{dtype}, from {least} to {most},")
            return self.semantic.scalar_constant(constant, dtype)
        if not isinstance(value, tl.tensor) or value.type.is_block() or value.dtype.is_ptr():
            self.refuse(name, f"one {dtype}")
        if not _is_lossless(value.dtype, dtype):
            self.refuse(name, str(dtype), f": {name}.to(tl.{_spelled(dtype)}), if no value is lost")
        return self.semantic.cast(value, dtype)

    def size(self, name):
        constant = _constant(self.arguments[name])
        if isinstance(constant, int) and constant < 0:
            self.refuse(name, "a number from 0 on")
        return self.scalar(name, tl.int64)

    def int32(self, name):
        return self.scalar(name, tl.int32)

    def one_of(self, name, numbers):
        constant = _constant(self.arguments[name])
        if isinstance(constant, bool) or constant not in numbers:
            self.refuse(name, "one of the constants " + ", ".join(numbers.values()))
        return self.scalar(name, tl.int32)

    def word(self, name):
        """A number of 64 bits. Both signed and unsigned ones are taken as they are."""
        value = self.arguments[name]
        constant = _constant(value)
        if constant is None and isinstance(value, tl.tensor) and value.dtype.is_int_signed():
            return self.scalar(name, tl.int64)
        if isinstance(constant, int) and constant < 0:
            return self.scalar(name, tl.int64)
        return self.semantic.bitcast(self.scalar(name, tl.uint64), tl.int64)

    def pointer(self, name, elements=None):
        """An address of elements of given types, and their type."""
        value = self.arguments[name]
        needed = "a pointer" if elements is None else "a pointer to " + " or ".join(str(each) for each in elements)
        if not isinstance(value, tl.tensor) or value.type.is_block() or not value.dtype.is_ptr():
            self.refuse(name, needed)
        element = value.dtype.element_ty
        if elements is not None and element not in elements:
            self.refuse(name, needed)
        return self.semantic.cast(value, tl.int64), element

    def pair(self, dest, source):
        """Two addresses of elements of one type, and that type."""
        to, element = self.pointer(dest)
        start, other = self.pointer(source)
        if element != other:
            self.refuse(source, f"a pointer to {element}, as `{dest}` is,")
        return to, start, element

    def bytes(self, name, element):
        """A number of elements, as one of bytes."""
        return self.semantic.mul(self.size(name), self.semantic.scalar_constant(_width(element) // 8, tl.int64), False)

    def bits(self, name, element):
        """A value of the type of elements, as an integer of 32 or 64 bits."""
        value = self.scalar(name, element)
        width = _width(element)
        value = self.semantic.bitcast(value, _unsigned(width)) if value.dtype != _unsigned(width) else value
        return self.semantic.bitcast(self.semantic.cast(value, tl.uint64 if width == 64 else tl.uint32),
                                     tl.int64 if width == 64 else tl.int32)

    def from_bits(self, result, element):
        """A result of 32 or 64 bits, as a value of the type of elements."""
        width = _width(element)
        unsigned = self.semantic.cast(self.semantic.bitcast(result, tl.uint64 if width == 64 else tl.uint32), _unsigned(width))
        return self.semantic.bitcast(unsigned, element)

    def element(self, name, element, types):
        if str(element) not in types:
            self.refuse(name, "a pointer to " + ", ".join(types))
        return TYPE_NAMES[str(element)]

    def make(self, symbol, *arguments, is_pure=False):
        """Calls a function of the bitcode. The types of its arguments are right here, or this package has a fault."""
        params, bits = SYMBOLS[symbol]
        given = "".join({tl.int32: "i", tl.int64: "l"}[argument.dtype] for argument in arguments)
        assert given == params, f"oxshmem_triton: {symbol} takes {params} and is given {given}"
        result = tl.int32 if bits == 32 else tl.int64
        types = tuple(argument.dtype for argument in arguments)
        return core.extern_elementwise("", "", list(arguments), {types: (PREFIX + symbol, result)}, is_pure=is_pure,
                                       _semantic=self.semantic)

    def constant(self, number):
        return self.semantic.scalar_constant(number, tl.int32)


def _width(element):
    return 64 if element.is_ptr() else 8 if element.is_bool() else element.primitive_bitwidth


def _unsigned(width):
    return {8: tl.uint8, 16: tl.uint16, 32: tl.uint32, 64: tl.uint64}[width]


def _spelled(dtype):
    return {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "fp64": "float64"}.get(str(dtype), str(dtype))


@core.extern
def my_pe(_semantic=None):
    """This PE's number."""
    return _Call("my_pe", _semantic).make("my_pe", is_pure=True)


@core.extern
def n_pes(_semantic=None):
    """The number of PEs."""
    return _Call("n_pes", _semantic).make("n_pes", is_pure=True)


@core.extern
def team_my_pe(team, _semantic=None):
    """This PE's number in a team; -1 if it is none of its members."""
    call = _Call("team_my_pe", _semantic, team=team)
    return call.make("team_my_pe", call.int32("team"))


@core.extern
def team_n_pes(team, _semantic=None):
    """The number of a team's members."""
    call = _Call("team_n_pes", _semantic, team=team)
    return call.make("team_n_pes", call.int32("team"))


@core.extern
def team_translate_pe(source_team, pe, dest_team, _semantic=None):
    """The number in `dest_team` of a member of `source_team`; -1 if it is no member."""
    call = _Call("team_translate_pe", _semantic, source_team=source_team, pe=pe, dest_team=dest_team)
    return call.make("team_translate_pe", call.int32("source_team"), call.int32("pe"), call.int32("dest_team"))


@core.extern
def ptr(symmetric, pe, _semantic=None):
    """The address of PE `pe`'s copy of a symmetric object, for loads and stores; 0 if its memory is not mapped here."""
    call = _Call("ptr", _semantic, symmetric=symmetric, pe=pe)
    at, _ = call.pointer("symmetric")
    return _semantic.cast(call.make("ptr", at, call.int32("pe")), symmetric.dtype)


def _copy(name, symbol, dest, source, n, pe, semantic):
    call = _Call(name, semantic, dest=dest, source=source, n=n, pe=pe)
    to, start, element = call.pair("dest", "source")
    return call.make(symbol, to, start, call.bytes("n", element), call.int32("pe"))


@core.extern
def put(dest, source, n, pe, _semantic=None):
    """Copies `n` elements to PE `pe`. The source may be changed afterwards."""
    return _copy("put", "putmem", dest, source, n, pe, _semantic)


@core.extern
def put_nbi(dest, source, n, pe, _semantic=None):
    """Copies `n` elements to PE `pe`. The source may be changed after `quiet` or `flush`."""
    return _copy("put_nbi", "putmem_nbi", dest, source, n, pe, _semantic)


@core.extern
def get(dest, source, n, pe, _semantic=None):
    """Copies `n` elements from PE `pe`."""
    return _copy("get", "getmem", dest, source, n, pe, _semantic)


@core.extern
def get_nbi(dest, source, n, pe, _semantic=None):
    """Copies `n` elements from PE `pe`. They are there after `quiet`."""
    return _copy("get_nbi", "getmem_nbi", dest, source, n, pe, _semantic)


def _copy_bytes(name, dest, source, bytes, pe, semantic):
    call = _Call(name, semantic, dest=dest, source=source, bytes=bytes, pe=pe)
    return call.make(name, call.pointer("dest")[0], call.pointer("source")[0], call.size("bytes"), call.int32("pe"))


@core.extern
def putmem(dest, source, bytes, pe, _semantic=None):
    """`put` by bytes, of pointers to any types."""
    return _copy_bytes("putmem", dest, source, bytes, pe, _semantic)


@core.extern
def putmem_nbi(dest, source, bytes, pe, _semantic=None):
    """`put_nbi` by bytes, of pointers to any types."""
    return _copy_bytes("putmem_nbi", dest, source, bytes, pe, _semantic)


@core.extern
def getmem(dest, source, bytes, pe, _semantic=None):
    """`get` by bytes, of pointers to any types."""
    return _copy_bytes("getmem", dest, source, bytes, pe, _semantic)


@core.extern
def getmem_nbi(dest, source, bytes, pe, _semantic=None):
    """`get_nbi` by bytes, of pointers to any types."""
    return _copy_bytes("getmem_nbi", dest, source, bytes, pe, _semantic)


def _strided(name, dest, source, dest_stride, source_stride, n, pe, semantic):
    call = _Call(name, semantic, dest=dest, source=source, dest_stride=dest_stride, source_stride=source_stride, n=n, pe=pe)
    to, start, element = call.pair("dest", "source")
    return call.make(f"{name}{_width(element)}", to, start, call.size("dest_stride"), call.size("source_stride"), call.size("n"),
                     call.int32("pe"))


@core.extern
def iput(dest, source, dest_stride, source_stride, n, pe, _semantic=None):
    """Copies `n` elements to PE `pe`, at distances of so many elements."""
    return _strided("iput", dest, source, dest_stride, source_stride, n, pe, _semantic)


@core.extern
def iget(dest, source, dest_stride, source_stride, n, pe, _semantic=None):
    """Copies `n` elements from PE `pe`, at distances of so many elements."""
    return _strided("iget", dest, source, dest_stride, source_stride, n, pe, _semantic)


@core.extern
def p(dest, value, pe, _semantic=None):
    """Stores one value at PE `pe`, whole."""
    call = _Call("p", _semantic, dest=dest, value=value, pe=pe)
    to, element = call.pointer("dest")
    return call.make(f"p{_width(element)}", to, call.bits("value", element), call.int32("pe"))


@core.extern
def g(source, pe, _semantic=None):
    """One value of PE `pe`, loaded whole."""
    call = _Call("g", _semantic, source=source, pe=pe)
    start, element = call.pointer("source")
    return call.from_bits(call.make(f"g{_width(element)}", start, call.int32("pe")), element)


_SIGNALS = (tl.int64, tl.uint64)


def _put_signal(name, dest, source, n, signal, value, operation, pe, semantic):
    call = _Call(name, semantic, dest=dest, source=source, n=n, signal=signal, value=value, operation=operation, pe=pe)
    to, start, element = call.pair("dest", "source")
    return call.make(name, to, start, call.bytes("n", element), call.pointer("signal", _SIGNALS)[0], call.word("value"),
                     call.one_of("operation", _OPERATIONS), call.int32("pe"))


@core.extern
def put_signal(dest, source, n, signal, value, operation, pe, _semantic=None):
    """`put`, then a signal: SIGNAL_SET sets it to the value, SIGNAL_ADD adds it."""
    return _put_signal("put_signal", dest, source, n, signal, value, operation, pe, _semantic)


@core.extern
def put_signal_nbi(dest, source, n, signal, value, operation, pe, _semantic=None):
    """`put_nbi`, then a signal: SIGNAL_SET sets it to the value, SIGNAL_ADD adds it."""
    return _put_signal("put_signal_nbi", dest, source, n, signal, value, operation, pe, _semantic)


@core.extern
def signal_op(signal, value, operation, pe, _semantic=None):
    """A signal alone. It orders nothing before it; `fence` does."""
    call = _Call("signal_op", _semantic, signal=signal, value=value, operation=operation, pe=pe)
    return call.make("signal_op", call.pointer("signal", _SIGNALS)[0], call.word("value"), call.one_of("operation", _OPERATIONS),
                     call.int32("pe"))


@core.extern
def signal_fetch(signal, _semantic=None):
    """The value of a signal of this PE."""
    call = _Call("signal_fetch", _semantic, signal=signal)
    at, element = call.pointer("signal", _SIGNALS)
    return call.from_bits(call.make("signal_fetch", at), element)


@core.extern
def signal_wait_until(signal, cmp, value, _semantic=None):
    """Waits for a signal of this PE. Gives the value at which the wait ended."""
    call = _Call("signal_wait_until", _semantic, signal=signal, cmp=cmp, value=value)
    at, element = call.pointer("signal", _SIGNALS)
    return call.from_bits(call.make("signal_wait_until", at, call.one_of("cmp", _COMPARES), call.word("value")), element)


_WAITS = ("int32", "uint32", "int64", "uint64")


@core.extern
def wait_until(word, cmp, value, _semantic=None):
    """Waits until a word of this PE compares as told with the value."""
    call = _Call("wait_until", _semantic, word=word, cmp=cmp, value=value)
    at, element = call.pointer("word")
    name = call.element("word", element, _WAITS)
    return call.make(f"{name}_wait_until", at, call.one_of("cmp", _COMPARES), call.bits("value", element))


@core.extern
def wait_until_all(words, n, cmp, value, _semantic=None):
    """Waits until all of `n` words compare as told with the value."""
    call = _Call("wait_until_all", _semantic, words=words, n=n, cmp=cmp, value=value)
    at, element = call.pointer("words")
    name = call.element("words", element, _WAITS)
    return call.make(f"{name}_wait_until_all", at, call.size("n"), call.one_of("cmp", _COMPARES), call.bits("value", element))


@core.extern
def wait_until_any(words, n, cmp, value, _semantic=None):
    """Waits until one of `n` words compares as told with the value. Gives its index; -1 if `n` is 0."""
    call = _Call("wait_until_any", _semantic, words=words, n=n, cmp=cmp, value=value)
    at, element = call.pointer("words")
    name = call.element("words", element, _WAITS)
    return call.make(f"{name}_wait_until_any", at, call.size("n"), call.one_of("cmp", _COMPARES), call.bits("value", element))


@core.extern
def test(word, cmp, value, _semantic=None):
    """1 if a word of this PE compares as told with the value, else 0."""
    call = _Call("test", _semantic, word=word, cmp=cmp, value=value)
    at, element = call.pointer("word")
    name = call.element("word", element, _WAITS)
    return call.make(f"{name}_test", at, call.one_of("cmp", _COMPARES), call.bits("value", element))


_WORDS = ("int32", "uint32", "int64", "uint64")
_VALUES = (*_WORDS, "fp32", "fp64")


def _atomic(operation, types, semantic, dest, pe, **values):
    name = f"atomic_{operation}"
    call = _Call(name, semantic, dest=dest, **values, pe=pe)
    at, element = call.pointer("dest")
    call.element("dest", element, types)
    none = semantic.scalar_constant(0, tl.int64 if _width(element) == 64 else tl.int32)
    value, compare = (call.bits(each, element) if each in values else none for each in ("value", "compare"))
    number = call.constant(ATOMICS.index(operation))
    result = call.make(f"atomic{_width(element)}", number, at, value, compare, call.int32("pe"))
    return call.from_bits(result, element) if operation in ATOMICS[:8] and operation != "set" else None


@core.extern
def atomic_fetch(dest, pe, _semantic=None):
    """The value of a word of PE `pe`."""
    return _atomic("fetch", _VALUES, _semantic, dest, pe)


@core.extern
def atomic_set(dest, value, pe, _semantic=None):
    """Sets a word of PE `pe`."""
    return _atomic("set", _VALUES, _semantic, dest, pe, value=value)


@core.extern
def atomic_swap(dest, value, pe, _semantic=None):
    """Sets a word of PE `pe`, and gives its old value."""
    return _atomic("swap", _VALUES, _semantic, dest, pe, value=value)


@core.extern
def atomic_compare_swap(dest, compare, value, pe, _semantic=None):
    """Sets a word of PE `pe` if it is `compare`, and gives its old value."""
    return _atomic("compare_swap", _WORDS, _semantic, dest, pe, compare=compare, value=value)


@core.extern
def atomic_add(dest, value, pe, _semantic=None):
    """Adds to a word of PE `pe`."""
    return _atomic("add", _WORDS, _semantic, dest, pe, value=value)


@core.extern
def atomic_and(dest, value, pe, _semantic=None):
    """Keeps those bits of a word of PE `pe`."""
    return _atomic("and", _WORDS, _semantic, dest, pe, value=value)


@core.extern
def atomic_or(dest, value, pe, _semantic=None):
    """Sets those bits of a word of PE `pe`."""
    return _atomic("or", _WORDS, _semantic, dest, pe, value=value)


@core.extern
def atomic_xor(dest, value, pe, _semantic=None):
    """Changes those bits of a word of PE `pe`."""
    return _atomic("xor", _WORDS, _semantic, dest, pe, value=value)


@core.extern
def atomic_fetch_add(dest, value, pe, _semantic=None):
    """Adds to a word of PE `pe`, and gives its old value."""
    return _atomic("fetch_add", _WORDS, _semantic, dest, pe, value=value)


@core.extern
def atomic_fetch_and(dest, value, pe, _semantic=None):
    """Keeps those bits of a word of PE `pe`, and gives its old value."""
    return _atomic("fetch_and", _WORDS, _semantic, dest, pe, value=value)


@core.extern
def atomic_fetch_or(dest, value, pe, _semantic=None):
    """Sets those bits of a word of PE `pe`, and gives its old value."""
    return _atomic("fetch_or", _WORDS, _semantic, dest, pe, value=value)


@core.extern
def atomic_fetch_xor(dest, value, pe, _semantic=None):
    """Changes those bits of a word of PE `pe`, and gives its old value."""
    return _atomic("fetch_xor", _WORDS, _semantic, dest, pe, value=value)


@core.extern
def fence(_semantic=None):
    """Orders what the program did before with what it does later, for each PE."""
    return _Call("fence", _semantic).make("fence")


@core.extern
def quiet(_semantic=None):
    """Completes all that the program did before."""
    return _Call("quiet", _semantic).make("quiet")


@core.extern
def flush(_semantic=None):
    """Waits until the sources of all puts before may be changed."""
    return _Call("flush", _semantic).make("flush")


@core.extern
def barrier(team, _semantic=None):
    """A quiet of each member of the team, then `sync`. One program of each PE makes it."""
    call = _Call("barrier", _semantic, team=team)
    return call.make("barrier", call.int32("team"))


@core.extern
def sync(team, _semantic=None):
    """Waits until all members of the team have come. One program of each PE makes it."""
    call = _Call("sync", _semantic, team=team)
    return call.make("sync", call.int32("team"))


@core.extern
def barrier_all(_semantic=None):
    """`barrier` of all PEs."""
    call = _Call("barrier_all", _semantic)
    return call.make("barrier", call.constant(TEAM_WORLD.value))


@core.extern
def sync_all(_semantic=None):
    """`sync` of all PEs."""
    call = _Call("sync_all", _semantic)
    return call.make("sync", call.constant(TEAM_WORLD.value))


@core.extern
def broadcast(team, dest, source, n, root, _semantic=None):
    """Copies the root's `n` elements to all members. Gives 0, or -1 after an error."""
    call = _Call("broadcast", _semantic, team=team, dest=dest, source=source, n=n, root=root)
    to, start, element = call.pair("dest", "source")
    return call.make("broadcastmem", call.int32("team"), to, start, call.bytes("n", element), call.int32("root"))


def _gather(name, team, dest, source, n, semantic):
    call = _Call(name, semantic, team=team, dest=dest, source=source, n=n)
    to, start, element = call.pair("dest", "source")
    return call.make(f"{name}mem", call.int32("team"), to, start, call.bytes("n", element))


@core.extern
def fcollect(team, dest, source, n, _semantic=None):
    """Copies `n` elements of each member to all members, in their order. Gives 0, or -1 after an error."""
    return _gather("fcollect", team, dest, source, n, _semantic)


@core.extern
def alltoall(team, dest, source, n, _semantic=None):
    """Copies block i of the source, `n` elements, to member i. Gives 0, or -1 after an error."""
    return _gather("alltoall", team, dest, source, n, _semantic)


def _fold(name, team, dest, source, n, operation, semantic):
    call = _Call(name, semantic, team=team, dest=dest, source=source, n=n, operation=operation)
    to, start, element = call.pair("dest", "source")
    type_name = call.element("dest", element, tuple(TYPE_NAMES))
    operations = ARITHMETIC + (BITWISE if element.is_int() else ())
    if _constant(operation) not in operations:
        call.refuse("operation", f"one of {', '.join(operations)}, for {element},")
    return call.make(f"{type_name}_{_constant(operation)}_{name}", call.int32("team"), to, start, call.size("n"))


@core.extern
def reduce(team, dest, source, n, operation, _semantic=None):
    """Folds `n` elements of all members; each gets all results. `operation`: sum, prod, min, max; and, or, xor of integers.
    Gives 0, or -1 after an error."""
    return _fold("reduce", team, dest, source, n, operation, _semantic)


@core.extern
def reducescatter(team, dest, source, n, operation, _semantic=None):
    """Folds all members' sources; member i gets block i of `n` elements. Gives 0, or -1 after an error."""
    return _fold("reducescatter", team, dest, source, n, operation, _semantic)
