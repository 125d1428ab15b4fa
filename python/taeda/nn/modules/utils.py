"""Small helpers of layers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

__all__ = ["_ntuple", "_pair", "_quadruple", "_reverse_repeat_tuple", "_single", "_triple"]


def _ntuple(count: int) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that makes a tuple of `count` values of a single one."""

    def expand(value: Any) -> tuple[Any, ...]:
        return tuple(value) if isinstance(value, Iterable) else (value,) * count

    return expand


_single = _ntuple(1)
_pair = _ntuple(2)
_triple = _ntuple(3)
_quadruple = _ntuple(4)


def _reverse_repeat_tuple(values: Iterable[Any], times: int) -> tuple[Any, ...]:
    """The values from last to first, each `times` times: the order that `pad` takes them in."""
    return tuple(value for value in reversed(tuple(values)) for _ in range(times))
