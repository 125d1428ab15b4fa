"""Devices and their memory, where CUDA's library is installed."""

from __future__ import annotations

import ctypes
import json
import warnings
from typing import Any

from taeda.cuda import _runtime
from taeda.cuda._runtime import Properties, call

__all__ = [
    "can_device_access_peer",
    "current_device",
    "device",
    "device_count",
    "device_of",
    "empty_cache",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_sync_debug_mode",
    "init",
    "is_available",
    "is_bf16_supported",
    "is_tf32_supported",
    "is_initialized",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_summary",
    "reset_accumulated_memory_stats",
    "reset_peak_memory_stats",
    "set_device",
    "set_per_process_memory_fraction",
    "set_sync_debug_mode",
    "synchronize",
]

_NUMBERS = [
    f"{what}.all.{which}"
    for what in ("allocated_bytes", "reserved_bytes", "requested_bytes", "allocation", "segment")
    for which in ("current", "peak", "allocated", "freed")
] + ["num_alloc_retries", "num_ooms"]


def device_count() -> int:
    """How many devices there are; 0 where there is no driver."""
    return _runtime.count()


def is_available() -> bool:
    """Whether there is a device."""
    return device_count() > 0


def is_initialized() -> bool:
    """Whether devices are ready to be used: whether there are any."""
    return is_available()


def init() -> None:
    """Make sure that there is a device. RuntimeError, which says why, where there is none."""
    _runtime.current()


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether the current device computes in bfloat16: all that taeda has kernels for do."""
    if not isinstance(including_emulation, bool):
        raise TypeError("cuda.is_bf16_supported: including_emulation must be a bool")
    return is_available()


def is_tf32_supported() -> bool:
    """Whether the current device computes in TF32: those of capability 8.0 and newer do."""
    return get_device_capability()[0] >= 8


def current_device() -> int:
    """The index of the device that ``"cuda"`` means in this thread."""
    return _runtime.current()


def set_device(device: Any) -> None:
    """Make ``"cuda"`` mean a device, in this thread; a negative index changes nothing."""
    if isinstance(device, int) and device < 0:
        return
    call("set_device", _runtime.index_of(device, "set_device"))


def synchronize(device: Any = None) -> None:
    """Wait until all work of a device is done; None is the current one.

    Raises:
        IndexError: an operation before it was given an index out of bounds.
        RuntimeError: an operation before it has failed.
    """
    call("synchronize", _runtime.index_of(device, "synchronize"))


_SYNC_MODES = {"default": 0, "warn": 1, "error": 2}
_sync_mode = 0


def _warn_of_wait() -> None:
    warnings.warn("called a synchronizing CUDA operation", UserWarning, stacklevel=2)


_warning = ctypes.CFUNCTYPE(None)(_warn_of_wait)  # lives as long as the library may call it


def get_sync_debug_mode() -> int:
    """What :func:`set_sync_debug_mode` chose: 0, 1 or 2."""
    return _sync_mode


def set_sync_debug_mode(debug_mode: int | str) -> None:
    """Report whenever the host waits for a device without being asked to.

    That is where a value is read (``item()``, ``cpu()``, printing), memory of the host is copied to
    a device, or a shape depends on values (``nonzero``, masks as indices). ``synchronize()`` is no
    such case.

    Args:
        debug_mode: ``"default"`` or 0: nothing; ``"warn"`` or 1: a UserWarning; ``"error"`` or 2: a
            RuntimeError, before anything is done.
    """
    global _sync_mode
    mode = _SYNC_MODES.get(debug_mode, -1) if isinstance(debug_mode, str) else debug_mode
    if mode not in _SYNC_MODES.values():
        raise RuntimeError(
            f"cuda.set_sync_debug_mode: expected one of {list(_SYNC_MODES)} or 0, 1, 2, got "
            f"{debug_mode!r}"
        )
    _runtime.tell("set_sync_debug_mode", mode, _warning)
    _sync_mode = mode


class device:
    """Inside ``with device(d):`` that device is current; none is chosen by None or below 0."""

    def __init__(self, device: Any) -> None:
        unchanged = device is None or (isinstance(device, int) and device < 0)
        self.idx = -1 if unchanged else _runtime.index_of(device, "device")
        self._before: list[int] = []

    def __enter__(self) -> None:
        """Make the device current."""
        self._before.append(current_device() if self.idx >= 0 else -1)
        set_device(self.idx)

    def __exit__(self, *exc_info: object) -> None:
        """Make the one before current again."""
        set_device(self._before.pop())


class device_of(device):
    """The device of a tensor, for a ``with`` block; no change for one on the CPU."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.get_device() if obj.is_cuda else -1)


def get_device_properties(device: Any = None) -> Properties:
    """What a device is like: ``name``, ``major``, ``minor``, ``total_memory``, ..."""
    found = Properties()
    index = _runtime.index_of(device, "get_device_properties")
    call("properties", index, ctypes.byref(found))
    return found


