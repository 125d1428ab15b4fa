"""NCCL: collectives on CUDA tensors, begun on a stream of their own and going on beside the host.

A group's operations run one after another on its stream, which waits for what the current stream
has to do before; `NcclWork.wait` lets the current stream wait for them in turn, not the host. The
library's functions are in csrc/kernels/cuda/runtime/nccl.cpp.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import taeda
from taeda import Tensor
from taeda.cuda import _library, _runtime
from taeda.cuda._runtime import call
from taeda.cuda._streams import Stream, stream

from ._algorithms import Channel, Send, _copy, _equal
from ._stores import Store
from ._types import ReduceOp

__all__ = ["Communicator", "NcclChannel", "require", "version"]

# Numbers of nccl.h.
_TYPES = {
    taeda.int8: 0, taeda.uint8: 1, taeda.bool: 1, taeda.int32: 2, taeda.uint32: 3, taeda.int64: 4,
    taeda.uint64: 5, taeda.float16: 6, taeda.float32: 7, taeda.float64: 8, taeda.bfloat16: 9,
    taeda.complex64: 7, taeda.complex128: 8,
}  # fmt: skip
_BYTES = 1
_OPS: dict[Any, int] = {
    ReduceOp.SUM: 0, ReduceOp.PRODUCT: 1, ReduceOp.MAX: 2, ReduceOp.MIN: 3, ReduceOp.AVG: 4,
}  # fmt: skip
_PIP = "pip install nvidia-nccl-cu13"


def version() -> int:
    """NCCL's version, such as 22703; 0 where it, or taeda's CUDA library, is not installed."""
    return _runtime.number("nccl_version") if _library.path() is not None else 0


def require(function: str) -> None:
    """Check that NCCL and a device are there.

    Args:
        function: what needs them.

    Raises:
        RuntimeError: what is missing, and how to install it.
    """
    missing = f"{function}: the backend 'nccl' needs "
    if _library.path() is None:
        raise RuntimeError(missing + "taeda's CUDA library (docs/cuda.md says how to build it)")
    if why := _runtime.why_not():
        raise RuntimeError(f"{missing}a CUDA device: {why}")
    if version() == 0:
        raise RuntimeError(f"{missing}NCCL: {_PIP}")


class Communicator:
    """What NCCL calls a communicator, of this process, and its stream.

    All processes make it, with one key.

    Args:
        store: by which the first process gives the others an id.
        key: tells communicators of the store apart.
        index: the device.
        size: how many processes there are.
        rank: the number of this one.

    Raises:
        DistStoreError: the others did not come in time.
        RuntimeError: NCCL fails.
    """

    def __init__(self, store: Store, key: str, index: int, size: int, rank: int) -> None:
        self.index, self.size, self.rank = index, size, rank
        identity = ctypes.create_string_buffer(128)
        if rank == 0:
            call("nccl_make_id", identity)
            store.set(key, identity.raw)
        else:
            identity.raw = store.get(key)
        self._handle: ctypes.c_void_p | None = ctypes.c_void_p()
        call("nccl_init", index, size, identity, rank, ctypes.byref(self._handle))
        self.stream = Stream(index, priority=-1)
        self._lock = threading.Lock()

    def begin(self, name: str, *args: Any) -> None:
        """Begin an operation on the stream that is current, which is this one's."""
        if self._handle is None:
            raise RuntimeError("nccl: the communicator has been given up")
        call(f"nccl_{name}", self.index, *args, self._handle, self.stream._place[1])

    def what_failed(self) -> str:
        """What has gone wrong beside the host; empty where all is well."""
        with self._lock:
            if self._handle is None:
                return ""
            text = ctypes.create_string_buffer(512)
            call("nccl_what_failed", self._handle, text, ctypes.c_size_t(len(text)))
            return text.value.decode()

    def end(self, abort: bool) -> None:
        """Give it back; with ``abort`` also what is under way ends."""
        with self._lock:
            handle, self._handle = self._handle, None
        if handle is not None:
            call("nccl_abort" if abort else "nccl_destroy", self.index, handle)


@contextlib.contextmanager
def together() -> Iterator[None]:
    """Begin the operations of a block at once, at its end."""
    call("nccl_group_start")
    try:
        yield
    finally:
        call("nccl_group_end")


def _bytes(tensor: Tensor) -> tuple[Any, int]:
    """How many there are, and NCCL's number of their type."""
    return ctypes.c_size_t(tensor.nbytes), _BYTES


def _elements(tensor: Tensor) -> tuple[Any, int]:
    """How many numbers NCCL combines, and its number of their type."""
    if tensor.dtype not in _TYPES:
        raise TypeError(f"nccl: tensors of {tensor.dtype} cannot be combined")
    count = tensor.numel() * (2 if tensor.is_complex() else 1)
    return ctypes.c_size_t(count), _TYPES[tensor.dtype]


