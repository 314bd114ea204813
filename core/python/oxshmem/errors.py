"""Exceptions of oxshmem's calls.

Each class is that of one kind of error of the library, and its attributes are the error's fields. The message says what failed, where, and how to
mend it. A class is also one of Python's own where one of these means the same: ``except IndexError`` catches :class:`OutOfRange`.
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "AlreadyJoined", "ArgumentError", "BootstrapError", "BufferTooSmall", "CollectiveMismatch", "CollectivesEnded", "ConfigError", "Conflict",
    "DTypeError", "Deadlock", "Disagreement", "Error", "FailedElsewhere", "Foreign", "ForkedProcess", "GpuError", "GpuMemory", "HeapError",
    "LaneFailed", "Misaligned", "NoSuchPe", "NotABlock", "NotSymmetric", "OutOfMemory", "OutOfRange", "PeerLost", "Stale", "Timeout",
    "TooManyTeams", "TransportError", "Unreachable", "Unsupported", "WorldEnded",
]  # fmt: skip


class Error(Exception):
    """An error of a call. ``call`` is the call's name, where the error has one."""

    call: str | None = None

    def __init__(self, message: str, **fields: Any) -> None:
        super().__init__(message)
        self.__dict__.update(fields)

    def __reduce__(self) -> Any:
        return (_again, (type(self), str(self), dict(self.__dict__)))


def _again(kind: type[Error], message: str, fields: dict[str, Any]) -> Error:
    return kind(message, **fields)


class NoSuchPe(Error, IndexError):
    """A number of a PE that the job does not have."""

    pe: int
    size: int


class OutOfRange(Error, IndexError):
    """A range that leaves its symmetric object."""

    start: int
    end: int
    len: int


class BufferTooSmall(Error, ValueError):
    """A private buffer with too few elements."""

    len: int
    needed: int


class GpuMemory(Error, ValueError):
    """An object in GPU memory, which the CPU cannot load or store."""

    offset: int


class GpuError(Error, RuntimeError):
    """A refusal of the GPU's driver, or a failure of work on the GPU."""

    why: str


class Deadlock(Error, RuntimeError):
    """All PEs wait, and nothing is in flight (in the simulator alone)."""

    me: int
    whom: str
    what: str


class ArgumentError(Error, ValueError):
    """An argument outside its domain."""

    what: str


class DTypeError(Error, TypeError):
    """An element type that a call does not take, or that differs between two arrays."""


class NotSymmetric(Error, TypeError):
    """An array that is not in symmetric memory, where the call needs one that is."""


class Foreign(Error, ValueError):
    """An array of another world."""


class Stale(Error, ValueError):
    """An array whose memory was freed."""

    offset: int


class NotABlock(Error, ValueError):
    """A part of an allocation, where all of it is needed."""


class Misaligned(Error, ValueError):
    """A place that is not aligned for its type."""

    offset: int
    align: int


class Conflict(Error, RuntimeError):
    """Two accesses that the memory model leaves undefined together, found in checked mode."""

    what: str


class CollectiveMismatch(Error, RuntimeError):
    """PEs that did not make the same collective call with the same arguments."""

    detail: str


class OutOfMemory(Error, MemoryError):
    """A symmetric heap that has no room. Every PE gets this error, and the heap is unchanged."""

    bytes: int
    limit: int
    why: str


class FailedElsewhere(Error, RuntimeError):
    """A call that failed on another PE, and so here too."""

    pe: int
    why: str


class TooManyTeams(Error, RuntimeError):
    """No room for another team."""

    limit: int


class CollectivesEnded(Error, RuntimeError):
    """A team whose collective calls have ended."""

    why: str


class PeerLost(Error, ConnectionError):
    """A PE that has died or left."""

    pe: int


class Timeout(Error, TimeoutError):
    """A wait that has reached the deadline of ``OXSHMEM_TIMEOUT``, or of ``init(timeout=...)``."""

    me: int
    whom: str
    what: str
    waited: float
    limit: float


class Unreachable(Error, ConnectionError):
    """A PE that no transport reaches."""

    pe: int
    why: str


class Unsupported(Error, NotImplementedError):
    """An operation that the route to a PE does not have."""

    transport: str
    pe: int
    what: str


class LaneFailed(Error, ConnectionError):
    """A connection that has failed."""

    transport: str
    why: str


class AlreadyJoined(Error, RuntimeError):
    """A process that is a PE already, or was one."""


class ConfigError(Error, ValueError):
    """A setting that makes no sense."""

    name: str
    value: str
    why: str


class Disagreement(Error, RuntimeError):
    """PEs whose settings or programs differ where they must agree."""

    a: int
    b: int
    what: str


class BootstrapError(Error, RuntimeError):
    """A start-up that failed."""


class HeapError(Error, OSError):
    """Symmetric memory that the system refuses."""


class TransportError(Error, OSError):
    """A transport that failed."""


class WorldEnded(Error, RuntimeError):
    """A call after the end of the world."""


class ForkedProcess(Error, RuntimeError):
    """A call in a process that a PE has forked."""
