"""Stands for ``torch._guards``: what a compiler at work has put in place; there is none."""

from __future__ import annotations

__all__ = ["active_fake_mode"]


def active_fake_mode() -> None:
    """The mode in which tensors have no data: there is none."""
