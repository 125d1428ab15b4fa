"""Starting and stopping the record of NVIDIA's profilers: AssertionError where there is no device.

``nsys profile --capture-range=cudaProfilerApi`` and ``ncu --profile-from-start off`` record what is
between :func:`start` and :func:`stop`.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import taeda

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["profile", "start", "stop"]


def _tell(what: str, on: int) -> None:
    if not taeda.cuda.is_available():
        raise AssertionError(f"cuda.profiler.{what}: there is no CUDA device")
    from taeda.cuda import _runtime

    _runtime.call("profile", _runtime.current(), on)


def start() -> None:
    """Begin to record."""
    _tell("start", 1)


def stop() -> None:
    """End recording."""
    _tell("stop", 0)


@contextmanager
def profile() -> Iterator[None]:
    """Record within the block."""
    start()
    try:
        yield
    finally:
        stop()
