"""The negative binomial distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import taeda
import taeda.nn.functional as F

from . import constraints
from .distribution import Distribution
from .gamma import Gamma
from .utils import broadcast_all, check_one, lazy_property, logits_to_probs, probs_to_logits

if TYPE_CHECKING:
    from taeda import Tensor

__all__ = ["NegativeBinomial"]


class NegativeBinomial(Distribution):
    """Successes before the ``total_count``-th failure; ``total_count`` may be a fraction."""

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer
    _expandable = ("total_count", "probs", "logits")

    def __init__(
        self,
        total_count: Any,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        check_one("NegativeBinomial", probs=probs, logits=logits)
        if probs is None:
            count, self.logits = broadcast_all(total_count, logits)
            self.total_count = count.type_as(self.logits)
        else:
            count, self.probs = broadcast_all(total_count, probs)
            self.total_count = count.type_as(self.probs)
        super().__init__(self.total_count.size(), validate_args=validate_args)

    @lazy_property
    def logits(self) -> Tensor:
        """The log odds of success."""
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Tensor:
        """The probability of success."""
        return logits_to_probs(self.logits, is_binary=True)

    @property
    def param_shape(self) -> Any:
        """The shape of the parameter."""
        return self._batch_shape

    @property
    def mean(self) -> Tensor:
        return self.total_count * taeda.exp(self.logits)

    @property
    def mode(self) -> Tensor:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self) -> Tensor:
        return self.mean / taeda.sigmoid(-self.logits)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with taeda.no_grad():
            gamma = Gamma(self.total_count, taeda.exp(-self.logits), validate_args=False)
            return taeda.poisson(gamma.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        n = self.total_count
        weight = n * F.logsigmoid(-self.logits) + value * F.logsigmoid(self.logits)
        ways = taeda.lgamma(n + value) - taeda.lgamma(1.0 + value) - taeda.lgamma(n)
        ways = taeda.where(n + value == 0, 0.0, ways)
        return weight + ways
