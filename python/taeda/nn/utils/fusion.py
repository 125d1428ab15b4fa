"""Batch normalisation folded into the layer before it, for evaluation."""

from __future__ import annotations

import copy
from typing import Any

import taeda
from taeda._C import Tensor
from taeda.nn.module import Module
from taeda.nn.parameter import Parameter

__all__ = [
    "fuse_conv_bn_eval",
    "fuse_conv_bn_weights",
    "fuse_linear_bn_eval",
    "fuse_linear_bn_weights",
]


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """Return a copy of a convolution that does what it and a batch normalisation do in turn.

    Args:
        conv: a convolution in evaluation mode.
        bn: a batch normalisation in evaluation mode, with running statistics.
        transpose: the convolution is a transposed one.
    """
    _check_eval("fuse_conv_bn_eval", conv, bn)
    fused = copy.deepcopy(conv)
    fused.weight, fused.bias = fuse_conv_bn_weights(
        conv.weight, conv.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias,
        transpose,
    )  # fmt: skip
    return fused


def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """Return the weight and the bias of a convolution with a batch normalisation folded in.

    Args:
        conv_w, conv_b: those of the convolution.
        bn_rm, bn_rv: the running mean and variance.
        bn_eps: what is added to the variance.
        bn_w, bn_b: the scale and the shift, or None.
        transpose: the convolution is a transposed one, whose outputs are along dimension 1.
    """
    scale, shift = _scale_and_shift(conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)
    shape = [1] * conv_w.dim()
    shape[1 if transpose else 0] = -1
    weight = (conv_w * scale.reshape(shape)).to(conv_w.dtype)
    bias = shift.to(conv_w.dtype if conv_b is None else conv_b.dtype)
    return Parameter(weight.detach(), conv_w.requires_grad), Parameter(
        bias.detach(), conv_w.requires_grad if conv_b is None else conv_b.requires_grad
    )


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """Return a copy of a linear layer that does what it and a batch normalisation do in turn.

    Args:
        linear: a linear layer in evaluation mode.
        bn: a batch normalisation in evaluation mode, with running statistics, of as many features
            as the layer gives, or of one.
    """
    _check_eval("fuse_linear_bn_eval", linear, bn)
    if bn.num_features not in (linear.out_features, 1):
        raise AssertionError(
            "fuse_linear_bn_eval: To fuse, linear.out_features == bn.num_features or "
            f"bn.num_features == 1, got {linear.out_features} and {bn.num_features}"
        )
    fused = copy.deepcopy(linear)
    fused.weight, fused.bias = fuse_linear_bn_weights(
        linear.weight, linear.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    )
    return fused


def fuse_linear_bn_weights(
    linear_w: Tensor,
    linear_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
) -> tuple[Parameter, Parameter]:
    """`fuse_conv_bn_weights` for the weight and the bias of a linear layer."""
    return fuse_conv_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)


def _check_eval(name: str, layer: Module, bn: Any) -> None:
    if layer.training or bn.training:
        raise AssertionError(f"{name}: both modules must be in evaluation mode")
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError(f"{name}: the batch normalisation has no running statistics")


def _scale_and_shift(
    bias: Tensor | None, mean: Tensor, var: Tensor, eps: float, weight: Any, shift: Any
) -> tuple[Tensor, Tensor]:
    scale = taeda.rsqrt(var + eps)
    if weight is not None:
        scale = scale * weight
    moved = -mean if bias is None else bias - mean
    moved = moved * scale
    return scale, moved if shift is None else moved + shift
