"""Rules for normalisation, and for losses with classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from taeda import _C
from taeda._batching.dispatch import Op, loop, refuse, rule
from taeda._batching.pointwise import aligned
from taeda._batching.tensor import Level, front, separate, wrap
from taeda._C import Tensor

ops = _C.ops


def _scaled(result: Tensor, weight: Any, bias: Any) -> Tensor:
    """A normalised tensor times a weight plus a bias, with broadcasting."""
    dtype = result.dtype
    if weight is not None:
        result = result * weight
    if bias is not None:
        result = result + bias
    return result if result.dtype == dtype else result.to(dtype)


@rule("native_layer_norm", "native_rms_norm")
def layer_norm(op: Op, level: Level, args: Sequence[Any]) -> Any:
    """`native_layer_norm` and `native_rms_norm`: over the last dimensions."""
    x, shape, *affine, eps = args
    if len(shape) > x.dim():
        return refuse(op, args)
    value = front(x, level)
    if not any(separate(a, level)[1] for a in affine):
        return tuple(wrap(t, level) for t in op.call([value, shape, *affine, eps]))
    result, mean, rstd = op.call([value, shape, *[None] * len(affine), eps])
    parts = [
        aligned(t, x.dim()) if hidden else t for t, hidden in (separate(a, level) for a in affine)
    ]
    result = _scaled(result, parts[0], parts[1] if len(parts) > 1 else None)
    return wrap(result, level), wrap(mean, level), wrap(rstd, level)


def _by_channel(a: Any, level: Level, rank: int) -> Any:
    """A vector of one value for each channel, to broadcast with (batch, N, C, ...)."""
    value, hidden = separate(a, level)
    if value is None:
        return None
    sizes = value.shape if hidden else (1, *value.shape)
    return value.reshape(sizes[0], 1, sizes[1], *(1,) * (rank - 2))


@rule("native_group_norm")
def group_norm(op: Op, level: Level, args: Sequence[Any]) -> Any:
    """`native_group_norm`: the batch becomes examples."""
    x, groups, weight, bias, eps = args
    value = front(x, level)
    flat = value.reshape(level.size * x.size(0), *x.shape[1:])
    apart = separate(weight, level)[1] or separate(bias, level)[1]
    inner = (None, None) if apart else (weight, bias)
    result, mean, rstd = op.call([flat, groups, *inner, eps])
    result = result.reshape(value.shape)
    if apart:
        rank = x.dim()
        result = _scaled(result, _by_channel(weight, level, rank), _by_channel(bias, level, rank))
    stats = (t.reshape(level.size, x.size(0), groups) for t in (mean, rstd))
    return (wrap(result, level), *(wrap(t, level) for t in stats))


@rule("native_batch_norm")
def batch_norm(op: Op, level: Level, args: Sequence[Any]) -> Any:
    """`native_batch_norm`: the batch becomes channels."""
    x, weight, bias, mean, var, training, momentum, eps = args
    if x.dim() < 2:
        return loop(op, level, args)
    if training:
        for name, stat in (("running_mean", mean), ("running_var", var)):
            if stat is not None and not separate(stat, level)[1]:
                raise RuntimeError(
                    f"Batch norm got a batched tensor as input while the {name}, which will be "
                    "updated in place, was not batched. Use modules without running statistics "
                    "(track_running_stats=False) or evaluation mode within vmap."
                )
    value = front(x, level).movedim(0, 1)
    sizes = value.shape
    flat = value.reshape(sizes[0], sizes[1] * sizes[2], *sizes[3:])

    count = sizes[2]

    def channels(a: Any) -> Any:
        if a is None:
            return None
        return front(a, level).reshape(-1)

    apart = separate(weight, level)[1] or separate(bias, level)[1]
    given = [channels(mean), channels(var)]
    inner = [None, None] if apart else [channels(weight), channels(bias)]
    result, used, invstd = op.call([flat, *inner, *given, training, momentum, eps])
    if training:
        for stat, updated in ((mean, given[0]), (var, given[1])):
            if stat is not None and not stat._value.is_contiguous():
                stat._value.copy_(updated.reshape(stat._value.shape))
    result = result.reshape(sizes).movedim(1, 0)
    if apart:
        rank = x.dim()
        result = _scaled(result, _by_channel(weight, level, rank), _by_channel(bias, level, rank))
    stats = (t.reshape(level.size, count) for t in (used, invstd))
    return (wrap(result, level), *(wrap(t, level) for t in stats))


def _margin_rows(
    level: Level, x: Any, target: Any, options: Sequence[Any]
) -> tuple[Tensor, Tensor] | None:
    """Scores and targets of all examples as rows; nothing where that is not possible."""
    if not x.dim() or any(separate(o, level)[1] for o in options):
        return None
    value, named = front(x, level), front(target, level)
    rows = value.reshape(-1, value.shape[-1])
    return rows, named.reshape(rows.shape if target.dim() == x.dim() == 2 else -1)


@rule("multi_margin_loss", "multilabel_margin_loss")
def margin_loss(op: Op, level: Level, args: Sequence[Any]) -> Any:
    """`multi_margin_loss` and `multilabel_margin_loss`: each row's loss, then their mean or sum."""
    x, target, *options, reduction = args
    found = _margin_rows(level, x, target, options)
    if found is None or (op.name == "multilabel_margin_loss" and x.dim() != 2):
        return loop(op, level, args)
    losses = op.call([*found, *options, 0]).reshape(level.size, -1)
    if reduction:
        losses = losses.mean(1) if reduction == 1 else losses.sum(1)
    else:
        losses = losses.reshape(level.size, *target.shape[:1])
    return wrap(losses, level)


