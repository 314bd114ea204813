"""Compiles Triton kernels that make every call of oxshmem_triton, for a GPU that need not be there, and looks at their PTX; then
kernels with arguments of wrong types, each of which must be refused with an error that names the argument.

    triton_kernels.py BITCODE BITCODE_AS_TEXT
"""

import re
import sys

import triton
import triton.language as tl
from triton.language import core
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

import oxshmem_triton as shmem
from oxshmem_triton import symbols


@triton.jit
def copies(dest, source, n, signal, pe):
    shmem.put(dest, source, n, pe)
    shmem.put_nbi(dest, source, n, pe)
    shmem.get(dest, source, n, pe)
    shmem.get_nbi(dest, source, n, pe)
    shmem.putmem(dest, source, n, pe)
    shmem.putmem_nbi(dest, source, n, pe)
    shmem.getmem(dest, source, n, pe)
    shmem.getmem_nbi(dest, source, n, pe)
    shmem.iput(dest, source, 2, 3, n, pe)
    shmem.iget(dest, source, 2, 3, n, pe)
    shmem.put_signal(dest, source, n, signal, 1, shmem.SIGNAL_SET, pe)
    shmem.put_signal_nbi(dest, source, n, signal, 1, shmem.SIGNAL_ADD, pe)
    shmem.fence()
    shmem.quiet()
    shmem.flush()
    shmem.p(dest, shmem.g(source, pe), pe)
    tl.store(dest, tl.load(shmem.ptr(source, pe)))


@triton.jit
def words(word, value, pe):
    seen = shmem.atomic_fetch(word, pe)
    shmem.atomic_set(word, value, pe)
    seen += shmem.atomic_swap(word, value, pe)
    seen += shmem.atomic_compare_swap(word, value, seen, pe)
    shmem.atomic_add(word, value, pe)
    shmem.atomic_and(word, value, pe)
    shmem.atomic_or(word, value, pe)
    shmem.atomic_xor(word, value, pe)
    seen += shmem.atomic_fetch_add(word, value, pe)
    seen += shmem.atomic_fetch_and(word, value, pe)
    seen += shmem.atomic_fetch_or(word, value, pe)
    seen += shmem.atomic_fetch_xor(word, value, pe)
    shmem.wait_until(word, shmem.CMP_GE, value)
    shmem.wait_until_all(word, 3, shmem.CMP_NE, value)
    found = shmem.wait_until_any(word, 3, shmem.CMP_LT, value)
    if shmem.test(word, shmem.CMP_EQ, value):
        tl.store(word + found, seen)


@triton.jit
def values(word, value, pe):
    shmem.atomic_set(word, value, pe)
    tl.store(word, shmem.atomic_swap(word, value, pe) + shmem.atomic_fetch(word, pe))
    shmem.p(word, 1.5, pe)


@triton.jit
def signals(signal, value, pe):
    shmem.signal_op(signal, value, shmem.SIGNAL_ADD, pe)
    seen = shmem.signal_wait_until(signal, shmem.CMP_GT, value)
    tl.store(signal, seen + shmem.signal_fetch(signal))


@triton.jit
def collectives(dest, source, n, team):
    shmem.barrier(team)
    shmem.sync(team)
    shmem.barrier_all()
    shmem.sync_all()
    member = shmem.team_translate_pe(team, shmem.my_pe(), shmem.TEAM_WORLD)
    if member < shmem.n_pes() and shmem.team_my_pe(team) < shmem.team_n_pes(team):
        failed = shmem.broadcast(team, dest, source, n, 0)
        failed += shmem.fcollect(team, dest, source, n)
        failed += shmem.alltoall(team, dest, source, n)
        tl.store(dest, failed.to(dest.dtype.element_ty))


@triton.jit
def folds(dest, source, n, operation: tl.constexpr):
    shmem.reduce(shmem.TEAM_WORLD, dest, source, n, operation)
    shmem.reducescatter(shmem.TEAM_WORLD, dest, source, n, operation)


