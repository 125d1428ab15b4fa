"""The accelerator of this build, whichever it is: there is none.

>>> import taeda
>>> taeda.accelerator.is_available(), taeda.accelerator.current_accelerator()
(False, None)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from taeda._absent import classes, functions

if TYPE_CHECKING:
    from typing import NoReturn

    import taeda

_REST: dict[str, Any] = functions(
    "accelerator",
    "",
    "empty_cache empty_host_cache get_device_capability get_memory_info max_memory_allocated "
    "max_memory_reserved memory_allocated memory_reserved memory_stats "
    "reset_accumulated_memory_stats reset_peak_memory_stats set_stream",
    RuntimeError,
    "there is no accelerator in this build of taeda",
)
_REST |= classes("accelerator", "Graph", "there is no accelerator in this build of taeda")
globals().update(_REST)

__all__ = [
    *_REST,
    "current_accelerator",
    "current_device_idx",
    "device_index",
    "set_device_idx",
    "current_device_index",
    "current_stream",
    "device_count",
    "is_available",
    "set_device_index",
    "synchronize",
]


def is_available() -> bool:
    """Whether there is an accelerator: no."""
    return False


def device_count() -> int:
    """The number of the accelerator's devices: 0."""
    return 0


def current_accelerator(check_available: bool = False) -> taeda.device | None:
    """The accelerator's device; None, whether or not it must be available."""
    if not isinstance(check_available, bool):
        raise TypeError("accelerator.current_accelerator: check_available must be a bool")
    return None


def _none(what: str) -> NoReturn:
    raise RuntimeError(f"accelerator.{what}: there is no accelerator in this build of taeda")


def current_device_index() -> int:
    """The index of the current device; RuntimeError, as there is none."""
    _none("current_device_index")


def set_device_index(device: Any) -> None:
    """Make a device the current one; RuntimeError, as there is none."""
    _none(f"set_device_index({device!r})")


def current_stream(device: Any = None) -> Any:
    """The current stream of a device; RuntimeError, as there is none."""
    _none(f"current_stream({device!r})")


def synchronize(device: Any = None) -> None:
    """Wait for a device; RuntimeError, as there is none."""
    _none(f"synchronize({device!r})")


current_device_idx = current_device_index
set_device_idx = set_device_index


class device_index:
    """The index of the device that a ``with`` block works on; None leaves it as it is."""

    def __init__(self, device: int | None, /) -> None:
        self.idx = device

    def __enter__(self) -> None:
        if self.idx is not None:
            _none(f"device_index({self.idx})")

    def __exit__(self, *exc_info: object) -> None:
        return None