def _number(tensor: Tensor, op: Any) -> int:
    """NCCL's number of a reduction."""
    if op not in _OPS:
        raise ValueError(f"nccl: tensors cannot be combined by {op}")
    if tensor.dtype == taeda.bool:
        if op not in (ReduceOp.SUM, ReduceOp.MAX, ReduceOp.MIN, ReduceOp.PRODUCT):
            raise ValueError(f"nccl: bools cannot be combined by {op}")
        op = {ReduceOp.SUM: ReduceOp.MAX, ReduceOp.PRODUCT: ReduceOp.MIN}.get(op, op)
    return _OPS[op]


class NcclChannel(Channel):
    """A collective that is being begun on a communicator's stream.

    What NCCL has no function for is messages that begin together, and in deterministic mode
    reductions are too: they are added up in the order of ranks.

    Args:
        communicator: of the group's processes.
        deterministic: combine in the order of ranks.
    """

    def __init__(self, communicator: Communicator, deterministic: bool = False) -> None:
        self._communicator = communicator
        self.rank, self.size = communicator.rank, communicator.size
        self.direct = True
        self._memory = None
        self._in_order = deterministic
        self._held: list[Tensor] = []  # operations that begin together need all of their memory

    def _at(self, tensor: Tensor) -> ctypes.c_void_p:
        self._held.append(tensor)
        return ctypes.c_void_p(tensor.data_ptr())

    def exchange(self, sends: Sequence[Send], receives: Sequence[Send]) -> None:
        """Begin messages, which go on together."""
        with together():
            for peer, tensor in receives:
                self._communicator.begin("receive", self._at(tensor), *_bytes(tensor), peer)
            for peer, tensor in sends:
                self._communicator.begin("send", self._at(tensor), *_bytes(tensor), peer)

    def perform(self, bodies: Sequence[Callable[[Channel], None]], whole: bool) -> None:
        """Begin several collectives, at once where that can be."""
        with together() if whole and not self._in_order else contextlib.nullcontext():
            super().perform(bodies, whole)

    def broadcast(self, x: Tensor, root: int) -> None:
        """Give all processes the tensor of one."""
        self._communicator.begin("broadcast", self._at(x), self._at(x), *_bytes(x), root)

    def reduce(self, x: Tensor, root: int, op: Any) -> None:
        """Combine in one process."""
        number, kind = _number(x, op), _elements(x)
        if self._in_order:
            super().reduce(x, root, op)
        else:
            self._communicator.begin("reduce", self._at(x), self._at(x), *kind, number, root)

    def all_reduce(self, x: Tensor, op: Any) -> None:
        """Combine in all processes."""
        number, kind = _number(x, op), _elements(x)
        if self._in_order:
            super().all_reduce(x, op)
        else:
            self._communicator.begin("all_reduce", self._at(x), self._at(x), *kind, number)

    def reduce_scatter(self, out: Tensor, parts: Sequence[Tensor], op: Any) -> None:
        """Combine what all have for each process there."""
        number, kind = _number(out, op), _elements(out)
        if self._in_order or not _equal(parts):
            super().reduce_scatter(out, parts, op)
            return
        joined = _joined(parts)
        row = taeda.cat(list(parts)) if joined is None else joined
        self._communicator.begin("reduce_scatter", self._at(row), self._at(out), *kind, number)

    def all_gather_slices(self, parts: Sequence[Tensor]) -> None:
        """Give all processes each other's part, in place."""
        mine = parts[self.rank]
        if not _equal(parts):
            super().all_gather_slices(parts)
            return
        joined = _joined(parts)
        row = mine.new_empty(self.size * mine.numel()) if joined is None else joined
        self._communicator.begin("all_gather", self._at(mine), self._at(row), *_bytes(mine))
        if joined is None:
            for part, got in zip(parts, row.split(mine.numel()), strict=True):
                if part is not mine:
                    part.copy_(got)

    def all_to_all(self, outs: Sequence[Tensor], ins: Sequence[Tensor]) -> None:
        """Send a tensor to each process."""
        _copy(outs[self.rank], ins[self.rank])
        self.exchange([(p, ins[p]) for p in self.others()], [(p, outs[p]) for p in self.others()])

    def barrier(self) -> None:
        """Hear of everybody."""
        self.all_reduce(taeda.zeros(1, device=self._communicator.stream.device), ReduceOp.SUM)


def _joined(parts: Sequence[Tensor]) -> Tensor | None:
    """All parts as one tensor, where they lie one behind another in memory."""
    first, size = parts[0], parts[0].nbytes
    if any(p.data_ptr() != first.data_ptr() + i * size for i, p in enumerate(parts)):
        return None
    if first.untyped_storage().data_ptr() != parts[-1].untyped_storage().data_ptr():
        return None
    return first.as_strided((len(parts) * first.numel(),), (1,))


def on(communicator: Communicator, body: Callable[[], None]) -> None:
    """Call a function whose work goes to a communicator's stream, after the current stream's."""
    communicator.stream.wait_stream(taeda.cuda.current_stream(communicator.index))
    with stream(communicator.stream), taeda.no_grad():
        body()
