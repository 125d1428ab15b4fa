"""The Laplace distribution."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import taeda

from . import constraints
from .distribution import Distribution
from .utils import batch_of, broadcast_all, empty_for

if TYPE_CHECKING:
    from taeda import Tensor

__all__ = ["Laplace"]


class Laplace(Distribution):
    """The Laplace, or double exponential, distribution around ``loc``."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _expandable = ("loc", "scale")

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(batch_of(self.loc, loc, scale), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return 2 * self.scale.square()

    @property
    def stddev(self) -> Tensor:
        return math.sqrt(2) * self.scale

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        u = empty_for(self.loc, shape).uniform_(taeda.finfo(self.loc.dtype).eps - 1, 1)
        return self.loc - self.scale * u.sign() * taeda.log1p(-u.abs())

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return -taeda.log(2 * self.scale) - taeda.abs(value - self.loc) / self.scale

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        z = value - self.loc
        return 0.5 - 0.5 * z.sign() * taeda.expm1(-z.abs() / self.scale)

    def icdf(self, value: Tensor) -> Tensor:
        term = value - 0.5
        return self.loc - self.scale * term.sign() * taeda.log1p(-2 * term.abs())

    def entropy(self) -> Tensor:
        return 1 + taeda.log(2 * self.scale)
