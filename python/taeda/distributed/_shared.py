"""Memory that all processes of a group share, where they are on one machine.

A tensor is copied into shared memory once and read from there by all, which costs less than sending
it through sockets; these carry the barriers. The memory belongs to no file: the system frees it
with the last process.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import taeda
from taeda import Tensor

if TYPE_CHECKING:
    from ._algorithms import Channel

__all__ = ["SharedMemory"]

BLOCK = 1 << 22  # bytes of a process that are shared at a time


class SharedMemory:
    """A piece of memory of each process, which all see.

    Args:
        places: the process id and the descriptor of each process's piece.
        rank: the number of this process.

    Raises:
        OSError: a piece cannot be opened.
    """

    def __init__(self, places: Sequence[tuple[int, int]], rank: int) -> None:
        self._turn = 0
        self._rank, self._size = rank, len(places)
        self._pieces: list[Tensor] = []
        for pid, descriptor in places:
            opened = os.open(f"/proc/{pid}/fd/{descriptor}", os.O_RDWR)
            try:
                piece = mmap.mmap(opened, 2 * BLOCK)
            finally:
                os.close(opened)
            self._pieces.append(taeda.frombuffer(piece, dtype=taeda.uint8))

    @staticmethod
    def descriptor() -> int:
        """The descriptor of a new piece.

        Raises:
            OSError: the system has no such memory.
        """
        made = os.memfd_create("taeda", os.MFD_CLOEXEC)
        os.ftruncate(made, 2 * BLOCK)
        return made

    def _next(self, count: int, dtype: Any) -> list[Tensor]:
        """A half of each piece, as so many elements: the one that was not used last.

        Whoever has passed a barrier since then has read the other half before.
        """
        self._turn += 1
        size = count * taeda.empty(0, dtype=dtype).element_size()
        first = (self._turn % 2) * BLOCK
        return [piece[first : first + size].view(dtype) for piece in self._pieces]

    def _blocks(self, x: Tensor, share: int = 1) -> Sequence[tuple[int, int]]:
        """Where the blocks of a tensor begin, and how long they are."""
        each = BLOCK // x.element_size() // share
        return [(a, min(each, x.numel() - a)) for a in range(0, x.numel(), each)]

    def all_reduce(self, channel: Channel, x: Tensor, op: Any) -> None:
        """Combine a slice of each block in each process, in the order of ranks."""
        from ._algorithms import slices_of

        for first, count in self._blocks(x):
            pieces = self._next(count, x.dtype)
            block = x.narrow(0, first, count)
            pieces[self._rank].copy_(block)
            channel.barrier()
            slices = slices_of(count, self._size)
            mine = block.narrow(0, *slices[self._rank])
            channel.fold(mine, [piece.narrow(0, *slices[self._rank]) for piece in pieces], op)
            pieces[self._rank].narrow(0, *slices[self._rank]).copy_(mine)
            channel.barrier()
            for peer, (start, length) in enumerate(slices):
                if peer != self._rank:
                    block.narrow(0, start, length).copy_(pieces[peer].narrow(0, start, length))

    def all_gather(self, channel: Channel, parts: Sequence[Tensor]) -> None:
        """Give all processes each other's part, in place."""
        for first, count in self._blocks(parts[self._rank]):
            pieces = self._next(count, parts[0].dtype)
            pieces[self._rank].copy_(parts[self._rank].narrow(0, first, count))
            channel.barrier()
            for peer, part in enumerate(parts):
                if peer != self._rank:
                    part.narrow(0, first, count).copy_(pieces[peer])

    def broadcast(self, channel: Channel, x: Tensor, root: int) -> None:
        """Give all processes the tensor of one."""
        for first, count in self._blocks(x):
            pieces = self._next(count, x.dtype)
            if self._rank == root:
                pieces[root].copy_(x.narrow(0, first, count))
            channel.barrier()
            if self._rank != root:
                x.narrow(0, first, count).copy_(pieces[root])

    def reduce_scatter(
        self, channel: Channel, out: Tensor, parts: Sequence[Tensor], op: Any
    ) -> None:
        """Combine what all have for each process there, in the order of ranks."""
        for first, count in self._blocks(out, share=self._size):
            pieces = self._next(count * self._size, out.dtype)
            for peer, part in enumerate(parts):
                pieces[self._rank].narrow(0, peer * count, count).copy_(
                    part.narrow(0, first, count)
                )
            channel.barrier()
            found = [piece.narrow(0, self._rank * count, count) for piece in pieces]
            channel.fold(out.narrow(0, first, count), found, op)
