"""The Poisson distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import taeda

from . import constraints
from .exp_family import ExponentialFamily
from .utils import batch_of, broadcast_all

if TYPE_CHECKING:
    from taeda import Tensor

__all__ = ["Poisson"]


class Poisson(ExponentialFamily):
    """How many events come in a unit of time at ``rate``."""

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer
    _expandable = ("rate",)

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(batch_of(self.rate, rate), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.rate

    @property
    def mode(self) -> Tensor:
        return self.rate.floor()

    @property
    def variance(self) -> Tensor:
        return self.rate

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with taeda.no_grad():
            return taeda.poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        rate, value = broadcast_all(self.rate, value)
        return taeda.xlogy(value, rate) - rate - (value + 1).lgamma()

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (taeda.log(self.rate),)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return taeda.exp(x)
