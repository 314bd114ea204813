"""Symmetric shared memory (SHMEM) for CPU and GPU clusters.

The PEs (processing elements) of a job each have their own copy of the same arrays, and put, get and atomically update the copies of others::

    import oxshmem

    with oxshmem.init() as world:
        me, n = world.my_pe, world.n_pes
        inbox = world.zeros(4, "int64")
        world.put(inbox, [me] * 4, (me + 1) % n)
        world.barrier_all()
        assert (inbox == (me - 1) % n).all()

Start it with any number of PEs: ``python -m oxshmem run -n 4 python program.py``.
"""

from . import errors
from ._arrays import GpuArray, PeerGpuArray, SymmetricArray
from ._context import Context
from ._world import Team, World, init
from .errors import Error

__version__ = "0.2.0"
__all__ = ["Context", "Error", "GpuArray", "PeerGpuArray", "SymmetricArray", "Team", "World", "errors", "init"]
