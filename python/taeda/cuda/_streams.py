"""Streams and events of CUDA devices, where the library is installed."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import taeda
from taeda.cuda import _runtime
from taeda.cuda._runtime import call

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = [
    "Event",
    "ExternalStream",
    "Stream",
    "StreamContext",
    "current_stream",
    "default_stream",
    "get_stream_from_external",
    "set_stream",
    "stream",
]


_SHARED_NAME = 64  # bytes of an event's name in other processes


class Stream:
    """A queue of a device's work, which is done in order, and beside that of other streams.

    Args:
        device: a device, its name or index; None is the current one.
        priority: lower is more urgent; what the device does not have is brought into its range.

    Streams stay until the process ends, since memory that was used on one is used there again.
    """

    cuda_stream: int
    device: taeda.device

    def __new__(cls, device: Any = None, priority: int = 0) -> Stream:
        """A stream of its own."""
        index = _runtime.index_of(device, "Stream")
        handle = ctypes.c_void_p()
        call("make_stream", index, priority, ctypes.byref(handle))
        return cls._of(index, handle.value or 0)

    @classmethod
    def _of(cls, index: int, handle: int) -> Self:
        made = object.__new__(cls)
        made.device = taeda.device("cuda", index)
        made.cuda_stream = handle
        return made

    @property
    def _place(self) -> tuple[int, ctypes.c_void_p]:
        return self.device.index or 0, ctypes.c_void_p(self.cuda_stream)

    @property
    def _as_parameter_(self) -> ctypes.c_void_p:
        """What functions that ctypes calls are given."""
        return ctypes.c_void_p(self.cuda_stream)

    def __cuda_stream__(self) -> tuple[int, int]:
        """The version of the protocol by which libraries ask for a stream, and its address."""
        return 0, self.cuda_stream

    @classmethod
    def priority_range(cls) -> tuple[int, int]:
        """The least and the most urgent priority of the current device's streams."""
        least, most = ctypes.c_int(), ctypes.c_int()
        call("priorities", _runtime.current(), ctypes.byref(least), ctypes.byref(most))
        return least.value, most.value

    def synchronize(self) -> None:
        """Wait until all work of the stream is done."""
        call("synchronize_stream", *self._place)

    def query(self) -> bool:
        """Whether all work of the stream is done."""
        done = ctypes.c_int()
        call("query_stream", *self._place, ctypes.byref(done))
        return bool(done.value)

    def record_event(self, event: Event | None = None) -> Event:
        """Mark the place in the stream, by a new event unless one is given."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Let later work of this stream wait until the event has come."""
        event.wait(self)

    def wait_stream(self, stream: Stream) -> None:
        """Let later work of this stream wait for the work that another one has now."""
        self.wait_event(stream.record_event())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Stream):
            return NotImplemented
        return (self.device, self.cuda_stream) == (other.device, other.cuda_stream)

    def __hash__(self) -> int:
        return hash((self.device, self.cuda_stream))

    def __repr__(self) -> str:
        return f"<taeda.cuda.Stream device={self.device} cuda_stream={self.cuda_stream:#x}>"


class ExternalStream(Stream):
    """A stream that another library has made, and will destroy after its last use here.

    Args:
        stream_ptr: its address, a ``cudaStream_t``.
        device: a device, its name or index; None is the current one.
    """

    def __new__(cls, stream_ptr: int, device: Any = None) -> ExternalStream:
        """The stream at an address."""
        return cls._of(_runtime.index_of(device, "ExternalStream"), stream_ptr)


