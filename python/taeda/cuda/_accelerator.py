"""What :mod:`taeda.accelerator` has where CUDA's library is installed: its devices, by the names
that any kind of device has there.
"""

from __future__ import annotations

import functools
from typing import Any

import taeda
from taeda.cuda import _devices, _memory, _pinned, _runtime
from taeda.cuda._devices import device_count, is_available
from taeda.cuda._memory import empty_cache
from taeda.cuda._streams import current_stream, set_stream

__all__ = ["members"]


def current_accelerator(check_available: bool = False) -> Any:
    """The kind of accelerator, ``cuda``; None if none is available and that is asked for."""
    return taeda.device("cuda") if not check_available or is_available() else None


def current_device_index() -> int:
    """The index of the current device."""
    return _runtime.current()


def set_device_index(device: Any) -> None:
    """Make a device the current one; a negative index changes nothing."""
    _devices.set_device(device)


class device_index(_devices.device):
    """Inside a block, the device with an index is the current one; None changes nothing."""


def synchronize(device: Any = None) -> None:
    """Wait for all work of a device; None is the current one."""
    _devices.synchronize(device)


def empty_host_cache() -> None:
    """Give pinned memory that is not in use back to the driver."""
    _pinned.empty_cache()


def get_memory_info(device_index: Any = None) -> tuple[int, int]:
    """Free bytes of a device's memory, and all."""
    return _memory.mem_get_info(device_index)


def get_device_capability(device: Any = None) -> dict[str, Any]:
    """The dtypes that tensors on a device may have, as ``supported_dtypes``."""
    _runtime.index_of(device, "get_device_capability")
    names = (
        "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128"
    )
    return {"supported_dtypes": {getattr(taeda, name) for name in names.split()}}


_OF_MEMORY = (
    *("max_memory_allocated", "max_memory_reserved", "memory_allocated", "memory_reserved"),
    *("memory_stats", "reset_accumulated_memory_stats", "reset_peak_memory_stats"),
)


def _of_memory(name: str) -> Any:
    function = getattr(_memory, name)

    @functools.wraps(function)
    def call(device_index: Any = None, /) -> Any:
        return function(device_index)

    return call


def members() -> dict[str, Any]:
    """The functions and classes by name."""
    own = (
        *(current_accelerator, current_device_index, set_device_index, device_index, synchronize),
        *(empty_host_cache, get_memory_info, get_device_capability),
        *(current_stream, set_stream, device_count, empty_cache, is_available),
    )
    return {
        **{function.__name__: function for function in own},
        **{name: _of_memory(name) for name in _OF_MEMORY},
        "current_device_idx": current_device_index,
        "set_device_idx": set_device_index,
    }
