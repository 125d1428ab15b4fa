"""Rules for matrix products and convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from taeda import _C
from taeda._batching.dispatch import Op, check_target, refuse, rule
from taeda._batching.pointwise import aligned
from taeda._batching.tensor import Level, front, separate, wrap
from taeda._C import Tensor

ops = _C.ops


def _check(op: Op, args: Sequence[Any], *ranks: int) -> None:
    """Raise the operation's own error where the ranks are wrong."""
    tensors = [a for a in args if isinstance(a, Tensor)]
    if [t.dim() for t in tensors[-len(ranks) :]] != list(ranks):
        refuse(op, args)


@rule("bmm", "mm")
def mm(op: Op, level: Level, args: Sequence[Any]) -> Any:
    """`mm` and `bmm`: a product that broadcasts what is not batched."""
    rank = 3 if op.name == "bmm" else 2
    _check(op, args, rank, rank)
    if args[0].shape[-1] != args[1].shape[-2] or args[0].shape[:-2] != args[1].shape[:-2]:
        return refuse(op, args)
    a, b = (separate(x, level)[0] for x in args)
    return wrap(ops.matmul(a, b), level)


@rule("dot")
def dot(op: Op, level: Level, args: Sequence[Any]) -> Any:
    """`dot`: the product of a row and a column."""
    _check(op, args, 1, 1)
    if args[0].shape != args[1].shape:
        return refuse(op, args)
    a, b = (front(x, level) for x in args)
    return wrap(ops.matmul(a.unsqueeze(1), b.unsqueeze(2)).reshape(level.size), level)


@rule("mv")
def mv(op: Op, level: Level, args: Sequence[Any]) -> Any:
    """`mv`: the vector as a matrix of one column."""
    _check(op, args, 2, 1)
    if args[0].shape[1] != args[1].shape[0]:
        return refuse(op, args)
    a, x = separate(args[0], level)[0], front(args[1], level)
    return wrap(ops.matmul(a, x.unsqueeze(-1)).squeeze(-1), level)


@rule("addmm")
def addmm(op: Op, level: Level, args: Sequence[Any]) -> Any:
    """`addmm`: the product first, then the sum."""
    x, a, b, beta, alpha = args
    if op.inplace:
        check_target(op, level, args)
    _check(op, args[1:3], 2, 2)
    product = ops.matmul(separate(a, level)[0], separate(b, level)[0])
    product = product if alpha == 1 else product * alpha
    if product.dim() == 2:  # only x is batched
        product = product.unsqueeze(0)
    value, hidden = separate(x, level)
    value = aligned(value, 2) if hidden else value
    result = product.expand(level.size, *product.shape[1:]) if beta == 0 else value * beta + product
    if not op.inplace:
        return wrap(result, level)
    value.copy_(result)
    return x


@rule("linear")
def linear(op: Op, level: Level, args: Sequence[Any]) -> Any:
    """`linear`: with a weight that is not batched as it is, else a product of batches."""
    x, weight, bias = args
    value, hidden = separate(x, level)
    w, w_hidden = separate(weight, level)
    b, b_hidden = separate(bias, level)
    if not x.dim():
        return refuse(op, args)
    if not w_hidden:
        if not b_hidden:
            return wrap(op.call([value, w, b]), level)
        product = op.call([value, w, None])
        if not hidden:
            product = product.unsqueeze(0)
        return wrap(product + aligned(b, x.dim()), level)
    if weight.dim() != 2 or x.shape[-1] != weight.shape[1]:
        return refuse(op, args)
    rows = value.reshape(level.size, -1, x.shape[-1]) if hidden else value.reshape(-1, x.shape[-1])
    if bias is None:
        product = ops.matmul(rows, w.transpose(1, 2))
    else:
        b = b.unsqueeze(1) if b_hidden else b
        product = ops.matmul(rows, w.transpose(1, 2)) + b
    return wrap(product.reshape(level.size, *x.shape[:-1], weight.shape[0]), level)


@rule("_cdist")
def cdist(op: Op, level: Level, args: Sequence[Any]) -> Any:
    """`_cdist`: all of its dimensions but the last two are examples."""
    a, b, *rest = args
    rank = max(a.dim(), b.dim())
    both = [aligned(front(x, level), rank) for x in (a, b)]
    return wrap(op.call([*both, *rest]), level)


# ---- convolutions -------------------------------------------------------------------------------


def _into_examples(value: Tensor) -> Tensor:
    return value.reshape(value.size(0) * value.size(1), *value.shape[2:])


def _out_of_examples(value: Tensor, size: int, examples: int) -> Tensor:
    return value.reshape(size, examples, *value.shape[1:])


def _into_channels(x: Tensor, level: Level) -> Tensor:
    """(N, C, ...), batched or not, as (N, batch * C, ...)."""
    value = front(x, level).movedim(0, 1)
    return value.reshape(value.size(0), value.size(1) * value.size(2), *value.shape[3:])


def _out_of_channels(value: Tensor, size: int) -> Tensor:
    channels = value.size(1) // size if size else 0
    return value.reshape(value.size(0), size, channels, *value.shape[2:]).movedim(1, 0)


@rule("_conv")
def conv(op: Op, level: Level, args: Sequence[Any]) -> Any:
    """`_conv`: the batch becomes examples, or groups of channels where weights are batched."""
    x, weight, bias, *how, groups = args
    w, w_hidden = separate(weight, level)
    b, b_hidden = separate(bias, level)
    inner = None if b_hidden else b
    if not w_hidden:
        value, hidden = separate(x, level)
        if hidden:
            result = op.call([_into_examples(value), w, inner, *how, groups])
            result = _out_of_examples(result, level.size, x.size(0))
        else:
            result = op.call([value, w, inner, *how, groups]).unsqueeze(0)
    else:
        if inner is not None:
            inner = b.repeat(level.size)
        if groups == 1 and not separate(x, level)[1]:
            result = op.call([x, _into_examples(w), inner, *how, 1])
        else:
            given = _into_channels(x, level)
            result = op.call([given, _into_examples(w), inner, *how, groups * level.size])
        result = _out_of_channels(result, level.size)
    if b_hidden:
        result = result + b.reshape(b.size(0), 1, b.size(1), *(1,) * (result.dim() - 3))
    return wrap(result, level)


@rule("_conv_input")
def conv_input(op: Op, level: Level, args: Sequence[Any]) -> Any:
    """`_conv_input`, the transposed convolution."""
    grad, weight, *how, groups = args
    w, w_hidden = separate(weight, level)
    if not w_hidden:
        result = op.call([_into_examples(front(grad, level)), w, *how, groups])
        return wrap(_out_of_examples(result, level.size, grad.size(0)), level)
    given = _into_channels(grad, level)
    result = op.call([given, _into_examples(w), *how, groups * level.size])
    return wrap(_out_of_channels(result, level.size), level)


@rule("_conv_weight")
def conv_weight(op: Op, level: Level, args: Sequence[Any]) -> Any:
    """`_conv_weight`: the batch becomes groups of channels."""
    x, grad, *how, groups = args
    if groups == 1 and not separate(x, level)[1]:
        result = op.call([x, _into_channels(grad, level), *how, 1])
    else:
        given = [_into_channels(x, level), _into_channels(grad, level)]
        result = op.call([*given, *how, groups * level.size])
    outputs = result.size(0) // level.size if level.size else 0
    return wrap(_out_of_examples(result, level.size, outputs), level)
