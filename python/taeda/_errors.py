"""Errors of accelerators, which programs name to catch them. The CPU raises neither."""

from __future__ import annotations

__all__ = ["AcceleratorError", "OutOfMemoryError"]


class OutOfMemoryError(RuntimeError):
    """A device has not enough memory. On the CPU that is a RuntimeError or a MemoryError."""


class AcceleratorError(RuntimeError):
    """A call to a device's library has failed."""


for _error in (OutOfMemoryError, AcceleratorError):
    _error.__module__ = "taeda"
