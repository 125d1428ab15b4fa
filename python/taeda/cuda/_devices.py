"""Devices and their memory, where CUDA's library is installed."""

from __future__ import annotations

import ctypes
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
    "get_arch_list",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_gencode_flags",
    "get_sync_debug_mode",
    "init",
    "is_available",
    "is_bf16_supported",
    "is_tf32_supported",
    "is_initialized",
    "set_device",
    "set_sync_debug_mode",
    "synchronize",
]


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


def get_arch_list() -> list[str]:
    """The architectures that the library has kernels for, such as ``sm_90``; none without a device.

    ``compute_80`` is code that the driver compiles for those that are newer.
    """
    return _runtime.compiled_for() if is_available() else []


def get_gencode_flags() -> str:
    """The same as options of nvcc."""
    parts = [arch.partition("_") for arch in get_arch_list()]
    return " ".join(
        f"-gencode compute=compute_{number},code={kind}_{number}" for kind, _, number in parts
    )


def can_device_access_peer(device: Any, peer_device: Any) -> bool:
    """Whether a device can read the memory of another one."""
    can = ctypes.c_int()
    indices = [_runtime.index_of(d, "can_device_access_peer") for d in (device, peer_device)]
    call("can_access_peer", *indices, ctypes.byref(can))
    return bool(can.value)
