"""Linear maps that are made of several operations."""

from __future__ import annotations

from typing import Any

from taeda._C import Tensor, ops

__all__ = ["bilinear", "conv_tbc"]


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x1 @ weight[k] @ x2 + bias[k], for each of the K outputs.

    Args:
        input1: of shape (*, I).
        input2: of shape (*, J).
        weight: of shape (K, I, J).
        bias: of shape (K,).

    Returns:
        a tensor of shape (*, K).
    """
    outputs, size1, size2 = weight.shape
    for i, (given, size) in enumerate(((input1, size1), (input2, size2)), 1):
        if given.size(-1) != size:
            raise RuntimeError(
                f"bilinear(): input{i} size does not match weight size: got {given.size(-1)} but "
                f"expected {size}, for shapes {list(given.shape)} and {list(weight.shape)}"
            )
    if input1.shape[:-1] != input2.shape[:-1]:
        raise RuntimeError(
            "bilinear(): input1 and input2 must have the same sizes but for the last dimension, "
            f"got {list(input1.shape)} and {list(input2.shape)}"
        )
    by_first = input1 @ weight.permute(1, 0, 2).reshape(size1, outputs * size2)
    result = (by_first.unflatten(-1, (outputs, size2)) @ input2.unsqueeze(-1)).squeeze(-1)
    return result if bias is None else result + bias


def _each(value: Any, count: int) -> tuple[int, ...]:
    return (value,) * count if isinstance(value, int) else tuple(value)


def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """Convolution over the first dimension, time, of an input (T, N, C).

    Args:
        input: of shape (T, N, C).
        weight: of shape (kernel size, C, output channels).
        bias: of shape (output channels,).
        pad: how much is added at both ends.

    Returns:
        a tensor of shape (T + 2 pad - kernel size + 1, N, output channels).

    >>> x, weight = taeda.ones(5, 1, 2), taeda.ones(3, 2, 4)
    >>> taeda.nn.functional.conv_tbc(x, weight, taeda.zeros(4))[:, 0, 0]
    tensor([6., 6., 6.])
    """
    if input.dim() != 3 or weight.dim() != 3 or bias.dim() != 1:
        raise RuntimeError(
            "conv_tbc: input and weight must have 3 dimensions and bias 1, got shapes "
            f"{list(input.shape)}, {list(weight.shape)} and {list(bias.shape)}"
        )
    result = ops.conv1d(input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad)
    return result.permute(2, 0, 1)
