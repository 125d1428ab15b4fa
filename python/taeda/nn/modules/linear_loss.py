"""Losses with a linear layer of their own."""

from __future__ import annotations

from math import prod
from typing import Any

from taeda._C import Tensor
from taeda.nn import functional as F
from taeda.nn.functional._linear_loss import LinearCrossEntropyOptions
from taeda.nn.modules.linear import Linear
from taeda.nn.modules.loss_base import _WeightedLoss

__all__ = ["LinearCrossEntropyLoss", "LinearCrossEntropyOptions"]


class LinearCrossEntropyLoss(_WeightedLoss):
    """A linear layer to class scores, and their cross entropy.

    Args:
        in_features: the size I of an input vector.
        num_classes: how many classes C there are.
        out_features: for a loss at each of (d1, d2, ...), these sizes.
        bias: whether the linear layer adds something.
        device, dtype: those of its parameters.
        reduction, label_smoothing: as for `CrossEntropyLoss`.
        weight: of shape (C,), the weights of the classes.
        ignore_index: a class number that counts for nothing, by default -100.
        options: `LinearCrossEntropyOptions`, to compute the logits in chunks. None computes them
            at once.

    Called with an input (N, I) or (I,) and a target as for `functional.linear_cross_entropy`.

    Raises:
        RuntimeError: the shape of `weight`, or `label_smoothing`, is out of range.
    """

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        device: Any = None,
        dtype: Any = None,
        reduction: str = "mean",
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options: LinearCrossEntropyOptions | None = None,
    ) -> None:
        if weight is not None and tuple(weight.shape) != (num_classes,):
            raise RuntimeError(
                f"LinearCrossEntropyLoss: expected weight shape to be {(num_classes,)}, got "
                f"{tuple(weight.shape)}"
            )
        if not 0 <= label_smoothing <= 1:
            raise RuntimeError(
                "LinearCrossEntropyLoss: expected label_smoothing to be in range [0, 1], got "
                f"{label_smoothing}"
            )
        super().__init__(weight, reduction=reduction)
        self.num_classes = num_classes
        self.out_features = tuple(out_features)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing
        self.options = options
        outputs = num_classes * prod(self.out_features)
        self.linear = Linear(in_features, outputs, bias=bias, device=device, dtype=dtype)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        shape = (self.num_classes, *self.out_features)
        bias = self.linear.bias
        return F.linear_cross_entropy(
            input,
            self.linear.weight.reshape(*shape, self.linear.in_features),
            target,
            linear_bias=None if bias is None else bias.reshape(shape),
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
            options=self.options,
        )

    def extra_repr(self) -> str:
        return (
            f"in_features={self.linear.in_features}, num_classes={self.num_classes}, "
            f"out_features={self.out_features}, bias={self.linear.bias is not None}, "
            f"reduction={self.reduction}, ignore_index={self.ignore_index}, "
            f"label_smoothing={self.label_smoothing}, options={self.options}"
        )
