"""What the allocators of CUDA devices have done, and from which lines of a program."""

from __future__ import annotations

import atexit
import ctypes
import os
import sys
from typing import Any

from taeda.cuda import _devices, _memory, _settings
from taeda.cuda._runtime import call

__all__ = ["record", "snapshot"]

_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int64)
_NO_STACK = -1
_HERE = os.path.dirname(os.path.dirname(__file__)) + os.sep  # taeda's own lines are left out

_stacks: list[tuple[tuple[Any, int], ...]] = []  # of code and line, the innermost first
_numbers: dict[tuple[tuple[Any, int], ...], int] = {}


def _stack() -> int:
    """The number of the calling thread's stack."""
    frames = []
    frame: Any = sys._getframe(1)
    while frame is not None:
        if not frame.f_code.co_filename.startswith(_HERE):
            frames.append((frame.f_code, frame.f_lineno))
        frame = frame.f_back
    stack = tuple(frames)
    number = _numbers.get(stack)
    if number is None:
        number = _numbers[stack] = len(_stacks)
        _stacks.append(stack)
    return number


_ask = _FUNCTION(_stack)  # lives as long as the library may call it
_nobody = _FUNCTION()


def record(trace: bool, at_alloc: bool, at_free: bool, most: int, clear: bool) -> None:
    """Choose what is noted from here on.

    Args:
        trace: whether each action is.
        at_alloc, at_free: whether with the stack that asks for memory, or gives it back.
        most: how many actions are kept.
        clear: whether those before are forgotten.
    """
    call(
        "record_history",
        int(trace),
        ctypes.c_uint64(min(most, 2**64 - 1)),
        int(clear),
        _ask if at_alloc else _nobody,
        _ask if at_free else _nobody,
    )
    if at_alloc:
        atexit.register(record, False, False, False, 0, False)  # before there are no frames


def _frames(number: int) -> list[dict[str, Any]]:
    stack = () if number == _NO_STACK else _stacks[number]
    return [
        {"name": code.co_name, "filename": code.co_filename, "line": line} for code, line in stack
    ]


def snapshot() -> dict[str, Any]:
    """The allocators' segments, and what was noted, as pytorch.org/memory_viz reads them."""
    segments = _memory.memory_snapshot()
    for segment in segments:
        segment["frames"] = []
        for block in segment["blocks"]:
            block["frames"] = _frames(block["frames"])
    traces = [_memory.json_of("memory_trace", index) for index in range(_devices.device_count())]
    for trace in traces:
        for entry in trace:
            entry["frames"] = _frames(entry["frames"])
    chosen = _settings.current()
    return {
        "segments": segments,
        "device_traces": traces,
        "allocator_settings": {
            "PYTORCH_CUDA_ALLOC_CONF": chosen.text,
            "expandable_segments": chosen.expandable_segments,
            "garbage_collection_threshold": chosen.garbage_collection_threshold,
            "max_split_size": chosen.max_split_size,
            "roundup_power2_divisions": chosen.roundup_power2_divisions,
        },
        "external_annotations": [],
    }
