"""PyTorch's switch for the fused layers of transformers; taeda's compute one way."""

from __future__ import annotations

__all__ = ["get_fastpath_enabled", "set_fastpath_enabled"]

_enabled = True


def get_fastpath_enabled() -> bool:
    """What `set_fastpath_enabled` was told; initially True."""
    return _enabled


def set_fastpath_enabled(value: bool) -> None:
    """Say whether layers may be fused in inference; it chooses nothing."""
    global _enabled
    _enabled = value
