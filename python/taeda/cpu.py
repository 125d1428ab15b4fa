"""The CPU as a device, for code that treats all devices alike.

Work on the CPU has always ended when a call returns, so there is one stream
and nothing to wait for.

>>> import taeda
>>> taeda.cpu.is_available(), taeda.cpu.device_count(), taeda.cpu.current_device()
(True, 1, 'cpu')
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

__all__ = [
    "Event",
    "Stream",
    "StreamContext",
    "current_device",
    "current_stream",
    "device_count",
    "get_capabilities",
    "is_available",
    "is_initialized",
    "set_device",
    "stream",
    "synchronize",
]


class Stream:
    """The order in which work runs: that of the calls."""

    def __init__(self, priority: int = -1) -> None:
        self.priority = priority

    def wait_stream(self, stream: Any) -> None:
        """Wait for the work of another stream, which has ended."""
        _check(stream, "wait_stream")

    def record_event(self) -> Event:
        """A point in the stream's work."""
        return Event()

    def wait_event(self, event: Event) -> None:
        """Wait for a point in another stream's work, which is past."""
        event.wait()


class Event:
    """A point in a stream's work. All work before it has ended."""

    def query(self) -> bool:
        """Whether the work before it has ended: yes."""
        return True

    def record(self, stream: Stream | None = None) -> None:
        """Move it to this point."""
        _check(stream, "record")

    def synchronize(self) -> None:
        """Wait for it, which takes no time."""

    def wait(self, stream: Stream | None = None) -> None:
        """Let a stream wait for it, which takes no time."""
        _check(stream, "wait")


class StreamContext:
    """A block whose work goes to a stream; there is one."""

    def __init__(self, stream: Stream | None) -> None:
        _check(stream, "StreamContext")
        self.stream = stream

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc_info: object) -> None:
        return None


_stream = Stream()


def _check(stream: Any, where: str) -> None:
    if not isinstance(stream, Stream | None):
        raise TypeError(f"cpu.{where}: expected a cpu.Stream, got {type(stream).__name__}")


def is_available() -> bool:
    """Whether there is a CPU: yes."""
    return True


def is_initialized() -> bool:
    """Whether the CPU can be used: yes."""
    return True


def device_count() -> int:
    """The number of CPU devices: 1."""
    return 1


def current_device() -> str:
    """The current device, ``"cpu"``."""
    return "cpu"


def set_device(device: Any) -> None:
    """Make a CPU the current device; there is one.

    Raises:
        RuntimeError: `device` is something else than the CPU.
    """
    import taeda

    if taeda.device(device).type != "cpu":
        raise RuntimeError(f"cpu.set_device: expected the CPU, got {device!r}")


def current_stream(device: Any = None) -> Stream:
    """The one stream."""
    if device is not None:
        set_device(device)
    return _stream


def stream(stream: Stream | None) -> StreamContext:
    """A block whose work goes to a stream; there is one."""
    return StreamContext(stream)


def synchronize(device: Any = None) -> None:
    """Wait until all work has ended, which it has."""
    if device is not None:
        set_device(device)


@cache
def get_capabilities() -> Mapping[str, Any]:
    """What the processor can do: extensions of its instruction set, and whether it has each.

    Further the architecture, the processor's name, and the numbers of cores and sockets and the
    sizes of caches. Which of the extensions kernels use is another matter: see
    ``taeda.backends.cpu.get_cpu_capability()``.

    >>> import taeda
    >>> taeda.cpu.get_capabilities()["num_logical_cores"] >= 1
    True
    """
    from taeda._processor import capabilities

    return capabilities()
