"""The memory of CUDA devices: what :mod:`taeda.cuda` has of it, and settings of the allocator.

>>> import taeda
>>> taeda.cuda.memory.memory_allocated()
0
"""

from __future__ import annotations

import pickle
import sys
from typing import Any

from taeda import cuda as _cuda
from taeda.cuda import _library, _settings

_NAMES = (
    *("MemPool", "caching_allocator_alloc", "caching_allocator_delete", "empty_cache"),
    *("get_allocator_backend", "get_per_process_memory_fraction", "host_memory_stats"),
    *("host_memory_stats_as_nested_dict", "list_gpu_processes", "max_memory_allocated"),
    *("max_memory_cached", "max_memory_reserved", "mem_get_info", "memory_allocated"),
    *("memory_cached", "memory_reserved", "memory_snapshot", "memory_stats"),
    *("memory_stats_as_nested_dict", "memory_summary", "reset_accumulated_host_memory_stats"),
    *("reset_accumulated_memory_stats", "reset_max_memory_allocated", "reset_max_memory_cached"),
    *("reset_peak_host_memory_stats", "reset_peak_memory_stats"),
    *("set_per_process_memory_fraction", "use_mem_pool"),
)
globals().update({name: getattr(_cuda, name) for name in _NAMES if hasattr(_cuda, name)})
__all__ = [name for name in _NAMES if name in globals()]


def _set_allocator_settings(env: str) -> None:
    """Choose settings of the allocators, as in ``PYTORCH_ALLOC_CONF``.

    Args:
        env: such as ``"expandable_segments:True,max_split_size_mb:128"``.

    Raises:
        ValueError: a key is none of the settings, or its value is out of range.
    """
    _settings.change(env)


_WHEN = {None: 0, "state": 1, "alloc": 1, "all": 2}  # of which actions stacks are noted


def _record_memory_history(
    enabled: str | None = "all",
    context: str | None = "all",
    stacks: str = "python",
    max_entries: int = sys.maxsize,
    *,
    clear_history: bool = False,
) -> None:
    """Note where memory is asked for and given back, for :func:`_snapshot`.

    Args:
        enabled: ``"all"``: each action; ``"state"``: only who asked for what is in use; None: stop.
        context: of which actions the stack is noted: ``"all"``, ``"alloc"`` and ``"state"`` (both:
            where memory is asked for), or None.
        stacks: ``"python"``; other stacks are not noted.
        max_entries: how many actions are kept, the last ones.
        clear_history: whether what was noted before is forgotten.

    Raises:
        ValueError: an argument is none of those, or ``max_entries`` is negative.
    """
    for name, given, known in (
        ("enabled", enabled, ("all", "state", None)),
        ("context", context, tuple(_WHEN)),
        ("stacks", stacks, ("python",)),
    ):
        if given not in known:
            raise ValueError(
                f"cuda.memory._record_memory_history: {name} must be one of {known}, got {given!r}"
            )
    if max_entries < 0:
        raise ValueError(
            "cuda.memory._record_memory_history: max_entries must not be negative, got "
            f"{max_entries}"
        )
    _need("_record_memory_history")
    from taeda.cuda import _history

    when = _WHEN[context] if enabled else 0
    trace = enabled == "all"
    _history.record(trace, when >= 1, trace and when == 2, max_entries, clear_history)


def _snapshot() -> dict[str, Any]:
    """The segments of all allocators, and what :func:`_record_memory_history` has noted.

    ``"segments"`` are those of ``memory_snapshot()`` with the ``"frames"`` of each block,
    ``"device_traces"`` lists what was done for each device.
    """
    _need("_snapshot")
    from taeda.cuda import _history

    return _history.snapshot()


def _dump_snapshot(filename: str = "dump_snapshot.pickle") -> None:
    """Write a :func:`_snapshot` to a file, which https://pytorch.org/memory_viz shows."""
    taken = _snapshot()
    with open(filename, "wb") as file:
        pickle.dump(taken, file)


def _need(function: str) -> None:
    """Raise AssertionError where there can be no device."""
    if _library.path() is None:
        _cuda._no_cuda(f"memory.{function}")
