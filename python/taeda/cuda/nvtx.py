"""Marks and ranges in the record of NVIDIA's profilers, by the package ``nvtx``.

Without a CUDA device, and without the package (``pip install nvtx``), everything is a RuntimeError.
"""

from __future__ import annotations

import importlib
import itertools
import threading
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

import taeda

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["mark", "range", "range_end", "range_pop", "range_push", "range_start"]


class _Depth(threading.local):
    """How many ranges this thread has pushed."""

    pushed = 0


_depth = _Depth()
_started: dict[int, Any] = {}  # what the package knows ranges by
_numbers = itertools.count(1)


def _nvtx(what: str) -> Any:
    if not taeda.cuda.is_available():
        raise RuntimeError(f"cuda.nvtx.{what}: there is no CUDA device, and so no NVTX")
    try:
        return importlib.import_module("nvtx")
    except ImportError:
        raise RuntimeError(
            f"cuda.nvtx.{what}: the package nvtx is needed: pip install nvtx"
        ) from None


def range_push(msg: str) -> int:
    """Begin a nested range of this thread; how many are around it."""
    _nvtx("range_push").push_range(msg)
    _depth.pushed += 1
    return _depth.pushed - 1


def range_pop() -> int:
    """End the innermost range of this thread; how many were around it."""
    _nvtx("range_pop").pop_range()
    _depth.pushed = max(_depth.pushed - 1, 0)
    return _depth.pushed


def range_start(msg: str) -> int:
    """Begin a range that any thread may end, and return its number."""
    begun = _nvtx("range_start").start_range(msg)
    number = next(_numbers)
    _started[number] = begun
    return number


def range_end(range_id: int) -> None:
    """End a range by its number."""
    nvtx = _nvtx("range_end")
    if range_id not in _started:
        raise RuntimeError(f"cuda.nvtx.range_end: no range has the number {range_id!r}")
    nvtx.end_range(_started.pop(range_id))


def mark(msg: str) -> None:
    """Mark a moment."""
    _nvtx("mark").mark(msg)


@contextmanager
def _pushed(msg: str) -> Iterator[None]:
    range_push(msg)
    try:
        yield
    finally:
        range_pop()


def range(msg: str, *args: Any, **kwargs: Any) -> AbstractContextManager[None]:
    """A range, as the context of a block; ``msg`` is formatted with what follows."""
    return _pushed(msg.format(*args, **kwargs))
