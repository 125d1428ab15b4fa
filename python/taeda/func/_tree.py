"""Tuples, lists and dictionaries of tensors, as flat lists and back."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import Any


class Tree:
    """The structure of a value without its leaves: whatever is no tuple, list or dictionary."""

    __slots__ = ("children", "keys", "kind")

    def __init__(self, kind: type | None, keys: tuple[Any, ...], children: list[Tree]) -> None:
        self.kind = kind
        self.keys = keys
        self.children = children

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tree):
            return NotImplemented
        return (self.kind, self.keys, self.children) == (other.kind, other.keys, other.children)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        if self.kind is None:
            return "*"
        parts = [repr(child) for child in self.children]
        if self.keys:
            parts = [f"{key!r}: {part}" for key, part in zip(self.keys, parts, strict=True)]
        return f"{self.kind.__name__}({', '.join(parts)})"

    def count(self) -> int:
        """How many leaves there are."""
        return 1 if self.kind is None else sum(child.count() for child in self.children)

    def build(self, leaves: Iterable[Any]) -> Any:
        """The value of this structure with these leaves."""
        return self._build(iter(leaves))

    def _build(self, leaves: Iterator[Any]) -> Any:
        if self.kind is None:
            return next(leaves)
        items = [child._build(leaves) for child in self.children]
        make: Any = self.kind
        if issubclass(make, dict):
            return make(zip(self.keys, items, strict=True))
        return make(*items) if hasattr(make, "_fields") else make(items)


def flatten(value: Any) -> tuple[list[Any], Tree]:
    """The leaves of `value` from left to right, and its structure."""
    leaves: list[Any] = []
    return leaves, _structure(value, leaves.append)


def _structure(value: Any, add: Callable[[Any], None]) -> Tree:
    kind = type(value)
    if kind in (dict, OrderedDict):
        return Tree(kind, tuple(value), [_structure(v, add) for v in value.values()])
    if kind in (tuple, list) or (isinstance(value, tuple) and hasattr(kind, "_fields")):
        return Tree(kind, (), [_structure(v, add) for v in value])
    add(value)
    return Tree(None, (), [])
