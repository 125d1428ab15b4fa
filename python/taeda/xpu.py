"""Intel's GPUs: there are none in this build, and everything here says so.

>>> import taeda
>>> taeda.xpu.is_available(), taeda.xpu.device_count()
(False, 0)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import NoReturn

__all__ = [
    "current_device",
    "device_count",
    "empty_cache",
    "get_device_name",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "memory_allocated",
    "memory_reserved",
    "seed",
    "seed_all",
    "set_device",
    "synchronize",
]


def is_available() -> bool:
    """Whether there is such a GPU: no."""
    return False


def is_initialized() -> bool:
    """Whether one is in use: no."""
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether one computes in bfloat16, natively or not: no."""
    if not isinstance(including_emulation, bool):
        raise TypeError("xpu.is_bf16_supported: including_emulation must be a bool")
    return False


def device_count() -> int:
    """The number of devices: 0."""
    return 0


def manual_seed(seed: int) -> None:
    """Seed the current one; there is none."""
    int(seed)


def manual_seed_all(seed: int) -> None:
    """No-op: this build has no XPU."""
    int(seed)


def seed() -> None:
    """Seed the current one from the system's entropy; there is none."""


def seed_all() -> None:
    """Seed all of them from the system's entropy; there are none."""


def empty_cache() -> None:
    """Give the unused memory of all of them back; there are none."""


def memory_allocated(device: Any = None) -> int:
    """The bytes in tensors on a device: 0, since this build has no XPU."""
    return _bytes(device)


def memory_reserved(device: Any = None) -> int:
    """The bytes reserved on a device: 0, since this build has no XPU."""
    return _bytes(device)


def _bytes(device: Any) -> int:
    if device is not None:
        _none(f"memory of {device!r}")
    return 0


def _none(what: str) -> NoReturn:
    raise AssertionError(f"xpu: {what}: taeda has not been built with XPU")


def current_device() -> int:
    """The current device's index; AssertionError, as there is none."""
    _none("current_device()")


def set_device(device: Any) -> None:
    """Make a device the current one; AssertionError, as there is none."""
    _none(f"set_device({device!r})")


def get_device_name(device: Any = None) -> str:
    """A device's name; AssertionError, as there is none."""
    _none(f"get_device_name({device!r})")


def synchronize(device: Any = None) -> None:
    """Wait for a device; AssertionError, as there is none."""
    _none(f"synchronize({device!r})")
