"""Padding layers."""

from __future__ import annotations

from typing import Any

from taeda._C import Tensor
from taeda.nn import functional as F
from taeda.nn.module import Module
from taeda.nn.modules.utils import _ntuple

__all__ = [
    "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d",
    "ConstantPad3d", "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d",
    "ReplicationPad2d", "ReplicationPad3d", "ZeroPad1d", "ZeroPad2d", "ZeroPad3d",
]  # fmt: skip


class _PadNd(Module):
    """Adds elements at both ends of the last `_rank` dimensions.

    Args:
        padding: a number, or one for each end, those of the last dimension first.
    """

    _rank: int
    _mode: str

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = _ntuple(2 * self._rank)(padding)

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPadNd(_PadNd):
    """As `_PadNd`, with the value of what is added as a second argument."""

    _mode = "constant"

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPadNd):
    """Adds a constant at both ends of the last dimension.

    Args:
        padding: how many elements: a number, or (left, right).
        value: the constant.
    """

    _rank = 1


class ConstantPad2d(_ConstantPadNd):
    """Adds a constant around the last two dimensions.

    Args:
        padding: how many elements: a number, or (left, right, top, bottom).
        value: the constant.
    """

    _rank = 2


class ConstantPad3d(_ConstantPadNd):
    """Adds a constant around the last three dimensions.

    Args:
        padding: how many elements: a number, or (left, right, top, bottom, front, back).
        value: the constant.
    """

    _rank = 3


class _ZeroPadNd(_ConstantPadNd):
    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad1d(_ZeroPadNd):
    """Adds zeros; `padding` is a number, or (left, right)."""

    _rank = 1


class ZeroPad2d(_ZeroPadNd):
    """Adds zeros; `padding` is a number, or (left, right, top, bottom)."""

    _rank = 2


class ZeroPad3d(_ZeroPadNd):
    """Adds zeros; `padding` is a number, or (left, right, top, bottom, front, back)."""

    _rank = 3


class ReflectionPad1d(_PadNd):
    """Continues the input by its mirror image; `padding` is a number, or (left, right)."""

    _rank, _mode = 1, "reflect"


class ReflectionPad2d(_PadNd):
    """ReflectionPad1d for two dimensions: (left, right, top, bottom)."""

    _rank, _mode = 2, "reflect"


class ReflectionPad3d(_PadNd):
    """ReflectionPad1d for three dimensions: (left, right, top, bottom, front, back)."""

    _rank, _mode = 3, "reflect"


class ReplicationPad1d(_PadNd):
    """Continues the input by its outermost elements; `padding` is a number, or (left, right)."""

    _rank, _mode = 1, "replicate"


class ReplicationPad2d(_PadNd):
    """ReplicationPad1d for two dimensions: (left, right, top, bottom)."""

    _rank, _mode = 2, "replicate"


class ReplicationPad3d(_PadNd):
    """ReplicationPad1d for three dimensions: (left, right, top, bottom, front, back)."""

    _rank, _mode = 3, "replicate"


class _CircularPadNd(_PadNd):
    _mode = "circular"

    def forward(self, input: Tensor) -> Tensor:
        least = self._rank + 1
        if input.dim() not in (least, least + 1):
            raise ValueError(
                f"{type(self).__name__}: expected {least}D or {least + 1}D input (got "
                f"{input.dim()}D input)"
            )
        return super().forward(input)


class CircularPad1d(_CircularPadNd):
    """Continues the input by its other end; `padding` is a number, or (left, right)."""

    _rank = 1


class CircularPad2d(_CircularPadNd):
    """CircularPad1d for two dimensions: (left, right, top, bottom)."""

    _rank = 2


class CircularPad3d(_CircularPadNd):
    """CircularPad1d for three dimensions: (left, right, top, bottom, front, back)."""

    _rank = 3
