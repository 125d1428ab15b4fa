"""NVIDIA's library for semi-structured sparsity, which this build does not have."""

from __future__ import annotations

__all__ = ["is_available", "version"]


def is_available() -> bool:
    """Whether it can be used: no."""
    return False


def version() -> int | None:
    """Its version: None."""
    return None
