"""Linear maps: fully connected, bilinear, convolutions and their transposes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from taeda._C import Tensor, ops

__all__ = [
    "bilinear", "conv1d", "conv2d", "conv3d", "conv_tbc", "conv_transpose1d", "conv_transpose2d",
    "conv_transpose3d", "linear",
]  # fmt: skip

# x @ weight.T + bias. The op itself, as there is nothing to add to it.
linear = ops.linear


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


def _convolve(
    op: Callable[..., Any],
    rank: int,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
) -> Tensor:
    if isinstance(padding, str):
        input, padding = _named_padding(rank, input, weight, stride, padding, dilation)
    return op(input, weight, bias, stride, padding, dilation, groups)


def _named_padding(
    rank: int, input: Tensor, weight: Tensor, stride: Any, padding: str, dilation: Any
) -> tuple[Tensor, tuple[int, ...]]:
    """Turn padding "valid" or "same" into numbers, padding the input where the sides differ."""
    if padding == "valid":
        return input, (0,) * rank
    if padding != "same":
        raise RuntimeError(
            f"conv{rank}d: padding must be 'valid', 'same' or integers, got {padding!r}"
        )
    if weight.dim() != rank + 2:
        raise RuntimeError(
            f"conv{rank}d: weight must have {rank + 2} dimensions, got {list(weight.shape)}"
        )
    if any(step != 1 for step in _each(stride, rank)):
        raise RuntimeError(
            f"conv{rank}d: padding='same' is not supported for strided convolutions, got "
            f"stride={stride}"
        )
    totals = [
        d * (size - 1) for d, size in zip(_each(dilation, rank), weight.shape[2:], strict=True)
    ]
    if any(total % 2 for total in totals):
        # If the total is odd, the end gets one more than the start.
        extra = [amount for total in reversed(totals) for amount in (0, total % 2)]
        input = ops.pad(input, extra)
    return input, tuple(total // 2 for total in totals)


def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Convolution over one dimension (cross-correlation: the kernel is not flipped).

    Args:
        input: of shape (N, C, L) or (C, L).
        weight: of shape (K, C / groups, kernel length).
        bias: of shape (K,).
        stride: the step of the kernel.
        padding: zeros at both ends, or "valid" for none, or "same" for a result as long as the
            input.
        dilation: the distance between elements of the kernel.
        groups: the input's and the output's channels are divided into so many groups, each
            convolved on its own.
    """
    return _convolve(ops.conv1d, 1, input, weight, bias, stride, padding, dilation, groups)


def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Convolution over two dimensions; see `conv1d`.

    The input is of shape (N, C, H, W) or (C, H, W), the weight of shape (K, C / groups, h, w).
    Stride, padding and dilation are a number or one for each dimension.
    """
    return _convolve(ops.conv2d, 2, input, weight, bias, stride, padding, dilation, groups)


def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Convolution over three dimensions; see `conv1d`.

    The input is of shape (N, C, D, H, W) or (C, D, H, W), the weight of shape
    (K, C / groups, d, h, w). Stride, padding and dilation are a number or one for each dimension.
    """
    return _convolve(ops.conv3d, 3, input, weight, bias, stride, padding, dilation, groups)


def conv_transpose1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Tensor:
    """Transposed convolution over one dimension: the gradient of a convolution by its input.

    Args:
        input: of shape (N, C, L) or (C, L).
        weight: of shape (C, K / groups, kernel length).
        bias: of shape (K,).
        stride: the distance between the output positions of adjacent inputs.
        padding: how much is cut from both ends.
        output_padding: how much is added at one end, less than the stride or the dilation.
        groups, dilation: as for `conv1d`.
    """
    return ops.conv_transpose1d(
        input, weight, bias, stride, padding, output_padding, groups, dilation
    )


def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Tensor:
    """The transpose of a convolution over two dimensions; see `conv_transpose1d`."""
    return ops.conv_transpose2d(
        input, weight, bias, stride, padding, output_padding, groups, dilation
    )


def conv_transpose3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Tensor:
    """The transpose of a convolution over three dimensions; see `conv_transpose1d`."""
    return ops.conv_transpose3d(
        input, weight, bias, stride, padding, output_padding, groups, dilation
    )


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
    result = conv1d(input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad)
    return result.permute(2, 0, 1)