@rule("_multi_margin_loss_backward", "_multilabel_margin_loss_backward")
def margin_loss_backward(op: Op, level: Level, args: Sequence[Any]) -> Any:
    """Their gradients: that of each row's loss."""
    grad, x, target, *options, reduction = args
    found = _margin_rows(level, x, target, options)
    if found is None or (op.name.startswith("_multilabel") and x.dim() != 2):
        return loop(op, level, args)
    rows = found[0]
    count = len(rows) // level.size
    each = front(grad, level).reshape(level.size, -1).expand(level.size, count)
    if reduction == 1:
        each = each / count
    got = op.call([each.reshape(-1), *found, *options, 0])
    return wrap(got.reshape(level.size, *x.shape), level)


@rule("_cross_entropy", "_nll_loss")
def nll_loss(op: Op, level: Level, args: Sequence[Any]) -> Any:
    """`_nll_loss` and `_cross_entropy`: each example's loss, then the mean or the sum of them."""
    x, target, weight, reduction, ignored = args
    if not x.dim() or x.dim() not in (target.dim(), target.dim() + 1) or not x.size(-1):
        return refuse(op, args)
    scores = x if op.name == "_nll_loss" else ops.log_softmax(x, 1)
    scores, targets = front(scores, level), front(target, level)
    classes = 1 if x.dim() == 1 else 2
    counted = targets != ignored
    safe = targets.masked_fill(~counted, 0).unsqueeze(classes)
    picked = -scores.gather(classes, safe).squeeze(classes)
    if weight is None:
        weights = counted.to(picked.dtype)
    else:
        by_class = front(weight, level).detach()  # not differentiable
        by_class = by_class.gather(1, safe.reshape(level.size, -1)).reshape(targets.shape)
        weights = by_class * counted
    losses = ops.where(counted, picked * weights, ops.zeros_like(picked))
    dims = list(range(1, targets.dim()))
    total = weights.sum(dims) if dims else weights
    if reduction:
        losses = losses.sum(dims) if dims else losses
        losses = losses / total if reduction == 1 else losses
    found = [wrap(losses, level), wrap(total, level)]
    if op.name == "_cross_entropy":  # the second result is only for the derivative
        found.insert(1, wrap(total.detach(), level))
    return tuple(found)


def _share(grad: Tensor, target: Tensor, args: Sequence[Any]) -> tuple[Tensor, Tensor]:
    """The factor of each example in the gradient, and its class with a dimension of size 1.

    `args`: weight, total_weight, reduction and ignored, as derivatives of losses have them.
    """
    weight, total, reduction, ignored = args
    counted = target != ignored
    safe = target.masked_fill(~counted, 0)
    factor = counted.to(grad.dtype)
    if weight is not None:
        factor = factor * weight[safe]
    if reduction == 1:
        factor = factor / total
    return grad * factor, safe


@rule("_nll_loss_backward")
def nll_loss_backward(op: Op, level: Level, args: Sequence[Any]) -> Any:
    """`_nll_loss_backward`, written in other operations."""
    grad, target, weight, total, sizes, reduction, ignored = args
    factor, safe = _share(grad, target, (weight, total, reduction, ignored))
    dim = 1 if len(sizes) > 1 else 0
    zeros = ops.zeros(sizes, dtype=grad.dtype, device=grad.device)
    return zeros.scatter(dim, safe.unsqueeze(dim), -factor.unsqueeze(dim))


@rule("_cross_entropy_backward")
def cross_entropy_backward(op: Op, level: Level, args: Sequence[Any]) -> Any:
    """`_cross_entropy_backward`, written in other operations."""
    grad, x, target, weight, _, total, reduction, ignored = args
    factor, safe = _share(grad, target, (weight, total, reduction, ignored))
    factor = factor.unsqueeze(1)
    return (x.softmax(1) * factor).scatter_add(1, safe.unsqueeze(1), -factor)
