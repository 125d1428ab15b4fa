"""Streams, events and graphs of CUDA, for annotations and checks: without a device, there are none.

>>> import taeda
>>> isinstance("x", taeda.cuda.Stream)
False
"""

from __future__ import annotations

from typing import Any

__all__ = ["CUDAGraph", "Event", "Stream", "StreamContext", "graph", "stream"]


class _NeedsCuda:
    """Base of classes that cannot be instantiated without CUDA."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError(
            f"cuda.{type(self).__name__}: taeda is not compiled with CUDA; there is no device"
        )


class Stream(_NeedsCuda):
    """A queue of a device's work. RuntimeError where one is made: there is no device."""


class Event(_NeedsCuda):
    """A mark in a stream. RuntimeError where one is made: there is no device."""


class CUDAGraph(_NeedsCuda):
    """Recorded work of a device. RuntimeError where one is made: there is no device."""


class graph(_NeedsCuda):
    """Records work into a CUDAGraph. RuntimeError where one is made: there is no device."""


class StreamContext:
    """Inside ``with StreamContext(stream):`` a device's work goes to a stream.

    Args:
        stream: a ``Stream``, of which there are none; or None, which changes nothing.
    """

    def __init__(self, stream: Stream | None) -> None:
        if stream is not None and not isinstance(stream, Stream):
            raise TypeError(f"cuda.stream: expected a Stream or None, got {type(stream).__name__}")
        self.stream = stream

    def __enter__(self) -> None:
        """Choose the stream: nothing to do for None."""

    def __exit__(self, *exc_info: object) -> None:
        """Go back to the stream before: nothing to do for None."""


def stream(stream: Stream | None) -> StreamContext:
    """A context that sends work to a stream; with None it does nothing."""
    return StreamContext(stream)