# A program's own work round the calls: a halo of two blocks, as programs write them.
@triton.jit
def halo(dest, source, signal, n, BLOCK: tl.constexpr):
    right = (shmem.my_pe() + 1) % shmem.n_pes()
    at = tl.arange(0, BLOCK)
    tl.store(source + at, tl.load(source + at, at < n, 0) * 2, at < n)
    shmem.put_signal(dest, source, n, signal, 1, shmem.SIGNAL_ADD, right)
    shmem.signal_wait_until(signal, shmem.CMP_GE, 1)
    tl.store(source + at, tl.load(dest + at, at < n, 0) + 1, at < n)


# NVSHMEM's own names, as torch's and other packages' kernels declare them: addresses are int64, each result is int32.
@core.extern
def plain(name, types, a, b, c, d, e, f, g, _semantic=None):
    types = tuple(core.dtype({"i": "int32", "l": "int64"}[kind]) for kind in types.value)
    arguments = [_semantic.cast(each, kind) for each, kind in zip((a, b, c, d, e, f, g), types)]
    return core.extern_elementwise("", "", arguments, {types: (name.value, core.dtype("int32"))}, is_pure=False, _semantic=_semantic)


@triton.jit
def by_name(a, b, c, d, e, f, g, name: tl.constexpr, types: tl.constexpr):
    plain(name, types, a, b, c, d, e, f, g)


PLAIN = {
    "nvshmem_my_pe": "", "nvshmem_n_pes": "", "nvshmem_fence": "", "nvshmem_quiet": "", "nvshmem_barrier_all": "", "nvshmem_sync_all": "",
    "nvshmemx_barrier_all_block": "", "nvshmemx_putmem_block": "llli", "nvshmemx_getmem_block": "llli", "nvshmemx_getmem_nbi_block": "llli",
    "nvshmemx_putmem_signal_block": "lllllii", "nvshmemx_signal_op": "llii", "nvshmem_signal_wait_until": "lil",
    "nvshmem_int_wait_until": "lii", "nvshmem_longlong_wait_until": "lil", "nvshmemx_alltoallmem_block": "illl",
    "nvshmemx_fcollectmem_block": "illl", "nvshmemx_broadcastmem_block": "illli", "nvshmem_int32_sum_reduce": "illl",
    "nvshmem_half_max_reduce": "illl", "nvshmem_bfloat16_prod_reduce": "illl", "nvshmemx_float_min_reduce_block": "illl", "nvshmem_ptr": "li",
    "nvshmem_int_p": "lii", "nvshmemx_team_sync_block": "i",
}


def compiled(kernel, signature, constants=None, warps=4):
    types = {name: kind for name, kind in signature.items()}
    for name in constants or {}:
        types[name] = "constexpr"
    order = {name: types[name] for name in kernel.arg_names}
    places = {(kernel.arg_names.index(name),): value for name, value in (constants or {}).items()}
    source = ASTSource(fn=kernel, signature=order, constexprs=places)
    return triton.compile(source, target=GPUTarget("cuda", 90, 32),
                          options={"extern_libs": {"libnvshmem_device": bitcode}, "num_warps": warps})


def look(what, kernel):
    """No call leads out of the module, the state is there by its name, and no function of this package is left uninlined."""
    ptx = kernel.asm["ptx"]
    outside = re.findall(r"^\s*\.extern \.func.*$", ptx, re.M)
    assert not outside, f"{what}: {outside}"
    assert re.search(r"^\.visible \.const .*\boxshmem_state\b", ptx, re.M), f"{what}: oxshmem_state is not in the PTX"
    left = [line for line in ptx.splitlines() if re.search(r"\bcall\b", line) and symbols.PREFIX in line]
    assert not left, f"{what}: {left}"
    # A call with other types than the function has would be made by its address.
    assert "prototype_" not in ptx, f"{what}: a call with wrong types"
    sizes.append((what, len(ptx), len(kernel.asm["cubin"])))


def refused(kernel, signature, expected, constants=None):
    try:
        compiled(kernel, signature, constants)
    except triton.CompilationError as error:
        told = f"{error}"
        assert re.search(expected, told), f"{kernel.__name__} {signature}: the error is not of {expected!r}:\n{told}"
        return
    raise AssertionError(f"{kernel.__name__} {signature} {constants}: no error, and {expected!r} was expected")


