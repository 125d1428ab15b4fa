"""Operations that were defined with `taeda.library`: `taeda.ops.namespace.name(...)`."""

from __future__ import annotations

from typing import Any


class _OpNamespace:
    """The operations of one namespace."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        from taeda.library._operator import OPERATORS

        operator = OPERATORS.get(f"{self._name}::{name}")
        if operator is None:
            raise AttributeError(f"'_OpNamespace' '{self._name}' object has no attribute '{name}'")
        return operator.function

    def __dir__(self) -> list[str]:
        from taeda.library._operator import OPERATORS

        start = self._name + "::"
        return sorted(name.removeprefix(start) for name in OPERATORS if name.startswith(start))

    def __repr__(self) -> str:
        return f"<namespace 'taeda.ops.{self._name}'>"


def __getattr__(name: str) -> _OpNamespace:
    if name.startswith("__"):
        raise AttributeError(f"module 'taeda.ops' has no attribute {name!r}")
    return _OpNamespace(name)
