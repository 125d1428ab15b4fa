"""Kernels for quantised numbers, of which there are none."""

from __future__ import annotations

__all__ = ["engine", "supported_engines"]

# PyTorch's name for the absence of such a library.
supported_engines = ["none"]
engine = "none"
