"""The functions of the bitcode that this package calls, with the types of their parameters and results.

ci/test-triton compares them with the bitcode (core/nvshmem/bitcode/block.cuh).
"""

PREFIX = "oxshmem_block_"

# In the order of `Atomic` in block.cuh.
ATOMICS = ("fetch", "set", "swap", "compare_swap", "fetch_add", "fetch_and", "fetch_or", "fetch_xor", "add", "and", "or", "xor")

# NVSHMEM's names of Triton's types.
TYPE_NAMES = {
    "int8": "int8",
    "int16": "int16",
    "int32": "int32",
    "int64": "int64",
    "uint8": "uint8",
    "uint16": "uint16",
    "uint32": "uint32",
    "uint64": "uint64",
    "fp16": "half",
    "bf16": "bfloat16",
    "fp32": "float",
    "fp64": "double",
}
BITWISE = ("and", "or", "xor")
ARITHMETIC = ("sum", "prod", "min", "max")


def _symbols():
    table = {
        "my_pe": ("", 32),
        "n_pes": ("", 32),
        "team_my_pe": ("i", 32),
        "team_n_pes": ("i", 32),
        "team_translate_pe": ("iii", 32),
        "ptr": ("li", 64),
        "signal_op": ("llii", 32),
        "signal_fetch": ("l", 64),
        "signal_wait_until": ("lil", 64),
        "atomic32": ("iliii", 32),
        "atomic64": ("illli", 64),
        "fence": ("", 32),
        "quiet": ("", 32),
        "flush": ("", 32),
        "barrier": ("i", 32),
        "sync": ("i", 32),
        "broadcastmem": ("illli", 32),
        "fcollectmem": ("illl", 32),
        "alltoallmem": ("illl", 32),
    }
    for name in ("putmem", "putmem_nbi", "getmem", "getmem_nbi"):
        table[name] = ("llli", 32)
    for name in ("put_signal", "put_signal_nbi"):
        table[name] = ("lllllii", 32)
    for bits in (8, 16, 32, 64):
        value = "l" if bits == 64 else "i"
        table[f"iput{bits}"] = table[f"iget{bits}"] = ("llllli", 32)
        table[f"p{bits}"] = (f"l{value}i", 32)
        table[f"g{bits}"] = ("li", 64 if bits == 64 else 32)
    for name, value in (("int32", "i"), ("uint32", "i"), ("int64", "l"), ("uint64", "l")):
        table[f"{name}_wait_until"] = table[f"{name}_test"] = (f"li{value}", 32)
        table[f"{name}_wait_until_all"] = (f"lli{value}", 32)
        table[f"{name}_wait_until_any"] = (f"lli{value}", 64)
    for triton_name, name in TYPE_NAMES.items():
        for operation in ARITHMETIC + (BITWISE if "int" in triton_name else ()):
            table[f"{name}_{operation}_reduce"] = table[f"{name}_{operation}_reducescatter"] = ("illl", 32)
    return table


# The parameters of each function, `i` for 32 bits and `l` for 64, and the bits of its result.
SYMBOLS = _symbols()
