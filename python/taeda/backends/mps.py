"""Apple's GPUs, which this build does not use."""

from __future__ import annotations

__all__ = ["is_available", "is_built"]


def is_available() -> bool:
    """Whether there is such a device to use: no."""
    return False


def is_built() -> bool:
    """Whether taeda is compiled for such devices: no."""
    return False
