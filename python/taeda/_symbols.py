"""The types of numbers that are not known yet, while PyTorch traces: here every number is known."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["SymBool", "SymFloat", "SymInt"]


class _Symbol:
    def __init__(self, node: Any) -> None:
        _refuse(type(self).__name__)


def _refuse(name: str) -> NoReturn:
    raise TypeError(f"{name}: nothing is traced, so that there are no symbolic numbers")


class SymInt(_Symbol):
    """A symbolic int, of which there are none: ``isinstance(x, SymInt)`` is always False."""


class SymFloat(_Symbol):
    """A symbolic float, of which there are none."""


class SymBool(_Symbol):
    """A symbolic bool, of which there are none."""
