"""Objects from one process to another over a socket, with the bytes of tensors in shared memory.

A message is a pickle stream followed by the bytes of the tensors in it. A small one goes through
the socket; a large one into a file that has no name and lies in memory, of which the socket carries
the descriptor. The receiver maps that file: its tensors lie over the bytes that the sender wrote.
Such a file is gone with the last process that holds it, however that process ends.
"""

from __future__ import annotations

import io
import mmap
import os
import pickle
import struct
import tempfile
from multiprocessing import reduction
from typing import TYPE_CHECKING, Any

import taeda

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

_ALIGNMENT = 64
_HEAD = struct.Struct("<?Q")  # whether a file follows; the length of the pickle stream


class _Pickler(pickle.Pickler):
    """Notes dense tensors instead of writing their bytes into the stream."""

    def __init__(self, stream: Any) -> None:
        super().__init__(stream, pickle.HIGHEST_PROTOCOL)
        self.parts: list[tuple[int, memoryview]] = []  # where, after the stream, and what
        self.end = 0
        self._records: dict[int, tuple[Any, Any]] = {}  # with the tensors, to keep them alive

    def persistent_id(self, obj: Any) -> Any:
        """The record of a tensor whose bytes are sent separately; None for anything else."""
        if type(obj) is not taeda.Tensor or obj.device.type != "cpu" or obj.grad_fn is not None:
            return None
        if id(obj) not in self._records:
            self._records[id(obj)] = self._place(obj), obj
        return self._records[id(obj)][0]

    def _place(self, tensor: Any) -> Any:
        """Register a tensor's bytes; returns the record from which the receiver rebuilds it."""
        values = tensor.detach()
        count, wants_grad = values.numel(), tensor.requires_grad
        if count == 0:
            return (0, tensor.dtype, tuple(tensor.shape), None, wants_grad, len(self._records))
        reach = 1 + sum((n - 1) * s for n, s in zip(values.shape, values.stride(), strict=True))
        if reach != count:  # rows that are apart, or elements in several places
            values = values.contiguous()
        size = values.element_size()
        start = values.storage_offset() * size
        memory = memoryview(values.untyped_storage()).cast("B")[start : start + count * size]
        at = self.end + -self.end % _ALIGNMENT
        self.end = at + len(memory)
        self.parts.append((at, memory))
        return (count, tensor.dtype, tuple(tensor.shape), tuple(values.stride()), wants_grad, at)


class _Unpickler(pickle.Unpickler):
    """Makes tensors over the bytes of a message."""

    def __init__(self, stream: Any, memory: Any, start: int) -> None:
        super().__init__(stream)
        self._memory = memory
        self._start = start
        self._made: dict[Any, Any] = {}

    def persistent_load(self, record: Any) -> Any:
        """The tensor that a record tells of; one record is one tensor."""
        if record not in self._made:
            self._made[record] = self._make(*record)
        return self._made[record]

    def _make(
        self, count: int, dtype: Any, shape: Any, stride: Any, requires_grad: bool, at: int
    ) -> Any:
        if count == 0:
            return taeda.empty(shape, dtype=dtype, requires_grad=requires_grad)
        flat = taeda.frombuffer(self._memory, dtype=dtype, count=count, offset=self._start + at)
        tensor = taeda.empty(0, dtype=dtype).set_(flat.untyped_storage(), 0, shape, stride)
        return tensor.requires_grad_(requires_grad)


def shared_file() -> int:
    """The descriptor of an empty file in memory, which has no name."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("taeda", os.MFD_CLOEXEC)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def _write(file: int, data: Any, at: int) -> None:
    view = memoryview(data)
    while len(view):
        done = os.pwrite(file, view, at)
        view, at = view[done:], at + done


def send(connection: Connection, obj: Any, inline: int) -> None:
    """Send an object; in a file, where it takes more than ``inline`` bytes.

    Raises:
        OSError: the other side is gone, or there is no memory for the file.
        Exception: what pickling raises. Then nothing has been sent.
    """
    stream = io.BytesIO()
    pickler = _Pickler(stream)
    pickler.dump(obj)
    described = stream.getbuffer()
    start = len(described) + -len(described) % _ALIGNMENT
    total = start + pickler.end
    if total <= inline:
        message = bytearray(_HEAD.size + total)
        _HEAD.pack_into(message, 0, False, len(described))
        body = memoryview(message)[_HEAD.size :]
        body[: len(described)] = described
        for at, memory in pickler.parts:
            body[start + at : start + at + len(memory)] = memory
        connection.send_bytes(message)
        return
    file = shared_file()
    try:
        os.ftruncate(file, total)
        _write(file, described, 0)
        for at, memory in pickler.parts:
            _write(file, memory, start + at)
        connection.send_bytes(_HEAD.pack(True, len(described)))
        reduction.send_handle(connection, file, 0)
    finally:
        os.close(file)


def receive(connection: Connection) -> Any:
    """The next object that the other side has sent.

    Raises:
        EOFError: the other side is gone.
    """
    message = connection.recv_bytes()
    in_file, length = _HEAD.unpack_from(message)
    if in_file:
        file = reduction.recv_handle(connection)
        try:
            memory: Any = mmap.mmap(file, os.fstat(file).st_size)
        finally:
            os.close(file)
    else:
        memory = bytearray(memoryview(message)[_HEAD.size :])
    stream = io.BytesIO(memoryview(memory)[:length])
    return _Unpickler(stream, memory, length + -length % _ALIGNMENT).load()
