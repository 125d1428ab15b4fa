"""What losses share."""

from __future__ import annotations

from taeda._C import Tensor
from taeda.nn._reduction import resolve
from taeda.nn.module import Module


class _Loss(Module):
    """A loss with a reduction: "mean", "sum" or "none". The other two arguments are deprecated."""

    reduction: str

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__()
        self.reduction = resolve(reduction, size_average, reduce)


class _WeightedLoss(_Loss):
    """A loss with weights, which are a buffer so that they move with the module."""

    weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
