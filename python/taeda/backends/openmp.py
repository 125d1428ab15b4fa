"""OpenMP (threads are taeda's own), which this build does not use."""

from __future__ import annotations

__all__ = ["is_available"]


def is_available() -> bool:
    """Whether this build uses it: no."""
    return False