@triton.jit
def put_alone(dest, source, n, pe):
    shmem.put(dest, source, n, pe)


@triton.jit
def put_by_float(dest, source, n, pe):
    shmem.put(dest, source, 2.5, pe)


@triton.jit
def put_negative(dest, source, n, pe):
    shmem.put(dest, source, -1, pe)


@triton.jit
def put_of_block(dest, source, n, pe):
    shmem.put(dest + tl.arange(0, 16), source, n, pe)


@triton.jit
def put_to_number(dest, source, n, pe):
    shmem.put(n, source, n, pe)


@triton.jit
def p_alone(dest, value, pe):
    shmem.p(dest, value, pe)


@triton.jit
def p_too_big(dest, value, pe):
    shmem.p(dest, 300, pe)


@triton.jit
def signal_alone(signal, operation, pe):
    shmem.signal_op(signal, 1, operation, pe)


@triton.jit
def wait_alone(word, value, cmp: tl.constexpr):
    shmem.wait_until(word, cmp, value)


@triton.jit
def add_alone(word, value, pe):
    shmem.atomic_add(word, value, pe)


@triton.jit
def fold_alone(dest, source, operation: tl.constexpr):
    shmem.reduce(shmem.TEAM_WORLD, dest, source, 4, operation)


def check_types_against_bitcode(text):
    """The functions of the bitcode are those of this package's list, with the types of the list."""
    kinds = {"i32": "i", "i64": "l"}
    found = {}
    for bits, name, params in re.findall(r"^define [^@]*\bi(\d+) @" + symbols.PREFIX + r"(\w+)\(([^)]*)\)", text, re.M):
        found[name] = ("".join(kinds[param.split()[0]] for param in params.split(", ") if param), int(bits))
    assert found == symbols.SYMBOLS, {name: (found.get(name), symbols.SYMBOLS.get(name))
                                      for name in found.keys() ^ symbols.SYMBOLS.keys()
                                      | {each for each in found.keys() & symbols.SYMBOLS.keys()
                                         if found[each] != symbols.SYMBOLS[each]}}


bitcode, text = sys.argv[1:]
sizes = []
with open(text) as file:
    check_types_against_bitcode(file.read())

NAMES = {"int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "uint8": "u8", "uint16": "u16", "uint32": "u32",
         "uint64": "u64", "fp16": "fp16", "bf16": "bf16", "fp32": "fp32", "fp64": "fp64"}
assert NAMES.keys() == symbols.TYPE_NAMES.keys()
for name in NAMES.values():
    look(f"copies of {name}", compiled(copies, {"dest": f"*{name}", "source": f"*{name}", "n": "i32", "signal": "*u64", "pe": "i32"}))
for name in ("i32", "u32", "i64", "u64"):
    look(f"words of {name}", compiled(words, {"word": f"*{name}", "value": name, "pe": "i32"}))
for name in ("fp32", "fp64"):
    look(f"values of {name}", compiled(values, {"word": f"*{name}", "value": name, "pe": "i32"}))
for name in ("i64", "u64"):
    look(f"signals of {name}", compiled(signals, {"signal": f"*{name}", "value": name, "pe": "i32"}))
look("collectives", compiled(collectives, {"dest": "*fp32", "source": "*fp32", "n": "i64", "team": "i32"}))
for triton_name, name in NAMES.items():
    for operation in symbols.ARITHMETIC + (symbols.BITWISE if "int" in triton_name else ()):
        signature = {"dest": f"*{name}", "source": f"*{name}", "n": "i64"}
        look(f"{operation} of {name}", compiled(folds, signature, {"operation": operation}))
for warps in (1, 4, 8):
    signature = {"dest": "*fp32", "source": "*fp32", "signal": "*i64", "n": "i32"}
    look(f"halo of {warps} warps", compiled(halo, signature, {"BLOCK": 1024}, warps))

