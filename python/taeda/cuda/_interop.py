"""Order among the streams of taeda and of other libraries that share memory of a CUDA device.

A stream is written as in DLPack and ``__cuda_array_interface__``: an address, or 1 for the default
one.
"""

from __future__ import annotations

import ctypes
from typing import Any

from taeda.cuda import _runtime, _streams
from taeda.cuda._runtime import call

__all__ = ["current", "device_of", "follow", "lead", "number"]

_LEGACY, _PER_THREAD = 1, 2


def current() -> int:
    """The index of the current device."""
    return _runtime.current()


def device_of(address: int) -> int:
    """The device that memory belongs to. RuntimeError for memory that is none of a device."""
    index = ctypes.c_int()
    call("device_of", ctypes.c_void_p(address), ctypes.byref(index))
    return index.value


def number(index: int) -> int:
    """The device's current stream."""
    return _streams.current_stream(index).cuda_stream or _LEGACY


def _stream(index: int, given: Any, none: int | None) -> _streams.Stream | None:
    if given is None:
        given = none
    if given is None:
        return None
    if not isinstance(given, int) or isinstance(given, bool):
        raise TypeError(f"a stream must be an int or None, got {type(given).__name__}")
    if given in (0, _PER_THREAD):
        raise BufferError(
            f"stream {given} is not supported: it must be 1, for the default stream, or the "
            "address of one"
        )
    return _streams.Stream._of(index, 0 if given == _LEGACY else given)


def _order(later: _streams.Stream, before: _streams.Stream) -> None:
    if later != before:
        later.wait_stream(before)


def lead(index: int, stream: Any) -> None:
    """Let another library's stream wait for what the current one has to do.

    Args:
        index: the device.
        stream: as ``__dlpack__`` is given it: None is the default stream, -1 asks for nothing.
    """
    if stream == -1:
        return
    theirs = _stream(index, stream, _LEGACY)
    assert theirs is not None
    _order(theirs, _streams.current_stream(index))


def follow(index: int, stream: Any) -> None:
    """Let the current stream wait for what another library's has to do; None asks for nothing."""
    theirs = _stream(index, stream, None)
    if theirs is not None:
        _order(_streams.current_stream(index), theirs)
