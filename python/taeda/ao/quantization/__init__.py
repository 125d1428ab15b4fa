"""The marks of where a model would be quantised. Quantising it is missing: so is ``convert``.

>>> import taeda
>>> stub = taeda.ao.quantization.QuantStub()
>>> stub(taeda.ones(2))
tensor([1., 1.])
"""

from __future__ import annotations

from typing import Any

from taeda import Tensor
from taeda.nn import Module

__all__ = ["DeQuantStub", "QuantStub"]


class QuantStub(Module):
    """Where quantised numbers would begin; returns its input.

    Args:
        qconfig: how they would be quantised; kept as an attribute where it is given.
    """

    def __init__(self, qconfig: Any = None) -> None:
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x: Tensor) -> Tensor:
        """The input as it is."""
        return x


class DeQuantStub(Module):
    """Where quantised numbers would end; returns its input.

    Args:
        qconfig: how they would have been quantised; kept as an attribute where it is given.
    """

    def __init__(self, qconfig: Any = None) -> None:
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x: Tensor) -> Tensor:
        """The input as it is."""
        return x
