"""What CUDA devices do while a profiler records, by CUPTI, and what made them do it."""

from __future__ import annotations

import ctypes
import json
from bisect import bisect_right
from typing import Any, NamedTuple

import taeda

__all__ = ["Work", "assign", "is_available", "start", "stop"]


class Work(NamedTuple):
    """A kernel, a copy or a fill of a device. Times are in nanoseconds.

    ``shape`` is the grid and the block of a kernel; ``called`` is when the host started it, in the
    thread ``thread``.
    """

    name: str
    begin: int
    end: int
    device: int
    stream: int
    bytes: int
    shape: list[int]
    called: int
    thread: int

    @property
    def duration(self) -> float:
        """How long it took, in microseconds."""
        return (self.end - self.begin) / 1e3


def is_available() -> bool:
    """Whether there is a device, and CUPTI is installed."""
    if not taeda.cuda.is_available():
        return False
    from taeda.cuda import _runtime

    return bool(_runtime.number("has_trace"))


def start() -> None:
    """Begin to record. RuntimeError where CUPTI is not installed."""
    from taeda.cuda import _runtime

    _runtime.call("start_trace")


def stop() -> list[Work]:
    """Wait for all devices, and give what they did for this thread, in order."""
    from taeda.cuda import _runtime

    for index in range(_runtime.count()):
        _runtime.call("synchronize", index)
    length, thread = ctypes.c_size_t(), ctypes.c_uint32()
    _runtime.call("stop_trace", ctypes.byref(length), ctypes.byref(thread))
    text = ctypes.create_string_buffer(length.value + 1)
    _runtime.call("trace", text, ctypes.c_size_t(len(text)))
    work = [Work(*fields) for fields in json.loads(text.value)]
    return sorted((w for w in work if w.thread == thread.value), key=lambda w: w.begin)


def assign(work: list[Work], events: list[Any]) -> None:
    """Give each event, in the order of their beginnings, the work that it started itself."""
    begins = [event.start * 1e3 for event in events]
    for piece in work:
        at = bisect_right(begins, piece.called) - 1
        event = events[at] if at >= 0 else None
        while event is not None and event.end * 1e3 < piece.called:
            event = event.cpu_parent
        if event is not None:
            event.kernels.append(piece)
