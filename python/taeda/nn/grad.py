"""Gradients of convolutions with respect to their input and their weight."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import taeda
from taeda._C import Tensor
from taeda.nn import functional as F

__all__ = [
    "conv1d_input",
    "conv1d_weight",
    "conv2d_input",
    "conv2d_weight",
    "conv3d_input",
    "conv3d_weight",
]


def _of(
    conv: Callable[..., Tensor], wanted: Tensor, other: Tensor, grad_output: Tensor, first: bool,
    settings: tuple[Any, ...],
) -> Tensor:  # fmt: skip
    """The gradient with respect to `wanted`, whose values make no difference to it."""
    with taeda.enable_grad():
        wanted = wanted.requires_grad_()
        stride, padding, dilation, groups = settings
        pair = (wanted, other.detach()) if first else (other.detach(), wanted)
        output = conv(*pair, None, stride, padding, dilation, groups)
        return taeda.autograd.grad(output, wanted, grad_output)[0]


def conv1d_input(
    input_size: Sequence[int], weight: Tensor, grad_output: Tensor, stride: Any = 1,
    padding: Any = 0, dilation: Any = 1, groups: int = 1,
) -> Tensor:  # fmt: skip
    """The gradient of `conv1d` with respect to its input.

    Args:
        input_size: the input's shape.
        weight: the weight.
        grad_output: the gradient with respect to the output.
        stride, padding, dilation, groups: those of the convolution.
    """
    settings = (stride, padding, dilation, groups)
    return _of(F.conv1d, weight.new_zeros(input_size), weight, grad_output, True, settings)


def conv1d_weight(
    input: Tensor, weight_size: Sequence[int], grad_output: Tensor, stride: Any = 1,
    padding: Any = 0, dilation: Any = 1, groups: int = 1,
) -> Tensor:  # fmt: skip
    """The gradient of `conv1d` with respect to its weight, of shape `weight_size`."""
    settings = (stride, padding, dilation, groups)
    return _of(F.conv1d, input.new_zeros(weight_size), input, grad_output, False, settings)


def conv2d_input(
    input_size: Sequence[int], weight: Tensor, grad_output: Tensor, stride: Any = 1,
    padding: Any = 0, dilation: Any = 1, groups: int = 1,
) -> Tensor:  # fmt: skip
    """The gradient of `conv2d` with respect to its input; see `conv1d_input`."""
    settings = (stride, padding, dilation, groups)
    return _of(F.conv2d, weight.new_zeros(input_size), weight, grad_output, True, settings)


def conv2d_weight(
    input: Tensor, weight_size: Sequence[int], grad_output: Tensor, stride: Any = 1,
    padding: Any = 0, dilation: Any = 1, groups: int = 1,
) -> Tensor:  # fmt: skip
    """The gradient of `conv2d` with respect to its weight, of shape `weight_size`."""
    settings = (stride, padding, dilation, groups)
    return _of(F.conv2d, input.new_zeros(weight_size), input, grad_output, False, settings)


def conv3d_input(
    input_size: Sequence[int], weight: Tensor, grad_output: Tensor, stride: Any = 1,
    padding: Any = 0, dilation: Any = 1, groups: int = 1,
) -> Tensor:  # fmt: skip
    """The gradient of `conv3d` with respect to its input; see `conv1d_input`."""
    settings = (stride, padding, dilation, groups)
    return _of(F.conv3d, weight.new_zeros(input_size), weight, grad_output, True, settings)


def conv3d_weight(
    input: Tensor, weight_size: Sequence[int], grad_output: Tensor, stride: Any = 1,
    padding: Any = 0, dilation: Any = 1, groups: int = 1,
) -> Tensor:  # fmt: skip
    """The gradient of `conv3d` with respect to its weight, of shape `weight_size`."""
    settings = (stride, padding, dilation, groups)
    return _of(F.conv3d, input.new_zeros(weight_size), input, grad_output, False, settings)