class Event:
    """A mark in a stream.

    Args:
        enable_timing: whether :meth:`elapsed_time` may be asked.
        blocking: whether :meth:`synchronize` sleeps while it waits.
        interprocess: whether other processes may wait for it, by :meth:`ipc_handle`; without
            ``enable_timing``.
    """

    def __init__(
        self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
    ) -> None:
        self._flags = (bool(enable_timing), bool(blocking), bool(interprocess))
        self._handle: ctypes.c_void_p | None = None
        self._index = 0

    @classmethod
    def from_ipc_handle(cls, device: Any, handle: bytes) -> Self:
        """The event of another process, by its :meth:`ipc_handle`."""
        if not isinstance(handle, bytes) or len(handle) != _SHARED_NAME:
            raise TypeError(
                f"cuda.Event.from_ipc_handle: handle must be {_SHARED_NAME} bytes, got {handle!r}"
            )
        made = cls(interprocess=True)
        made._index, opened = _runtime.index_of(device, "Event.from_ipc_handle"), ctypes.c_void_p()
        name = ctypes.create_string_buffer(handle, _SHARED_NAME)
        call("open_event", made._index, name, ctypes.byref(opened))
        made._handle = opened
        return made

    def ipc_handle(self) -> bytes:
        """The event's name, by which :meth:`from_ipc_handle` opens it in another process.

        Raises:
            RuntimeError: the event was made without ``interprocess=True``.
        """
        if not self._flags[2]:
            raise RuntimeError("cuda.Event.ipc_handle: the event needs interprocess=True")
        name = ctypes.create_string_buffer(_SHARED_NAME)
        index = _runtime.current() if self._handle is None else self._index
        call("share_event", index, self._made(index), name)
        return name.raw

    @property
    def cuda_event(self) -> int:
        """The event's address; 0 until it is recorded or shared."""
        return (self._handle.value or 0) if self._handle is not None else 0

    @property
    def device(self) -> taeda.device | None:
        """The event's device; None until it is recorded or shared."""
        return None if self._handle is None else taeda.device("cuda", self._index)

    @property
    def _as_parameter_(self) -> ctypes.c_void_p:
        """What functions that ctypes calls are given."""
        return ctypes.c_void_p(self.cuda_event)

    def _made(self, index: int) -> ctypes.c_void_p:
        if self._handle is None:
            made = ctypes.c_void_p()
            call("make_event", index, *map(int, self._flags), ctypes.byref(made))
            self._handle, self._index = made, index
        return self._handle

    def record(self, stream: Stream | None = None) -> None:
        """Mark the place in a stream; None is the current one."""
        stream = current_stream() if stream is None else stream
        index, handle = stream._place
        event = self._made(index)
        if index != self._index:
            raise RuntimeError(
                f"cuda.Event.record: the event is of device cuda:{self._index}, and the stream of "
                f"cuda:{index}"
            )
        call("record_event", index, event, handle)

    def wait(self, stream: Stream | None = None) -> None:
        """Let later work of a stream, None being the current one, wait until the event has come."""
        if self._handle is not None:
            stream = current_stream() if stream is None else stream
            call("wait_event", *stream._place, self._handle)

    def query(self) -> bool:
        """Whether the event has come, or was never recorded."""
        if self._handle is None:
            return True
        done = ctypes.c_int()
        call("query_event", self._index, self._handle, ctypes.byref(done))
        return bool(done.value)

    def synchronize(self) -> None:
        """Wait until the event has come."""
        if self._handle is not None:
            call("synchronize_event", self._index, self._handle)

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this event to another. RuntimeError unless both time and have come."""
        if not (self._flags[0] and end_event._flags[0]):
            raise RuntimeError("cuda.Event.elapsed_time: both events need enable_timing=True")
        if self._handle is None or end_event._handle is None:
            raise RuntimeError("cuda.Event.elapsed_time: both events must be recorded before")
        time = ctypes.c_float()
        call("elapsed", self._index, self._handle, end_event._handle, ctypes.byref(time))
        return time.value

    def __del__(self) -> None:
        if self._handle is not None and not _runtime.why_not():
            call("destroy_event", self._index, self._handle)


def current_stream(device: Any = None) -> Stream:
    """The stream that this thread's work on a device goes to; None is the current device."""
    index = _runtime.index_of(device, "current_stream")
    handle = ctypes.c_void_p()
    call("current_stream", index, ctypes.byref(handle))
    return Stream._of(index, handle.value or 0)


def get_stream_from_external(data_ptr: int, device: Any = None) -> Stream:
    """The stream that another library has made, by its address; None is the current device."""
    return ExternalStream(data_ptr, device)


def default_stream(device: Any = None) -> Stream:
    """The stream that a device's work goes to in the beginning; None is the current device."""
    return Stream._of(_runtime.index_of(device, "default_stream"), 0)


def set_stream(stream: Stream) -> None:
    """Send this thread's work on the stream's device to it."""
    call("set_stream", *stream._place)


def record_use(tensor: taeda.Tensor, stream: Stream) -> None:
    """Let a tensor's memory, once it is freed, wait for what a stream has to do then."""
    if not isinstance(stream, Stream):
        raise TypeError(f"record_stream(): expected a cuda.Stream, got {type(stream).__name__}")
    memory = ctypes.c_void_p(tensor.untyped_storage().data_ptr())
    if memory.value:
        call("record_stream", tensor.get_device(), memory, *stream._place)


class StreamContext:
    """Inside ``with StreamContext(stream):`` work goes to a stream, and its device is current.

    Args:
        stream: a :class:`Stream`; or None, which changes nothing.
    """

    def __init__(self, stream: Stream | None) -> None:
        if stream is not None and not isinstance(stream, Stream):
            raise TypeError(f"cuda.stream: expected a Stream or None, got {type(stream).__name__}")
        self.stream = stream
        self._before: list[tuple[int, Stream]] = []

    def __enter__(self) -> None:
        """Choose the stream."""
        if self.stream is not None:
            index = self.stream._place[0]
            self._before.append((_runtime.current(), current_stream(index)))
            set_stream(self.stream)
            call("set_device", index)

    def __exit__(self, *exc_info: object) -> None:
        """Go back to the stream and the device before."""
        if self.stream is not None:
            index, before = self._before.pop()
            set_stream(before)
            call("set_device", index)


def stream(stream: Stream | None) -> StreamContext:
    """A context that sends work to a stream; with None it does nothing."""
    return StreamContext(stream)