numbers = dict.fromkeys("abcdefg", "i64")
for name, types in PLAIN.items():
    look(name, compiled(by_name, numbers, {"name": name, "types": types}))
# Wrong types in such a declaration are a call by address: that is what `look` finds, and what this package is for.
wrong = compiled(by_name, numbers, {"name": "nvshmemx_putmem_block", "types": "llll"})
assert "prototype_" in wrong.asm["ptx"], "a call with wrong types is not what it was"

pointers = {"dest": "*fp32", "source": "*fp32"}
refused(put_alone, {**pointers, "n": "i64", "pe": "i64"}, r"oxshmem_triton\.put: argument 4, `pe`, is int64; int32 is needed: pe\.to\(tl\.int32\)")
refused(put_alone, {**pointers, "n": "u64", "pe": "i32"}, r"argument 3, `n`, is uint64; int64 is needed")
refused(put_alone, {**pointers, "n": "fp32", "pe": "i32"}, r"argument 3, `n`, is fp32; int64 is needed")
refused(put_alone, {**pointers, "n": "i32", "pe": "*i32"}, r"argument 4, `pe`, is pointer<int32>; one int32 is needed")
refused(put_alone, {"dest": "*fp32", "source": "*fp16", "n": "i32", "pe": "i32"},
        r"argument 2, `source`, is pointer<fp16>; a pointer to fp32, as `dest` is, is needed")
refused(put_by_float, {**pointers, "n": "i32", "pe": "i32"}, r"argument 3, `n`, is 2\.5; int64, from .* is needed")
refused(put_negative, {**pointers, "n": "i32", "pe": "i32"}, r"argument 3, `n`, is -1; a number from 0 on is needed")
refused(put_of_block, {**pointers, "n": "i32", "pe": "i32"}, r"argument 1, `dest`, is <\['?16'?\], pointer<fp32>>; a pointer is needed")
refused(put_to_number, {**pointers, "n": "i32", "pe": "i32"}, r"argument 1, `dest`, is int32; a pointer is needed")
refused(p_alone, {"dest": "*i32", "value": "i64", "pe": "i32"}, r"oxshmem_triton\.p: argument 2, `value`, is int64; int32 is needed")
refused(p_alone, {"dest": "*fp32", "value": "i32", "pe": "i32"}, r"argument 2, `value`, is int32; fp32 is needed: value\.to\(tl\.float32\)")
refused(p_alone, {"dest": "*fp32", "value": "fp64", "pe": "i32"}, r"argument 2, `value`, is fp64; fp32 is needed")
refused(p_too_big, {"dest": "*i8", "value": "i8", "pe": "i32"}, r"argument 2, `value`, is 300; int8, from -128 to 127, is needed")
refused(signal_alone, {"signal": "*i32", "pe": "i32"}, r"argument 1, `signal`, is pointer<int32>; a pointer to int64 or uint64 is needed",
        {"operation": 9})
refused(signal_alone, {"signal": "*i64", "pe": "i32"}, r"argument 3, `operation`, is 0; one of the constants SIGNAL_SET, SIGNAL_ADD",
        {"operation": 0})
refused(signal_alone, {"signal": "*i64", "operation": "i32", "pe": "i32"}, r"argument 3, `operation`, is int32; one of the constants")
refused(wait_alone, {"word": "*i32", "value": "i32"}, r"argument 2, `cmp`, is 6; one of the constants CMP_EQ,", {"cmp": 6})
refused(wait_alone, {"word": "*i16", "value": "i16"}, r"argument 1, `word`, is pointer<int16>; a pointer to int32, uint32,", {"cmp": 0})
refused(add_alone, {"word": "*fp32", "value": "fp32", "pe": "i32"}, r"argument 1, `dest`, is pointer<fp32>; a pointer to int32,")
refused(fold_alone, pointers, r"argument 5, `operation`, is 'xor'; one of sum, prod, min, max, for fp32,", {"operation": "xor"})

largest = max(sizes, key=lambda each: each[2])
print(f"{len(sizes)} kernels for sm_90: no call leads out of a module; the largest, {largest[0]}: PTX {largest[1]}, cubin {largest[2]} bytes")
