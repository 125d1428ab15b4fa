"""What the allocators of CUDA devices have done, and from which lines of a program."""

from __future__ import annotations

import atexit
import ctypes
from typing import Any

from taeda.cuda import _devices, _memory, _settings, _stacks
from taeda.cuda._runtime import call

__all__ = ["record", "snapshot"]

_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int64)

_ask = _FUNCTION(_stacks.number)  # lives as long as the library may call it
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


def snapshot() -> dict[str, Any]:
    """The allocators' segments, and what was noted, as pytorch.org/memory_viz reads them."""
    segments = _memory.memory_snapshot()
    traces = [_memory.json_of("memory_trace", index) for index in range(_devices.device_count())]
    for trace in traces:
        for entry in trace:
            entry["frames"] = _stacks.frames(entry["frames"])
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


@atexit.register
def _stop() -> None:
    """Ask for no stacks when the interpreter ends."""
    record(False, False, False, 0, False)
