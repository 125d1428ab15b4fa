"""Starting and stopping NVIDIA's profilers, which needs CUDA: AssertionError, as there is none."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["profile", "start", "stop"]


def _refuse(what: str) -> NoReturn:
    raise AssertionError(f"cuda.profiler.{what}: taeda is not compiled with CUDA")


def start() -> None:
    """Begin to record."""
    _refuse("start")


def stop() -> None:
    """End recording."""
    _refuse("stop")


@contextmanager
def profile() -> Iterator[None]:
    """Record within the block."""
    start()
    yield
    stop()
