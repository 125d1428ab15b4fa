"""Stands for ``torch._ops``: the classes of operations."""

from __future__ import annotations

from typing import Any

from taeda._aten import OpOverload, OpOverloadPacket

__all__ = ["HigherOrderOperator", "OpOverload", "OpOverloadPacket"]


class HigherOrderOperator:
    """An operation that takes functions, which compilers look into. taeda has no instances."""

    def __new__(cls, *args: Any, **kwargs: Any) -> HigherOrderOperator:
        """Refuse to make one."""
        raise TypeError("HigherOrderOperator: there are none; functions are called as they are")
