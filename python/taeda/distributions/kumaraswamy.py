"""The Kumaraswamy distribution."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import taeda

from . import constraints
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, PowerTransform
from .uniform import Uniform
from .utils import EULER, broadcast_all

if TYPE_CHECKING:
    from taeda import Tensor

__all__ = ["Kumaraswamy"]


class Kumaraswamy(TransformedDistribution):
    """The Kumaraswamy distribution on [0, 1], whose cdf is ``1 - (1 - x ** a) ** b``."""

    arg_constraints = {
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    support = constraints.unit_interval
    has_rsample = True
    _expandable = ("concentration1", "concentration0")

    def __init__(
        self, concentration1: Any, concentration0: Any, validate_args: bool | None = None
    ) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        base = Uniform(
            taeda.full_like(self.concentration0, 0),
            taeda.full_like(self.concentration0, 1),
            validate_args=validate_args,
        )
        transforms = [
            PowerTransform(exponent=self.concentration0.reciprocal()),
            AffineTransform(loc=1, scale=-1),
            PowerTransform(exponent=self.concentration1.reciprocal()),
        ]
        super().__init__(base, transforms, validate_args=validate_args)

    def _moment(self, n: int) -> Tensor:
        arg = 1 + n / self.concentration1
        b = self.concentration0
        return b * taeda.exp(taeda.lgamma(arg) + taeda.lgamma(b) - taeda.lgamma(arg + b))

    @property
    def mean(self) -> Tensor:
        return self._moment(1)

    @property
    def mode(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        mode = ((a - 1) / (a * b - 1)) ** a.reciprocal()
        return taeda.where((a < 1) | (b < 1), math.nan, mode)

    @property
    def variance(self) -> Tensor:
        return self._moment(2) - self.mean.square()

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        harmonic = taeda.digamma(b + 1) + EULER
        return (1 - b.reciprocal()) + (1 - a.reciprocal()) * harmonic - a.log() - b.log()
