"""Marks in the record of Intel's profilers, which this build has no library for."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["is_available", "mark", "range", "range_pop", "range_push"]


def is_available() -> bool:
    """Whether marks can be made: no."""
    return False


def _refuse(what: str) -> NoReturn:
    raise RuntimeError(f"profiler.itt.{what}: this build has no ITT; see is_available()")


def range_push(msg: str) -> None:
    """Begin a nested range; RuntimeError, as there is no library."""
    _refuse("range_push")


def range_pop() -> None:
    """End the innermost range; RuntimeError, as there is no library."""
    _refuse("range_pop")


def mark(msg: str) -> None:
    """Mark a moment; RuntimeError, as there is no library."""
    _refuse("mark")


@contextmanager
def range(msg: str, *args: object, **kwargs: object) -> Iterator[None]:
    """A range, as the context of a block."""
    range_push(msg.format(*args, **kwargs))
    yield
    range_pop()
