"""Stands for ``torch._tensor_str``: the options of printing, and the values as text."""

from __future__ import annotations

from typing import Any

from taeda import Tensor
from taeda._tensor.printing import _body, get_printoptions

__all__ = ["PRINT_OPTS"]


class _Options:
    """The options that ``set_printoptions`` has set, as attributes."""

    def __getattr__(self, name: str) -> Any:
        options = get_printoptions()
        if name not in options:
            raise AttributeError(f"PRINT_OPTS has no option {name!r}")
        return options[name]


PRINT_OPTS = _Options()


def _tensor_str(self: Tensor, indent: int) -> str:
    """The values of a tensor, laid out from column ``indent``."""
    return _body(self, indent) if self.numel() else "[]"
