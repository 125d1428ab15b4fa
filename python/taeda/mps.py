"""Apple's GPUs: there are none in this build, and everything here says so.

>>> import taeda
>>> taeda.mps.is_available(), taeda.mps.device_count()
(False, 0)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from taeda._absent import classes, functions

if TYPE_CHECKING:
    from typing import NoReturn

_REST: dict[str, Any] = functions(
    "mps",
    "",
    "get_rng_state set_per_process_memory_fraction set_rng_state",
    RuntimeError,
    "there is no MPS backend in this build of taeda",
)
_REST |= classes("mps", "Event", "there is no MPS backend in this build of taeda")
globals().update(_REST)

__all__ = [
    *_REST,
    "current_allocated_memory",
    "device_count",
    "driver_allocated_memory",
    "empty_cache",
    "is_available",
    "manual_seed",
    "recommended_max_memory",
    "seed",
    "synchronize",
]


def is_available() -> bool:
    """Whether there is such a GPU: no."""
    return False


def device_count() -> int:
    """The number of devices: 0."""
    return 0


def manual_seed(seed: int) -> None:
    """No-op: this build has no MPS."""
    int(seed)


def seed() -> None:
    """Seed all of them from the system's entropy; there are none."""


def _none(what: str) -> NoReturn:
    raise RuntimeError(f"mps.{what}: there is no MPS backend in this build of taeda")


def synchronize() -> None:
    """Wait for the GPU; RuntimeError, as there is none."""
    _none("synchronize()")


def empty_cache() -> None:
    """Give the GPU's unused memory back; RuntimeError, as there is none."""
    _none("empty_cache()")


def current_allocated_memory() -> int:
    """Raise RuntimeError: this build has no MPS."""
    _none("current_allocated_memory()")


def driver_allocated_memory() -> int:
    """Raise RuntimeError: this build has no MPS."""
    _none("driver_allocated_memory()")


def recommended_max_memory() -> int:
    """Raise RuntimeError: this build has no MPS."""
    _none("recommended_max_memory()")
