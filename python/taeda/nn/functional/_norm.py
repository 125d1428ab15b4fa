"""Normalisation."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import taeda
from taeda._C import Tensor, ops

__all__ = ["batch_norm", "group_norm", "instance_norm", "local_response_norm", "normalize"]


def _needs_several(who: str, size: Sequence[int]) -> None:
    if size[0] * prod(size[2:]) == 1:
        raise ValueError(
            f"{who}: Expected more than 1 value per channel when training, got input size {size}"
        )


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Give each channel mean 0 and variance 1, then scale and shift it (Ioffe and Szegedy, 2015).

    Args:
        input: of shape (N, C, ...).
        running_mean, running_var: of shape (C,), or None. Used unless `training`, which updates
            them instead.
        weight, bias: of shape (C,), the scale and the shift.
        training: use the mean and the variance of the input.
        momentum: how much of the new mean and variance goes into the running ones.
        eps: added to the variance.

    Raises:
        ValueError: `training` with a single value for each channel, or `eps` is negative, or zero
            when `training`.
    """
    if eps < 0 or (training and eps == 0):
        kind = "positive during training" if training else "non-negative"
        raise ValueError(f"batch_norm: eps must be {kind}, but got {eps}")
    if training:
        _needs_several("batch_norm", input.shape)
    return ops.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)


def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Give each channel of each sample mean 0 and variance 1 (Ulyanov et al., 2016).

    Args:
        input: of shape (N, C, ...).
        running_mean, running_var: of shape (C,), or None. Used unless `use_input_stats`, which
            updates them instead, with the means over the samples.
        weight, bias: of shape (C,), the scale and the shift.
        use_input_stats: use the means and the variances of the input.
        momentum: how much of the new mean and variance goes into the running ones.
        eps: added to the variance.

    Raises:
        ValueError: `use_input_stats` with a single value for each channel of a sample.
    """
    if not use_input_stats:
        return ops.batch_norm(input, weight, bias, running_mean, running_var, False, momentum, eps)
    if prod(input.shape[2:]) == 1:
        raise ValueError(
            "instance_norm: Expected more than 1 spatial element when training, got input size "
            f"{input.shape}"
        )
    batch, channels = input.shape[:2]

    def repeated(value: Tensor | None) -> Tensor | None:
        return None if value is None else value.repeat(batch)

    # Each channel of each sample becomes a channel of its own in a batch of one.
    means, variances = repeated(running_mean), repeated(running_var)
    result = ops.batch_norm(
        input.reshape(1, batch * channels, *input.shape[2:]),
        repeated(weight), repeated(bias), means, variances, True, momentum, eps,
    ).reshape(input.shape)  # fmt: skip
    with taeda.no_grad():
        for running, updated in ((running_mean, means), (running_var, variances)):
            if running is not None and updated is not None:
                running.copy_(updated.reshape(batch, channels).mean(0))
    return result


def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Give each group of channels of each sample mean 0 and variance 1 (Wu and He, 2018).

    Args:
        input: of shape (N, C, ...).
        num_groups: how many groups the C channels are divided into.
        weight, bias: of shape (C,), the scale and the shift.
        eps: added to the variance.

    Raises:
        RuntimeError: the input has fewer than 2 dimensions.
        ValueError: a group has a single value.
    """
    if input.dim() < 2:
        raise RuntimeError(
            "group_norm: Expected at least 2 dimensions for input tensor but received "
            f"{input.dim()}"
        )
    shape = input.shape
    if num_groups == 0:
        raise ZeroDivisionError("group_norm: num_groups must not be 0")
    _needs_several("group_norm", [shape[0] * shape[1] // num_groups, num_groups, *shape[2:]])
    return ops.group_norm(input, num_groups, weight, bias, eps)


def local_response_norm(
    input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """Divide by a power of the mean square over neighbouring channels (Krizhevsky et al., 2012).

    x / (k + alpha * mean) ** beta.

    Args:
        input: of shape (N, C, ...), with 3 dimensions or more.
        size: how many channels the mean is over; it counts those beyond the ends as zeros.
        alpha, beta, k: as in the formula.

    Raises:
        ValueError: the input has fewer than 3 dimensions.
    """
    if input.dim() < 3:
        raise ValueError(
            f"local_response_norm: Expected 3D or higher dimensionality input (got {input.dim()} "
            "dimensions)"
        )
    if input.numel() == 0:
        return input
    squares = (input * input).flatten(2).unsqueeze(1)  # (N, 1, C, the rest)
    squares = ops.pad(squares, (0, 0, size // 2, (size - 1) // 2))
    means = ops.avg_pool2d(squares, (size, 1), (1, 1), 0, False, True, None)
    return input / (means.reshape(input.shape) * alpha + k).pow(beta)


def normalize(
    input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Tensor | None = None
) -> Tensor:
    """Divide by the p-norm along a dimension, or by eps where the norm is less.

    >>> taeda.nn.functional.normalize(taeda.tensor([[3.0, 4.0]]))
    tensor([[0.6000, 0.8000]])
    """
    norm = input.norm(p, dim, keepdim=True).clamp_min(eps)
    return input / norm if out is None else ops.div(input, norm, out=out)
