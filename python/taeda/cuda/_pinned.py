"""Pinned memory of the host, where CUDA's library is installed."""

from __future__ import annotations

import ctypes
from collections import OrderedDict
from typing import Any

from taeda.cuda import _memory, _runtime
from taeda.cuda._runtime import call

__all__ = [
    "host_memory_stats",
    "host_memory_stats_as_nested_dict",
    "reset_accumulated_host_memory_stats",
    "reset_peak_host_memory_stats",
]

_NUMBERS = [
    f"{what}.{which}"
    for what in ("allocated_bytes", "reserved_bytes", "allocations", "segments")
    for which in ("current", "peak", "allocated", "freed")
]


def empty_cache() -> None:
    """Give memory that is not in use back to the driver."""
    if not _runtime.why_not():
        call("empty_pinned")


def host_memory_stats() -> OrderedDict[str, Any]:
    """Numbers of pinned memory: bytes and blocks of tensors, and what the driver gave for them.

    For ``allocated_bytes``, ``allocations``, ``reserved_bytes`` and ``segments``: what is
    ``current``, its ``peak``, and what was ``allocated`` and ``freed`` in all. ``num_host_alloc``
    and ``num_host_free`` say how often the driver was asked.
    """
    numbers = (ctypes.c_int64 * len(_NUMBERS))()
    if not _runtime.why_not():
        call("pinned_stats", numbers)
    stats: dict[str, Any] = dict(zip(_NUMBERS, numbers, strict=True))
    stats["num_host_alloc"] = stats["segments.allocated"]
    stats["num_host_free"] = stats["segments.freed"]
    return OrderedDict(sorted(stats.items()))


def host_memory_stats_as_nested_dict() -> dict[str, Any]:
    """The same as a tree, by the parts of the names."""
    return _memory.as_tree(host_memory_stats())


def reset_accumulated_host_memory_stats() -> None:
    """Start counting anew what is allocated and freed."""
    if not _runtime.why_not():
        call("reset_pinned_stats", 0)


def reset_peak_host_memory_stats() -> None:
    """Start measuring peaks anew."""
    if not _runtime.why_not():
        call("reset_pinned_stats", 1)
