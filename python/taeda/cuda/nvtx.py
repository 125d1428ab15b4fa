"""Marks in the record of NVIDIA's profilers, which need CUDA: RuntimeError, as there is none."""

from __future__ import annotations

from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["mark", "range", "range_end", "range_pop", "range_push", "range_start"]


def _refuse(what: str) -> NoReturn:
    raise RuntimeError(f"cuda.nvtx.{what}: taeda is not compiled with CUDA; there is no NVTX")


def range_push(msg: str) -> int:
    """Begin a nested range."""
    _refuse("range_push")


def range_pop() -> int:
    """End the innermost range."""
    _refuse("range_pop")


def range_start(msg: str) -> int:
    """Begin a range, and return its number."""
    _refuse("range_start")


def range_end(range_id: int) -> None:
    """End a range by its number."""
    _refuse("range_end")


def mark(msg: str) -> int:
    """Mark a moment."""
    _refuse("mark")


@contextmanager
def _pushed(msg: str) -> Iterator[None]:
    range_push(msg)
    yield
    range_pop()


def range(msg: str, *args: Any, **kwargs: Any) -> AbstractContextManager[None]:
    """A range, as the context of a block; ``msg`` is formatted with what follows."""
    return _pushed(msg.format(*args, **kwargs))
