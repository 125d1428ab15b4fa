"""The package opt_einsum, which ``einsum`` does not use: it goes from left to right."""

from __future__ import annotations

__all__ = ["enabled", "is_available", "strategy"]

enabled = False
strategy: str | None = None


def is_available() -> bool:
    """Whether ``einsum`` can use it: no."""
    return False
