"""Student's t distribution."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import taeda

from . import constraints
from .chi2 import Chi2
from .distribution import Distribution
from .utils import broadcast_all, standard_normal

if TYPE_CHECKING:
    from taeda import Tensor

__all__ = ["StudentT"]


class StudentT(Distribution):
    """Student's t distribution with ``df`` degrees of freedom, moved by ``loc`` and scaled."""

    arg_constraints = {
        "df": constraints.positive,
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    support = constraints.real
    has_rsample = True
    _expandable = ("df", "loc", "scale")

    def __init__(
        self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None
    ) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df)
        super().__init__(self.df.shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        new._chi2 = self._chi2.expand(batch_shape)
        return new

    @property
    def mean(self) -> Tensor:
        return taeda.where(self.df > 1, self.loc, math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        finite = self.scale.square() * self.df / (self.df - 2)
        wide = taeda.where(self.df > 1, taeda.full_like(self.df, math.inf), math.nan)
        return taeda.where(self.df > 2, finite, wide)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        z = standard_normal(self._extended_shape(sample_shape), self.df)
        y = z * taeda.rsqrt(self._chi2.rsample(sample_shape) / self.df)
        return self.loc + self.scale * y

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        y = (value - self.loc) / self.scale
        normalizer = (
            self.scale.log()
            + 0.5 * self.df.log()
            + 0.5 * math.log(math.pi)
            + taeda.lgamma(0.5 * self.df)
            - taeda.lgamma(0.5 * (self.df + 1))
        )
        return -0.5 * (self.df + 1) * taeda.log1p(y.square() / self.df) - normalizer

    def entropy(self) -> Tensor:
        half, more = 0.5 * self.df, 0.5 * (self.df + 1)
        log_beta = taeda.lgamma(half) + math.log(math.pi) / 2 - taeda.lgamma(more)
        spread = more * (taeda.digamma(more) - taeda.digamma(half))
        return self.scale.log() + spread + 0.5 * self.df.log() + log_beta
