"""The Cauchy distribution."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import taeda

from . import constraints
from .distribution import Distribution
from .utils import batch_of, broadcast_all, empty_for

if TYPE_CHECKING:
    from taeda import Tensor

__all__ = ["Cauchy"]


class Cauchy(Distribution):
    """The Cauchy distribution: the median is ``loc``, the half width at half maximum ``scale``."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _expandable = ("loc", "scale")

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(batch_of(self.loc, loc, scale), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return taeda.full_like(self.loc, math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return taeda.full_like(self.loc, math.inf)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.loc + empty_for(self.loc, shape).cauchy_() * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        distance = (value - self.loc) / self.scale
        return -math.log(math.pi) - self.scale.log() - distance.square().log1p()

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return taeda.atan((value - self.loc) / self.scale) / math.pi + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        return taeda.tan(math.pi * (value - 0.5)) * self.scale + self.loc

    def entropy(self) -> Tensor:
        return math.log(4 * math.pi) + self.scale.log()
