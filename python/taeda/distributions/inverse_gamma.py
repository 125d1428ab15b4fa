"""The inverse gamma distribution."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import taeda

from . import constraints
from .gamma import Gamma
from .transformed_distribution import TransformedDistribution
from .transforms import PowerTransform

if TYPE_CHECKING:
    from taeda import Tensor

__all__ = ["InverseGamma"]


class InverseGamma(TransformedDistribution):
    """One over a gamma number."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True
    base_dist: Gamma

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        base = Gamma(concentration, rate, validate_args=validate_args)
        minus_one = -taeda.ones_like(base.rate)
        super().__init__(base, PowerTransform(minus_one), validate_args=validate_args)

    @property
    def concentration(self) -> Tensor:
        """The gamma number's shape."""
        return self.base_dist.concentration

    @property
    def rate(self) -> Tensor:
        """The gamma number's rate."""
        return self.base_dist.rate

    @property
    def mean(self) -> Tensor:
        mean = self.rate / (self.concentration - 1)
        return taeda.where(self.concentration > 1, mean, math.inf)

    @property
    def mode(self) -> Tensor:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Tensor:
        c = self.concentration
        variance = self.rate.square() / ((c - 1).square() * (c - 2))
        return taeda.where(c > 2, variance, math.inf)

    def entropy(self) -> Tensor:
        c = self.concentration
        return c + self.rate.log() + c.lgamma() - (1 + c) * c.digamma()
