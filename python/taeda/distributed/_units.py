"""Gradients of equal parts of a batch, added up in one order among any number of processes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import taeda
from taeda import _C, Tensor
from taeda.nn.module import Module
from taeda.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

from . import _collectives as plain
from ._process_group import ProcessGroup

__all__ = ["Units", "sum_in_order"]


class Units:
    """Calls a module with each part of a process's batch, and keeps their gradients apart.

    Each part has leaves of its own that share the parameters' memory. When backward is over, each
    process adds up a slice of the gradients of all parts in their order, and all gather the slices.

    Args:
        module: the module.
        group: the processes.
        units: how many parts the batch of all processes has.
        dim: along which inputs and outputs are divided.

    Raises:
        ValueError: the number of processes does not divide that of the parts.
    """

    def __init__(self, module: Module, group: ProcessGroup, units: int, dim: int) -> None:
        if units < 1 or units % group.size():
            raise ValueError(
                f"DistributedDataParallel: units ({units}) must be a multiple of the number of "
                f"processes ({group.size()})"
            )
        self._module, self._group, self._dim = module, group, dim
        self._mine = units // group.size()
        self._parameters = {n: p for n, p in module.named_parameters() if p.requires_grad}

    def forward(self, inputs: tuple[Any, ...], kwargs: dict[str, Any], syncs: bool) -> Any:
        """What the module gives for each part, joined."""
        if not taeda.is_grad_enabled():
            return self._module(*inputs, **kwargs)
        if not syncs:
            raise RuntimeError("DistributedDataParallel: units are added up in each backward")
        leaves, spec = tree_flatten((inputs, kwargs))
        parts = [self._divided(leaf) for leaf in leaves]
        copies: list[dict[str, Tensor]] = []
        state = _Pass(self, copies)
        outputs = []
        for i in range(self._mine):
            copies.append({n: p.detach().requires_grad_() for n, p in self._parameters.items()})
            for copy in copies[-1].values():
                copy.register_post_accumulate_grad_hook(state.arrive)
            args, options = tree_unflatten([part[i] for part in parts], spec)
            outputs.append(taeda.func.functional_call(self._module, copies[-1], args, options))
        return self._joined(outputs)

    def _divided(self, leaf: Any) -> Sequence[Any]:
        if not isinstance(leaf, Tensor) or leaf.dim() == 0:
            return [leaf] * self._mine
        if leaf.size(self._dim) % self._mine:
            raise ValueError(
                f"DistributedDataParallel: {leaf.size(self._dim)} examples of a process cannot be "
                f"divided into {self._mine} units"
            )
        return leaf.chunk(self._mine, self._dim)

    def _joined(self, outputs: list[Any]) -> Any:
        spec = tree_flatten(outputs[0])[1]
        columns = zip(*(tree_leaves(output) for output in outputs), strict=True)
        return tree_unflatten([taeda.cat(list(column), self._dim) for column in columns], spec)

    def add_up(self, copies: list[dict[str, Tensor]]) -> None:
        """Average the gradients of all parts of all processes."""
        names = [n for n in self._parameters if any(c[n].grad is not None for c in copies)]
        for dtype in dict.fromkeys(self._parameters[n].dtype for n in names):
            chosen = [self._parameters[n] for n in names if self._parameters[n].dtype == dtype]
            keys = [n for n in names if self._parameters[n].dtype == dtype]
            rows = taeda.stack([_row([copy[n] for n in keys]) for copy in copies])
            total = sum_in_order(rows, self._group).div_(self._group.size())
            for p, part in zip(chosen, total.split([p.numel() for p in chosen]), strict=True):
                part = part.view(p.shape)
                p.grad = part.clone() if p.grad is None else p.grad + part


def sum_in_order(rows: Tensor, group: ProcessGroup) -> Tensor:
    """The sum of the rows of all processes, in the order of ranks and rows, in all of them.

    Each process adds up a slice. All processes have as many rows.
    """
    size, (own, count) = group.size(), rows.shape
    each = -(-count // size)
    padded = taeda.nn.functional.pad(rows, (0, each * size - count))
    sent = padded.view(own, size, each).transpose(0, 1).contiguous()
    got = taeda.empty_like(sent)
    plain.all_to_all_single(got, sent, group=group)
    total = rows.new_zeros(each)
    for row in got.view(-1, each):
        total += row
    whole = rows.new_empty(each * size)
    plain.all_gather_into_tensor(whole, total, group)
    return whole[:count]


class _Pass:
    """A backward pass, at whose end gradients are added up."""

    def __init__(self, units: Units, copies: list[dict[str, Tensor]]) -> None:
        self._units, self._copies, self._queued = units, copies, False

    def arrive(self, parameter: Tensor) -> None:
        if not self._queued:
            self._queued = True
            _C._queue_callback(self._end)

    def _end(self) -> None:
        with taeda.no_grad():
            self._units.add_up(self._copies)


def _row(tensors: Sequence[Tensor]) -> Tensor:
    return taeda.cat(
        [(t.grad if t.grad is not None else taeda.zeros_like(t)).reshape(-1) for t in tensors]
    )
