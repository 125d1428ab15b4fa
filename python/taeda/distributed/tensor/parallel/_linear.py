"""Linear layers whose products are computed in units, so that any number of processes gives the
same bits: what one process computes does not depend on how many units it has, and sums over units
are taken in their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import taeda
from taeda import Tensor
from taeda.autograd import Function
from taeda.distributed._units import sum_in_order
from taeda.nn import functional as F

if TYPE_CHECKING:
    from taeda.distributed._process_group import ProcessGroup

__all__ = ["ColumnUnits", "RowUnits"]


def _parts(tensor: Tensor, count: int, dim: int) -> Sequence[Tensor]:
    """Equal parts, each of which lies in memory as it would in another number of processes."""
    return [part.contiguous() for part in tensor.chunk(count, dim)]


def _rows(tensor: Tensor) -> Tensor:
    return tensor.reshape(-1, tensor.size(-1))


def _weight_gradient(grad: Tensor, x: Tensor) -> Tensor:
    return _rows(grad).t() @ _rows(x)


class ColumnUnits(Function):
    """``linear(x, weight, bias)`` of the outputs that this process has.

    Args:
        x: the same in all processes.
        weight: of shape (outputs of this process, inputs).
        bias: one for each of these outputs, or None.
        count: how many units this process has.
        group: the processes, whose units are added up for the gradient of ``x``.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, count: int, group: ProcessGroup
    ) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.count, ctx.group = count, group
        biases = [None] * count if bias is None else _parts(bias, count, 0)
        pairs = zip(_parts(weight, count, 0), biases, strict=True)
        return taeda.cat([F.linear(x, w, b) for w, b in pairs], -1)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        x, weight = ctx.saved_tensors
        grads = _parts(grad, ctx.count, -1)
        of_x = of_weight = of_bias = None
        if ctx.needs_input_grad[0]:
            pairs = zip(grads, _parts(weight, ctx.count, 0), strict=True)
            rows = taeda.stack([(g @ w).reshape(-1) for g, w in pairs])
            of_x = sum_in_order(rows, ctx.group).view(x.shape)
        if ctx.needs_input_grad[1]:
            of_weight = taeda.cat([_weight_gradient(g, x) for g in grads])
        if ctx.needs_input_grad[2]:
            of_bias = taeda.cat([_rows(g).sum(0) for g in grads])
        return of_x, of_weight, of_bias, None, None


class RowUnits(Function):
    """``linear(x, weight)``, of whose inputs this process has some: the sum of all.

    Args:
        x: of shape (..., inputs of this process).
        weight: of shape (outputs, inputs of this process).
        count: how many units this process has.
        group: the processes, whose units are added up.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, count: int, group: ProcessGroup) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.count = count
        pairs = zip(_parts(x, count, -1), _parts(weight, count, 1), strict=True)
        rows = taeda.stack([F.linear(each, w).reshape(-1) for each, w in pairs])
        return sum_in_order(rows, group).view(*x.shape[:-1], weight.size(0))

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        x, weight = ctx.saved_tensors
        of_x = of_weight = None
        grad = grad.contiguous()
        if ctx.needs_input_grad[0]:
            of_x = taeda.cat([grad @ w for w in _parts(weight, ctx.count, 1)], -1)
        if ctx.needs_input_grad[1]:
            parts = _parts(x, ctx.count, -1)
            of_weight = taeda.cat([_weight_gradient(grad, each) for each in parts], 1)
        return of_x, of_weight, None, None
