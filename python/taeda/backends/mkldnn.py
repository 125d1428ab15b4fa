"""oneDNN, once called MKL-DNN, which this build does not use; its switch keeps its setting."""

from __future__ import annotations

__all__ = ["enabled", "is_available"]

enabled = True


def is_available() -> bool:
    """Whether this build uses it: no."""
    return False
