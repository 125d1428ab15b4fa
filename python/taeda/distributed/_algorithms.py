"""Collectives on contiguous tensors, written once over a transport.

Sums are in the order of ranks wherever each process combines what it gets from all others, which
is the rule up to `DIRECT` processes, and with `deterministic` above it. Then a result has the same
bits in each run, whatever arrives first. With more processes trees and rings send fewer messages.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import taeda
from taeda import Tensor

from ._transport import Transfer, Transport
from ._types import ReduceOp

if TYPE_CHECKING:
    from ._shared import SharedMemory

__all__ = ["Channel", "view_bytes"]

DIRECT = 16  # processes among which each sends to all others
SMALL = 1 << 14  # bytes up to which whole tensors are sent rather than slices
SHARE = 1 << 17  # bytes from which on shared memory serves
BLOCK = 1 << 23  # bytes of a tensor that are combined at a time

Send = tuple[int, Tensor]


def view_bytes(tensor: Tensor) -> memoryview:
    """The memory of a contiguous tensor."""
    flat = tensor.detach().reshape(-1)
    if flat.numel() == 0:
        return memoryview(b"")
    return memoryview(flat.view(taeda.uint8).numpy())


_COMBINE: dict[Any, Callable[..., Any]] = {
    ReduceOp.SUM: taeda.add,
    ReduceOp.AVG: taeda.add,
    ReduceOp.PRODUCT: taeda.mul,
    ReduceOp.MIN: taeda.minimum,
    ReduceOp.MAX: taeda.maximum,
    ReduceOp.BAND: taeda.bitwise_and,
    ReduceOp.BOR: taeda.bitwise_or,
    ReduceOp.BXOR: taeda.bitwise_xor,
}


def slices_of(n: int, parts: int) -> list[tuple[int, int]]:
    """Where each of some parts of n elements begins, and how long it is."""
    small, larger = divmod(n, parts)
    starts = [i * small + min(i, larger) for i in range(parts + 1)]
    return [(a, b - a) for a, b in itertools.pairwise(starts)]


class Channel:
    """A collective under way: a transport, the tag of its messages, and when to give up.

    Tensors are flat and contiguous; all processes give tensors of the same size and dtype.

    Args:
        transport: what carries the messages.
        tag: of this collective alone, the same in all processes.
        seconds: how long it may take.
        deterministic: combine in the order of ranks among any number of processes.
        memory: finds the memory that all processes share, None where they share none.
    """

    def __init__(
        self,
        transport: Transport,
        tag: int,
        seconds: float,
        deterministic: bool = False,
        memory: Callable[[Channel], SharedMemory | None] | None = None,
    ) -> None:
        self.transport, self.tag = transport, tag
        self.rank, self.size = transport.rank, transport.size
        self.until = time.monotonic() + seconds
        self.direct = deterministic or self.size <= DIRECT
        self._memory = memory

    def shared(self, size: int) -> SharedMemory | None:
        """The memory that all processes share, if some bytes are worth its barriers."""
        if self._memory is None or size < SHARE or self.size == 1:
            return None
        return self._memory(self)

    def exchange(self, sends: Sequence[Send], receives: Sequence[Send]) -> None:
        """Send tensors, and receive others meanwhile."""
        self.finish(self.begin(sends, receives))

    def begin(self, sends: Sequence[Send], receives: Sequence[Send]) -> list[Transfer]:
        """Begin an `exchange`; `finish` ends it."""
        port = self.transport
        begun = [port.receive(peer, self.tag, view_bytes(t)) for peer, t in receives]
        return begun + [port.send(peer, self.tag, view_bytes(t)) for peer, t in sends]

    def finish(self, transfers: Sequence[Transfer]) -> None:
        """Wait for what was begun."""
        self.transport.finish(transfers, self.until)

    def others(self) -> list[int]:
        """The other processes, from the next one on, so that not all begin with the same."""
        return [(self.rank + k) % self.size for k in range(1, self.size)]

    def perform(self, bodies: Sequence[Callable[[Channel], None]], whole: bool) -> None:
        """Perform several collectives.

        Args:
            bodies: perform one each on a channel.
            whole: whether none of them has anything left to do once it has begun its messages.
        """
        for body in bodies:
            body(self)

    # ---- one to all, all to one ----

    def broadcast(self, x: Tensor, root: int) -> None:
        """Send along a binomial tree, or in slices that all then gather."""
        memory = self.shared(x.nbytes)
        if memory is not None:
            memory.broadcast(self, x, root)
            return
        if x.nbytes > BLOCK // 8 and self.size > 3:
            parts = [x.narrow(0, *part) for part in slices_of(x.numel(), self.size)]
            self.scatter(parts[self.rank], parts if self.rank == root else None, root)
            self.all_gather_slices(parts)
            return
        place = (self.rank - root) % self.size
        step = 1
        while step < self.size:
            if place < step and place + step < self.size:
                self.exchange([((self.rank + step) % self.size, x)], [])
            elif step <= place < 2 * step:
                self.exchange([], [((self.rank - step) % self.size, x)])
            step *= 2

    def scatter(self, x: Tensor, parts: Sequence[Tensor] | None, root: int) -> None:
        """Send each process its part."""
        if self.rank != root:
            self.exchange([], [(root, x)])
            return
        assert parts is not None
        self.exchange([(peer, parts[peer]) for peer in self.others()], [])
        _copy(x, parts[root])

    def gather(self, x: Tensor, parts: Sequence[Tensor] | None, root: int) -> None:
        """Receive the part of each process."""
        if self.rank != root:
            self.exchange([(root, x)], [])
            return
        assert parts is not None
        self.exchange([], [(peer, parts[peer]) for peer in self.others()])
        _copy(parts[root], x)

    def reduce(self, x: Tensor, root: int, op: Any) -> None:
        """Combine in one process: of slices in all, or along a binomial tree."""
        if self.size == 1:
            return
        if self.direct and x.nbytes > SMALL:
            parts = [x.narrow(0, *part) for part in slices_of(x.numel(), self.size)]
            self._combine_slices(parts, op)
            self.gather(parts[self.rank], parts, root)
        elif self.direct:
            self._fold_at(x, root, op)
        else:
            self._reduce_by_tree(x, root, op)
        if self.rank == root:
            self._divide(x, op)

    def _fold_at(self, x: Tensor, root: int, op: Any) -> None:
        if self.rank != root:
            self.exchange([(root, x)], [])
            return
        got = {peer: taeda.empty_like(x) for peer in self.others()}
        self.exchange([], list(got.items()))
        got[root] = x.clone()
        self.fold(x, [got[r] for r in range(self.size)], op)

    def _reduce_by_tree(self, x: Tensor, root: int, op: Any) -> None:
        place = (self.rank - root) % self.size
        step = 1
        while step < self.size:
            if place & step:
                self.exchange([((self.rank - step) % self.size, x)], [])
                return
            if place + step < self.size:
                got = taeda.empty_like(x)
                self.exchange([], [((self.rank + step) % self.size, got)])
                _COMBINE[op](x, got, out=x)
            step *= 2

    # ---- all to all ----

    def all_reduce(self, x: Tensor, op: Any) -> None:
        """Combine slices in all processes and gather them, or small tensors as they are."""
        if self.size == 1:
            return
        if x.nbytes <= SMALL:
            if self.direct and self.size <= DIRECT:
                got = [taeda.empty_like(x) for _ in range(self.size)]
                got[self.rank] = x.clone()
                self.exchange(
                    [(peer, got[self.rank]) for peer in self.others()],
                    [(peer, got[peer]) for peer in self.others()],
                )
                self.fold(x, got, op)
                self._divide(x, op)
                return
            self.reduce(x, 0, op)
            self.broadcast(x, 0)
            return
        memory = self.shared(x.nbytes)
        if memory is not None:
            memory.all_reduce(self, x, op)
            self._divide(x, op)
            return
        self._all_reduce_blocks(x, op)

    def _all_reduce_blocks(self, x: Tensor, op: Any) -> None:
        """Combine slices in all processes; those of a block are gathered while the next comes."""
        count = BLOCK // x.element_size()
        sends: list[Send] = []
        receives: list[Send] = []
        for block in x.split(count):
            parts = [block.narrow(0, *part) for part in slices_of(block.numel(), self.size)]
            mine = parts[self.rank]
            if not self.direct:
                self._combine_by_ring(parts, op)
                self._divide(mine, op)
                self.all_gather_slices(parts)
                continue
            self._combine_slices(parts, op, sends, receives)
            self._divide(mine, op)
            sends = [(peer, mine) for peer in self.others()]
            receives = [(peer, parts[peer]) for peer in self.others()]
        self.exchange(sends, receives)

    def reduce_scatter(self, out: Tensor, parts: Sequence[Tensor], op: Any) -> None:
        """Combine what all have for each process there; the parts are left as they are."""
        mine = parts[self.rank]
        memory = self.shared(out.nbytes * self.size)
        if memory is not None:
            memory.reduce_scatter(self, out, parts, op)
        elif self.size > 1 and not self.direct:
            work = [part.clone() for part in parts]
            self._combine_slices(work, op)
            _copy(out, work[self.rank])
        else:
            result = mine if self.size == 1 else taeda.empty_like(mine)
            if self.size > 1:
                got = [taeda.empty_like(mine) for _ in range(self.size)]
                got[self.rank] = mine
                self.exchange(
                    [(peer, parts[peer]) for peer in self.others()],
                    [(peer, got[peer]) for peer in self.others()],
                )
                self.fold(result, got, op)
            _copy(out, result)
        self._divide(out, op)

    def _combine_slices(
        self,
        parts: Sequence[Tensor],
        op: Any,
        sends: Sequence[Send] = (),
        receives: Sequence[Send] = (),
    ) -> None:
        """Combine in place, so that each process has the result of its part.

        Args:
            parts: what each process is to combine, and get.
            op: how.
            sends: what to exchange meanwhile, where all exchange with all.
            receives: likewise.
        """
        mine = parts[self.rank]
        if not self.direct:
            self._combine_by_ring(parts, op)
            return
        got = [mine if r == self.rank else taeda.empty_like(mine) for r in range(self.size)]
        self.exchange(
            [*sends, *((peer, parts[peer]) for peer in self.others())],
            [*receives, *((peer, got[peer]) for peer in self.others())],
        )
        # What has come may be overwritten; this process's part may be so by the last sum alone.
        total = got[0]
        for value in got[1:-1]:
            _COMBINE[op](total, value, out=total)
        _COMBINE[op](total, got[-1], out=mine)

    def _combine_by_ring(self, parts: Sequence[Tensor], op: Any) -> None:
        after, before = (self.rank + 1) % self.size, (self.rank - 1) % self.size
        for step in range(self.size - 1):
            sent = parts[(self.rank - step - 1) % self.size]
            kept = parts[(self.rank - step - 2) % self.size]
            got = taeda.empty_like(kept)
            self.exchange([(after, sent)], [(before, got)])
            _COMBINE[op](kept, got, out=kept)

    def all_gather_slices(self, parts: Sequence[Tensor]) -> None:
        """Give all processes each other's part, in place."""
        memory = self.shared(parts[self.rank].nbytes) if _equal(parts) else None
        if memory is not None:
            memory.all_gather(self, parts)
            return
        if self.size <= DIRECT:
            mine = parts[self.rank]
            self.exchange(
                [(peer, mine) for peer in self.others()],
                [(peer, parts[peer]) for peer in self.others()],
            )
            return
        after, before = (self.rank + 1) % self.size, (self.rank - 1) % self.size
        for step in range(self.size - 1):
            self.exchange(
                [(after, parts[(self.rank - step) % self.size])],
                [(before, parts[(self.rank - step - 1) % self.size])],
            )

    def all_gather(self, parts: Sequence[Tensor], x: Tensor) -> None:
        """Give all processes the tensors of all."""
        _copy(parts[self.rank], x)
        self.all_gather_slices(parts)

    def all_to_all(self, outs: Sequence[Tensor], ins: Sequence[Tensor]) -> None:
        """Send a tensor to each process, some at a time."""
        _copy(outs[self.rank], ins[self.rank])
        for first in range(1, self.size, DIRECT):
            steps = range(first, min(first + DIRECT, self.size))
            to = [(self.rank + k) % self.size for k in steps]
            of = [(self.rank - k) % self.size for k in steps]
            self.exchange([(p, ins[p]) for p in to], [(p, outs[p]) for p in of])

    def barrier(self) -> None:
        """Hear of everybody, from twice as many in each round."""
        word, heard = taeda.zeros(1, dtype=taeda.uint8), taeda.zeros(1, dtype=taeda.uint8)
        step = 1
        while step < self.size:
            self.exchange(
                [((self.rank + step) % self.size, word)],
                [((self.rank - step) % self.size, heard)],
            )
            step *= 2

    # ---- combining ----

    def fold(self, out: Tensor, values: Sequence[Tensor], op: Any) -> None:
        """Combine in the order of ranks; `out` is none of the values."""
        combine = _COMBINE[op]
        combine(values[0], values[1], out=out)
        for value in values[2:]:
            combine(out, value, out=out)

    def _divide(self, x: Tensor, op: Any) -> None:
        if op == ReduceOp.AVG and self.size > 1:
            x.div_(self.size)


def _copy(out: Tensor, x: Tensor) -> None:
    if out is not x and out.data_ptr() != x.data_ptr():
        out.copy_(x)


def _equal(parts: Sequence[Tensor]) -> bool:
    return all(part.numel() == parts[0].numel() for part in parts)
