"""The Weibull distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import taeda

from . import constraints
from .exponential import Exponential
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, PowerTransform
from .utils import EULER, broadcast_all

if TYPE_CHECKING:
    from taeda import Tensor

__all__ = ["Weibull"]


class Weibull(TransformedDistribution):
    """The Weibull distribution: ``scale`` times an exponential number to ``1 / concentration``."""

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive
    _expandable = ("scale", "concentration", "concentration_reciprocal")

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        self.concentration_reciprocal = self.concentration.reciprocal()
        base = Exponential(taeda.ones_like(self.scale), validate_args=validate_args)
        transforms = [
            PowerTransform(exponent=self.concentration_reciprocal),
            AffineTransform(loc=0, scale=self.scale),
        ]
        super().__init__(base, transforms, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.scale * taeda.exp(taeda.lgamma(1 + self.concentration_reciprocal))

    @property
    def mode(self) -> Tensor:
        power = ((self.concentration - 1) / self.concentration) ** self.concentration_reciprocal
        return self.scale * power

    @property
    def variance(self) -> Tensor:
        second = taeda.exp(taeda.lgamma(1 + 2 * self.concentration_reciprocal))
        first = taeda.exp(2 * taeda.lgamma(1 + self.concentration_reciprocal))
        return self.scale.square() * (second - first)

    def entropy(self) -> Tensor:
        r = self.concentration_reciprocal
        return EULER * (1 - r) + taeda.log(self.scale * r) + 1
