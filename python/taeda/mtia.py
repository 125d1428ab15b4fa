"""Meta's accelerators: there are none in this build, and everything here says so.

>>> import taeda
>>> taeda.mtia.is_available(), taeda.mtia.device_count()
(False, 0)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from taeda._absent import classes, functions
from taeda.cuda import device as _cuda_device

if TYPE_CHECKING:
    from collections.abc import Iterable

_WHY = "this build of taeda has no MTIA backend"
_REST: dict[str, Any] = functions(
    "mtia",
    "get_rng_state_all max_memory_allocated memory_stats record_memory_history "
    "reset_peak_memory_stats",
    "current_device current_stream default_stream empty_cache get_device_capability "
    "get_device_properties graph_pool_handle set_device set_rng_state set_stream snapshot "
    "synchronize",
    RuntimeError,
    _WHY,
)
_REST |= functions("mtia", "", "get_rng_state initial_seed", AssertionError, _WHY)
_REST |= classes("mtia", "MTIAGraph", _WHY)
globals().update(_REST)

__all__ = [
    *_REST,
    "device",
    "device_count",
    "is_available",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "memory_allocated",
    "seed",
    "seed_all",
    "set_rng_state_all",
]


def is_available() -> bool:
    """Whether there is such a device: no."""
    return False


def is_initialized() -> bool:
    """Whether one is in use: no."""
    return False


def device_count() -> int:
    """The number of devices: 0."""
    return 0


def memory_allocated(device: Any = None) -> int:
    """The bytes in tensors on a device: 0."""
    return 0


def manual_seed(seed: int) -> None:
    """Seed the current one; there is none."""
    int(seed)


def manual_seed_all(seed: int) -> None:
    """Seed all of them; there are none."""
    int(seed)


def seed() -> None:
    """Seed the current one from the system's entropy; there is none."""


def seed_all() -> None:
    """Seed all of them from the system's entropy; there are none."""


def set_rng_state_all(new_states: Iterable[Any]) -> None:
    """Set the states of all devices' generators; RuntimeError where any is given."""
    if list(new_states):
        raise RuntimeError(f"mtia.set_rng_state_all: {_WHY}")


class device(_cuda_device):
    """The device that a ``with`` block works on; None or a negative index leave it as it is."""

    _kind = "mtia"
