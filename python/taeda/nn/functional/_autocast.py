"""Precision of functions that are made of several ops."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import taeda
from taeda._C import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
R = TypeVar("R")


def in_float32(function: Callable[P, R]) -> Callable[P, R]:
    """Under autocast, give a function its tensors in float32, as autocast itself does for ops."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        from taeda.amp import autocast
        from taeda.amp.autocast_mode import enabled_for

        kind = enabled_for(*args, *kwargs.values())
        if kind is None:
            return function(*args, **kwargs)
        wide = (_widened(value) for value in args)
        wide_kwargs = {name: _widened(value) for name, value in kwargs.items()}
        with autocast(kind, enabled=False):
            return function(*wide, **wide_kwargs)  # type: ignore[arg-type]

    return call


def _widened(value: object) -> object:
    narrow = (taeda.float16, taeda.bfloat16)
    return value.float() if isinstance(value, Tensor) and value.dtype in narrow else value
