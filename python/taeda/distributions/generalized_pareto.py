"""The generalised Pareto distribution."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import taeda

from . import constraints
from .distribution import Distribution
from .utils import batch_of, broadcast_all

if TYPE_CHECKING:
    from taeda import Tensor

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """What is left above a high threshold ``loc``: heavy-tailed, exponential or bounded as
    ``concentration`` is above, at or below 0.
    """

    arg_constraints = {
        "loc": constraints.real,
        "scale": constraints.positive,
        "concentration": constraints.real,
    }
    has_rsample = True
    _expandable = ("loc", "scale", "concentration")

    def __init__(
        self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None
    ) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        batch = batch_of(self.loc, loc, scale, concentration)
        super().__init__(batch, validate_args=validate_args)

    @property
    def _is_exponential(self) -> Tensor:
        return taeda.isclose(self.concentration, taeda.zeros_like(self.concentration))

    @property
    def _safe_concentration(self) -> Tensor:
        ones = taeda.ones_like(self.concentration)
        return taeda.where(self._is_exponential, ones, self.concentration)

    @property
    def mean(self) -> Tensor:
        mean = self.loc + self.scale / (1 - self.concentration)
        return taeda.where(self.concentration < 1, mean, math.inf)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        c = self.concentration
        variance = self.scale.square() / ((1 - c).square() * (1 - 2 * c))
        return taeda.where(c < 0.5, variance, math.inf)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        upper = taeda.where(
            self.concentration < 0, self.loc - self.scale / self.concentration, math.inf
        )
        return constraints.interval(self.loc, upper)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.icdf(taeda.rand(shape, dtype=self.loc.dtype, device=self.loc.device))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        z = (value - self.loc) / self.scale
        c = self._safe_concentration
        heavy = -(1 / c + 1) * taeda.log1p(c * z)
        return taeda.where(self._is_exponential, -z, heavy) - self.scale.log()

    def log_survival_function(self, value: Tensor) -> Tensor:
        """The logarithm of the probability of a draw above ``value``."""
        if self._validate_args:
            self._validate_sample(value)
        z = (value - self.loc) / self.scale
        c = self._safe_concentration
        return taeda.where(self._is_exponential, -z, -taeda.log1p(c * z) / c)

    def log_cdf(self, value: Tensor) -> Tensor:
        """The logarithm of ``cdf``."""
        return taeda.log1p(-self.log_survival_function(value).exp())

    def cdf(self, value: Tensor) -> Tensor:
        return self.log_cdf(value).exp()

    def icdf(self, value: Tensor) -> Tensor:
        c = self._safe_concentration
        log_survival = taeda.log1p(-value)
        heavy = taeda.expm1(-c * log_survival) / c
        return self.loc + self.scale * taeda.where(self._is_exponential, -log_survival, heavy)

    def entropy(self) -> Tensor:
        return (self.scale.log() + self.concentration + 1).expand(self._batch_shape)
