"""Intel's GPUs: there are none in this build, and everything here says so.

>>> import taeda
>>> taeda.xpu.is_available(), taeda.xpu.device_count()
(False, 0)
"""

from __future__ import annotations

from typing import Any

from taeda import _absent
from taeda.cuda.streams import StreamContext as _CudaStreamContext

_REST = _absent.members("xpu")
globals().update(_REST)

default_generators: tuple[Any, ...] = ()  # one for each device

__all__ = [*_REST, "StreamContext", "default_generators", "stream"]


class StreamContext(_CudaStreamContext):
    """Inside ``with StreamContext(stream):`` work goes to a stream; None changes nothing."""


def stream(stream: Any) -> StreamContext:
    """A context that sends work to a stream; with None it does nothing."""
    return StreamContext(stream)
