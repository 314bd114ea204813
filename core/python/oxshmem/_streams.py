"""Streams of other libraries."""

from __future__ import annotations

import operator
from typing import Any

from .errors import ArgumentError


def handle(stream: Any) -> int:
    """A stream's handle, a ``CUstream``.

    Streams are numbers; objects with ``__cuda_stream__`` (cuda.core), ``cuda_stream`` (torch), ``ptr`` (CuPy) or ``handle`` (numba); and None for
    the default stream.
    """
    if stream is None:
        return 0
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        version, number = protocol() if callable(protocol) else protocol
        if version != 0:
            raise ArgumentError(f"stream: version {version} of __cuda_stream__ is not known; give the stream's number", call="stream", what="version")
        return int(number)
    for name in ("cuda_stream", "ptr", "handle"):
        number = getattr(stream, name, None)
        if number is not None:
            return int(getattr(number, "value", number) or 0)
    try:
        return operator.index(stream)
    except TypeError:
        raise ArgumentError(
            f"stream: {type(stream).__name__} is no stream; give a number, or an object with __cuda_stream__, cuda_stream or ptr",
            call="stream", what="no stream",
        ) from None  # fmt: skip
