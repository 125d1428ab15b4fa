"""The memory of CUDA devices: what :mod:`taeda.cuda` has of it, and settings of the allocator.

>>> import taeda
>>> taeda.cuda.memory.memory_allocated()
0
"""

from __future__ import annotations

from taeda import cuda as _cuda
from taeda.cuda import _settings

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
