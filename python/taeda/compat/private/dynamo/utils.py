"""Stands for ``torch._dynamo.utils``."""

from __future__ import annotations

__all__ = ["is_compile_supported"]


def is_compile_supported(device_type: str) -> bool:
    """Whether functions can be compiled for a kind of device: no."""
    return False
