"""Gradients in buckets, averaged over processes while backward goes on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import taeda
from taeda import _C, Tensor
from taeda.futures import Future

from . import _collectives as plain
from . import flight_recorder
from ._objects import broadcast_object_list
from ._process_group import ProcessGroup
from ._types import ReduceOp
from ._work import Work

__all__ = ["GradBucket", "Reducer"]

FIRST_BYTES = 1 << 20  # of the first bucket, so that sending begins early

Hook = Callable[[Any, "GradBucket"], Future[Any]]


class GradBucket:
    """Gradients that are sent together, as hooks of `DistributedDataParallel` see them."""

    def __init__(self, index: int, parameters: Sequence[Tensor], last: bool) -> None:
        self._index, self._last = index, last
        self._parameters = list(parameters)
        first = self._parameters[0]
        total = sum(p.numel() for p in self._parameters)
        self._buffer = taeda.zeros(total, dtype=first.dtype, device=first.device)
        self._set_views()
        self._pending = len(self._parameters)
        self._future: Future[Any] | None = None

    def _set_views(self) -> None:
        parts = self._buffer.split([p.numel() for p in self._parameters])
        self._views = [part.view(p.shape) for part, p in zip(parts, self._parameters, strict=True)]

    def index(self) -> int:
        """The number of the bucket: those that are ready early come first."""
        return self._index

    def buffer(self) -> Tensor:
        """All gradients in a row."""
        return self._buffer

    def gradients(self) -> list[Tensor]:
        """The gradients: views of `buffer`."""
        return self._views

    def parameters(self) -> list[Tensor]:
        """The parameters whose gradients they are."""
        return self._parameters

    def is_last(self) -> bool:
        """Whether it is the last of a backward pass."""
        return self._last

    def set_buffer(self, buffer: Tensor) -> None:
        """Replace `buffer` by another tensor of its size."""
        self._buffer = buffer
        self._set_views()


class Reducer:
    """Averages the gradients of parameters over a group, in each backward pass.

    A bucket is sent as soon as its gradients are there and the buckets before it are on their way,
    so that all processes send the same ones in the same order.

    Args:
        names: of the parameters, for messages.
        parameters: those that require gradients.
        group: the processes.
        cap: bytes of a bucket.
        find_unused: whether some may get no gradient.
        as_views: whether gradients share the memory of buckets.
        static: whether each pass is like the first.
    """

    def __init__(
        self,
        names: Sequence[str],
        parameters: Sequence[Tensor],
        group: ProcessGroup,
        cap: int,
        find_unused: bool,
        as_views: bool,
        static: bool,
    ) -> None:
        self._names, self._parameters, self._group = list(names), list(parameters), group
        self._cap, self._find_unused, self._as_views = cap, find_unused, as_views
        self._static = static
        self._hook: tuple[Any, Hook] | None = None
        self._index = {id(p): i for i, p in enumerate(parameters)}
        self._expected: list[int] | None = None  # in static graphs: how often each gets a gradient
        self._counts = [0] * len(parameters)
        self._arrived: list[int] = []
        self._rebuilt = False
        self._prepared = False
        self._callback_queued = False
        self._unfinished: list[str] = []
        self.divisor = group.size()
        self._make_buckets(list(reversed(range(len(parameters)))))
        for p in parameters:
            p.register_post_accumulate_grad_hook(self._arrive)

    # ---- buckets ----

    def _make_buckets(self, order: Sequence[int]) -> None:
        """Divide parameters among buckets, in an order, each of one dtype."""
        filling: dict[Any, list[int]] = {}
        full: list[list[int]] = []
        limit: dict[Any, int] = {}
        for i in order:
            p = self._parameters[i]
            kind = p.dtype
            filling.setdefault(kind, []).append(i)
            size = sum(self._parameters[j].nbytes for j in filling[kind])
            if size >= limit.get(kind, min(FIRST_BYTES, self._cap)):
                full.append(filling.pop(kind))
                limit[kind] = self._cap
        full += filling.values()
        self._members = full
        self._buckets = [
            GradBucket(n, [self._parameters[i] for i in members], n == len(full) - 1)
            for n, members in enumerate(full)
        ]
        self._place = {i: (n, k) for n, members in enumerate(full) for k, i in enumerate(members)}

    def _rebuild(self) -> None:
        """Make buckets in the order in which gradients came in the first pass, of rank 0."""
        self._rebuilt = True
        missing = [i for i in reversed(range(len(self._parameters))) if i not in self._arrived]
        order = [[*dict.fromkeys(self._arrived), *missing]]
        broadcast_object_list(order, group=self._group, group_src=0)
        if self._as_views:
            for p in self._parameters:
                if p.grad is not None:
                    p.grad = p.grad.clone()
        self._make_buckets(order[0])

    # ---- a pass ----

    def prepare(self, outputs: Sequence[Tensor]) -> None:
        """Begin a pass: called after forward, with what it has returned."""
        if self._unfinished:
            missing, self._unfinished = self._unfinished, []
            raise RuntimeError(
                "Expected to have finished reduction in the prior iteration before starting a new "
                "one: parameters that did not get a gradient: " + ", ".join(missing)
                + "; DistributedDataParallel(find_unused_parameters=True) allows for them"
            )  # fmt: skip
        self._prepared = True
        self._callback_queued = False
        self._next = 0
        self._counts = [0] * len(self._parameters)
        for bucket in self._buckets:
            bucket._pending, bucket._future = len(bucket._parameters), None
        self._used: Tensor | None = None
        self._used_work: Work | None = None
        if self._static and self._expected is not None:
            absent = [i for i, count in enumerate(self._expected) if count == 0]
        elif self._find_unused and not self._static:
            used = _leaves_of(outputs)
            absent = [i for i, p in enumerate(self._parameters) if id(p) not in used]
            self._used = taeda.ones(len(self._parameters), dtype=taeda.int32)
            self._used[absent] = 0
        else:
            absent = []
        self._absent = absent

    def _begin(self) -> None:
        """The first gradient of the pass has come."""
        self._callback_queued = True
        _C._queue_callback(self._finish)
        for i in self._absent:
            self._ready(i, self._parameters[i].grad)

    def _arrive(self, parameter: Tensor) -> None:
        if not self._prepared:
            return
        if not self._callback_queued:
            self._begin()
        i = self._index[id(parameter)]
        self._counts[i] += 1
        if not self._rebuilt:
            self._arrived.append(i)
        if self._static:
            if self._expected is not None and self._counts[i] == self._expected[i]:
                self._ready(i, parameter.grad)
            return
        if self._counts[i] > 1:
            raise RuntimeError(
                f"Expected to mark a variable ready only once: {self._names[i]} has got its "
                "gradient twice in one backward pass; DistributedDataParallel(static_graph=True) "
                "allows for it where each pass is like the first"
            )
        self._ready(i, parameter.grad)

    def _ready(self, i: int, grad: Tensor | None) -> None:
        number, place = self._place[i]
        bucket = self._buckets[number]
        view = bucket._views[place]
        if grad is None:
            view.zero_()
        elif self._hook is None:
            taeda.mul(grad.detach(), 1 / self.divisor, out=view)  # copied and divided at once
        elif grad.data_ptr() != view.data_ptr():
            view.copy_(grad)
        bucket._pending -= 1
        while self._next < len(self._buckets) and self._buckets[self._next]._pending == 0:
            self._send(self._buckets[self._next])
            self._next += 1

    def _send(self, bucket: GradBucket) -> None:
        if self._hook is not None:
            state, hook = self._hook
            bucket._future = hook(state, bucket)
            return
        work = plain.all_reduce(bucket._buffer, ReduceOp.SUM, self._group, async_op=True)
        assert work is not None
        bucket._future = work.get_future()

    def _finish(self) -> None:
        """Backward is over: wait for what has been sent, and put it where it belongs."""
        self._prepared = False
        if self._static and self._expected is None:
            self._expected = list(self._counts)
            for i, p in enumerate(self._parameters):
                self._ready(i, p.grad)
        if self._used is not None:
            self._used_work = plain.all_reduce(self._used, group=self._group, async_op=True)
        with flight_recorder.span("wait for gradients"):
            for bucket in self._buckets[: self._next]:
                self._take(bucket)
        if self._next < len(self._buckets):
            absent = set(self._absent)
            self._unfinished = [
                name
                for i, name in enumerate(self._names)
                if not self._counts[i] and i not in absent
            ]
        elif not self._rebuilt and not self._find_unused:
            self._rebuild()

    def _take(self, bucket: GradBucket) -> None:
        assert bucket._future is not None
        result: Any = bucket._future.wait()
        bucket._future = None
        tensor = result[0] if isinstance(result, (list, tuple)) else result
        if tensor.data_ptr() != bucket._buffer.data_ptr():
            bucket._buffer.copy_(tensor.reshape(-1))
        if self._used is not None and self._used_work is not None:
            self._used_work.wait()
        for p, view in zip(bucket._parameters, bucket._views, strict=True):
            if self._used is not None and not self._used[self._index[id(p)]]:
                continue  # no process has used it: its gradient stays what it is
            if self._as_views:
                p.grad = view
            elif p.grad is None:
                p.grad = view.clone()
            elif p.grad.data_ptr() != view.data_ptr():
                p.grad.copy_(view)

    # ---- what a process does that has no more batches ----

    def match_pass(self) -> None:
        """Take part in a pass of the others with gradients of zero."""
        for bucket in self._buckets:
            bucket._buffer.zero_()
            self._send(bucket)
        if self._find_unused and not self._static:
            plain.all_reduce(
                taeda.zeros(len(self._parameters), dtype=taeda.int32), group=self._group
            )
        for bucket in self._buckets:
            assert bucket._future is not None
            bucket._future.wait()
        if not self._rebuilt and not self._find_unused:
            self._rebuild()

    def register(self, state: Any, hook: Hook) -> None:
        """Let a function communicate the buckets."""
        if self._hook is not None:
            raise RuntimeError(
                "register_comm_hook or register_builtin_comm_hook can only be called once."
            )
        self._hook = state, hook


def _leaves_of(outputs: Sequence[Tensor]) -> set[int]:
    """The identities of the leaves that gradients of some tensors reach."""
    found = {id(t) for t in outputs if t.grad_fn is None and t.requires_grad}
    seen: set[Any] = set()
    waiting: list[Any] = [t.grad_fn for t in outputs if t.grad_fn is not None]
    while waiting:
        node = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        for following, _ in node.next_functions:
            variable = getattr(following, "variable", None)
            if variable is not None:
                found.add(id(variable))
            elif following is not None:
                waiting.append(following)
    return found
