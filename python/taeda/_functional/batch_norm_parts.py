"""Batch normalisation in parts, as those who compute statistics in several processes call them.

``input`` has shape (batch, channels, ...); statistics have shape (channels,), and ``invstd`` is
``1 / sqrt(variance + eps)``.
"""

from __future__ import annotations

import taeda
from taeda._C import Tensor

__all__ = [
    "batch_norm_backward_elemt",
    "batch_norm_backward_reduce",
    "batch_norm_elemt",
    "batch_norm_gather_stats",
    "batch_norm_gather_stats_with_counts",
    "batch_norm_stats",
    "batch_norm_update_stats",
]


def _others(input: Tensor) -> list[int]:
    if input.dim() < 2:
        raise RuntimeError(f"batch norm: expected at least 2 dimensions, got {input.dim()}")
    return [0, *range(2, input.dim())]


def _along(value: Tensor, input: Tensor) -> Tensor:
    return value.reshape(-1, *[1] * (input.dim() - 2))


def batch_norm_stats(input: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """The mean and ``invstd`` of each channel.

    >>> taeda.batch_norm_stats(taeda.tensor([[1.0], [3.0]]), 0.0)
    (tensor([2.]), tensor([1.]))
    """
    var, mean = taeda.var_mean(input, _others(input), correction=0)
    return mean, (var + eps).rsqrt()


def batch_norm_elemt(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    mean: Tensor,
    invstd: Tensor,
    eps: float,
) -> Tensor:
    """``(input - mean) * invstd * weight + bias``; ``invstd`` has ``eps`` in it already."""
    del eps
    result = (input - _along(mean, input)) * _along(invstd, input)
    if weight is not None:
        result = result * _along(weight, input)
    if bias is not None:
        result = result + _along(bias, input)
    return result.to(input.dtype)


@taeda.no_grad()
def batch_norm_update_stats(
    input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, momentum: float
) -> tuple[Tensor, Tensor]:
    """Move running statistics, in place, by a batch's.

    Returns:
        The batch's mean and biased variance. ``running_var`` is moved by the unbiased one.
    """
    var, mean = taeda.var_mean(input, _others(input), correction=0)
    count = input.numel() // max(input.size(1), 1)
    _move(running_mean, mean, momentum)
    _move(running_var, var * (count / (count - 1)) if count > 1 else var * float("nan"), momentum)
    return mean, var


def _move(running: Tensor | None, value: Tensor, momentum: float) -> None:
    if running is not None:
        running.mul_(1 - momentum).add_(value.to(running.dtype), alpha=momentum)


def batch_norm_gather_stats(
    input: Tensor,
    mean: Tensor,
    invstd: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    momentum: float,
    eps: float,
    count: int,
) -> tuple[Tensor, Tensor]:
    """Join the statistics of processes with ``count`` elements per channel each.

    Args:
        input: any batch; its dtype is not looked at.
        mean, invstd: of shape (processes, channels).
        running_mean, running_var: moved in place, by the unbiased variance.
        momentum: how far.
        eps: what is in ``invstd``.
        count: the elements per channel in each process.

    Returns:
        The mean and ``invstd`` of all.
    """
    counts = mean.new_full((mean.size(0),), count)
    return batch_norm_gather_stats_with_counts(
        input, mean, invstd, running_mean, running_var, momentum, eps, counts
    )


@taeda.no_grad()
def batch_norm_gather_stats_with_counts(
    input: Tensor,
    mean: Tensor,
    invstd: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    momentum: float,
    eps: float,
    counts: Tensor,
) -> tuple[Tensor, Tensor]:
    """``batch_norm_gather_stats`` for processes that differ in size: ``counts`` says how large."""
    del input
    total = counts.sum()
    share = (counts / total).unsqueeze(1)
    joined = (mean * share).sum(0)
    var = ((invstd.pow(-2) - eps + (mean - joined).square()) * share).sum(0)
    _move(running_mean, joined, momentum)
    _move(running_var, var * (total / (total - 1)), momentum)
    return joined, (var + eps).rsqrt()


def batch_norm_backward_reduce(
    grad_out: Tensor,
    input: Tensor,
    mean: Tensor,
    invstd: Tensor,
    weight: Tensor | None,
    input_g: bool,
    weight_g: bool,
    bias_g: bool,
) -> tuple[Tensor | None, Tensor | None, Tensor | None, Tensor | None]:
    """The sums that gradients of batch normalisation are made of.

    Args:
        grad_out: the gradient of the result.
        input, mean, invstd: as in the forward pass.
        weight: not needed.
        input_g, weight_g, bias_g: which results are wanted; the others are None.

    Returns:
        The sum of ``grad_out``, that of ``grad_out * (input - mean)`` (both for the input's
        gradient), the gradient of the weight and that of the bias.
    """
    del weight
    dims = _others(input)
    total = grad_out.sum(dims)
    product = (grad_out * (input - _along(mean, input))).sum(dims)
    return (
        total if input_g else None,
        product if input_g else None,
        product * invstd if weight_g else None,
        total if bias_g else None,
    )


def batch_norm_backward_elemt(
    grad_out: Tensor,
    input: Tensor,
    mean: Tensor,
    invstd: Tensor,
    weight: Tensor | None,
    sum_dy: Tensor,
    sum_dy_xmu: Tensor,
    count: Tensor,
) -> Tensor:
    """The gradient of the input, from the sums over all processes.

    Args:
        grad_out: the gradient of the result.
        input, mean, invstd, weight: as in the forward pass.
        sum_dy, sum_dy_xmu: the first two results of ``batch_norm_backward_reduce``, summed up.
        count: the elements per channel of each process.
    """
    total = count.sum()
    factor = invstd if weight is None else invstd * weight
    centered = input - _along(mean, input)
    slope = _along(sum_dy_xmu / total * invstd.square(), input)
    inner = grad_out - _along(sum_dy / total, input) - centered * slope
    return (inner * _along(factor, input)).to(input.dtype)
