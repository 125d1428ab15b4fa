"""The F distribution."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import taeda

from . import constraints
from .distribution import Distribution
from .gamma import Gamma
from .utils import batch_of, broadcast_all

if TYPE_CHECKING:
    from taeda import Tensor

__all__ = ["FisherSnedecor"]


class FisherSnedecor(Distribution):
    """The ratio of two chi-squared numbers, each over its degrees of freedom."""

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True
    _expandable = ("df1", "df2")

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None) -> None:
        self.df1, self.df2 = broadcast_all(df1, df2)
        self._gamma1 = Gamma(self.df1 * 0.5, self.df1)
        self._gamma2 = Gamma(self.df2 * 0.5, self.df2)
        super().__init__(batch_of(self.df1, df1, df2), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        new._gamma1 = self._gamma1.expand(batch_shape)
        new._gamma2 = self._gamma2.expand(batch_shape)
        return new

    @property
    def mean(self) -> Tensor:
        return taeda.where(self.df2 > 2, self.df2 / (self.df2 - 2), math.nan)

    @property
    def mode(self) -> Tensor:
        mode = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return taeda.where(self.df1 > 2, mode, math.nan)

    @property
    def variance(self) -> Tensor:
        df2 = taeda.where(self.df2 > 4, self.df2, math.nan)
        total = self.df1 + df2 - 2
        return 2 * df2.square() * total / (self.df1 * (df2 - 2).square() * (df2 - 4))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        x1 = self._gamma1.rsample(sample_shape)
        x2 = self._gamma2.rsample(sample_shape)
        tiny = taeda.finfo(x2.dtype).tiny
        x2.detach().clamp_(min=tiny)
        y = x1 / x2
        y.detach().clamp_(min=tiny)
        return y

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        half1, half2, ratio = self.df1 * 0.5, self.df2 * 0.5, self.df1 / self.df2
        log_beta = (half1 + half2).lgamma() - half1.lgamma() - half2.lgamma()
        power = half1 * ratio.log() + (half1 - 1) * taeda.log(value)
        return log_beta + power - (half1 + half2) * taeda.log1p(ratio * value)