def get_device_name(device: Any = None) -> str:
    """A device's name."""
    return get_device_properties(device).name


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """A device's compute capability, such as (9, 0)."""
    found = get_device_properties(device)
    return found.major, found.minor


def can_device_access_peer(device: Any, peer_device: Any) -> bool:
    """Whether a device can read the memory of another one."""
    can = ctypes.c_int()
    indices = [_runtime.index_of(d, "can_device_access_peer") for d in (device, peer_device)]
    call("can_access_peer", *indices, ctypes.byref(can))
    return bool(can.value)


# ---- memory ----


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Bytes of a device's memory that are free, to the driver's knowledge, and all of them."""
    free, total = ctypes.c_uint64(), ctypes.c_uint64()
    index = _runtime.index_of(device, "mem_get_info")
    call("memory_info", index, ctypes.byref(free), ctypes.byref(total))
    return free.value, total.value


def memory_stats(device: Any = None) -> dict[str, int]:
    """Numbers of a device's allocator, such as ``"allocated_bytes.all.peak"``."""
    if not is_available():
        return {}
    numbers = (ctypes.c_int64 * len(_NUMBERS))()
    call("memory_stats", _runtime.index_of(device, "memory_stats"), numbers)
    return dict(zip(_NUMBERS, numbers, strict=True))


def memory_allocated(device: Any = None) -> int:
    """Bytes that tensors take on a device."""
    return memory_stats(device).get("allocated_bytes.all.current", 0)


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes that tensors have taken, since the last ``reset_peak_memory_stats``."""
    return memory_stats(device).get("allocated_bytes.all.peak", 0)


def memory_reserved(device: Any = None) -> int:
    """Bytes that the allocator holds on a device: in tensors, and cached."""
    return memory_stats(device).get("reserved_bytes.all.current", 0)


def max_memory_reserved(device: Any = None) -> int:
    """The most bytes that the allocator has held, since the last ``reset_peak_memory_stats``."""
    return memory_stats(device).get("reserved_bytes.all.peak", 0)


def reset_peak_memory_stats(device: Any = None) -> None:
    """Let the peaks begin anew from what there is now."""
    call("reset_memory_stats", _runtime.index_of(device, "reset_peak_memory_stats"), 1)


def reset_accumulated_memory_stats(device: Any = None) -> None:
    """Let the totals begin anew from 0."""
    call("reset_memory_stats", _runtime.index_of(device, "reset_accumulated_memory_stats"), 0)


def empty_cache() -> None:
    """Give the cached memory of all devices back to the driver, after waiting for their work."""
    for index in range(device_count()):
        call("empty_cache", index)


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """Take no more than this share of a device's memory.

    Raises:
        ValueError: it is not within 0 and 1.
    """
    if not 0 <= fraction <= 1:
        raise ValueError(
            f"cuda.set_per_process_memory_fraction: fraction must be in [0, 1], got {fraction}"
        )
    index = _runtime.index_of(device, "set_per_process_memory_fraction")
    total = get_device_properties(index).total_memory
    call("limit_memory", index, ctypes.c_uint64(int(fraction * total)))


def memory_snapshot(
    mempool_id: tuple[int, int] | None = None, include_traces: bool = True
) -> list[dict[str, Any]]:
    """The allocators' segments on all devices, each with its ``"blocks"``.

    Args:
        mempool_id: a pool's name, for its segments alone.
        include_traces: nothing is left out by False, as there are no traces here.
    """
    segments = []
    for index in range(device_count()):
        length, room = ctypes.c_size_t(), 1 << 16
        while True:
            text = ctypes.create_string_buffer(room)
            call("memory_snapshot", index, text, ctypes.c_size_t(room), ctypes.byref(length))
            if length.value < room:
                break
            room = length.value + 4096
        segments += json.loads(text.value)
    for segment in segments:
        segment["segment_pool_id"] = tuple(segment["segment_pool_id"])
    return [s for s in segments if mempool_id in (None, s["segment_pool_id"])]


def memory_summary(device: Any = None) -> str:
    """A device's numbers as a table."""
    stats = memory_stats(device)
    lines = [f"{'CUDA memory':24}{'now':>16}{'peak':>16}{'taken':>16}{'freed':>16}"]
    for what in ("allocated_bytes", "reserved_bytes", "requested_bytes", "allocation", "segment"):
        values = [
            stats.get(f"{what}.all.{w}", 0) for w in ("current", "peak", "allocated", "freed")
        ]
        lines.append(f"{what:24}" + "".join(f"{v:16}" for v in values))
    lines.append(
        f"retries: {stats.get('num_alloc_retries', 0)}, out of memory: {stats.get('num_ooms', 0)}"
    )
    return "\n".join(lines)
