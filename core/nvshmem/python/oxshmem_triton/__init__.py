"""oxshmem's calls inside Triton kernels.

    import oxshmem_triton as shmem

    @triton.jit
    def shift(dest, source, n, signal):
        right = (shmem.my_pe() + 1) % shmem.n_pes()
        shmem.put_signal(dest, source, n, signal, 1, shmem.SIGNAL_SET, right)
        shmem.signal_wait_until(signal, shmem.CMP_EQ, 1)

    shift[(1,)](dest, source, n, signal, extern_libs=shmem.extern_libs())

A call is made by a whole program of the grid: once, however many threads the program has. What the program did before comes before
it, what it does afterwards comes after it. Programs make the calls in control flow that does not depend on a thread.

Types are checked when a kernel is compiled. A scalar may be of a narrower type, if no value is lost; any other type is an error
that names the argument.
"""

from .device import *
from .device import __all__ as _calls
from .host import extern_libs, finalize_module, init_module, library

__all__ = [*_calls, "extern_libs", "finalize_module", "init_module", "library"]
