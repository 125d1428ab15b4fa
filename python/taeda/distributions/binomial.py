"""The binomial distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import taeda

from . import constraints
from .distribution import Distribution
from .utils import broadcast_all, check_one, lazy_property, logits_to_probs, probs_to_logits

if TYPE_CHECKING:
    from taeda import Tensor

__all__ = ["Binomial"]


class Binomial(Distribution):
    """Successes in ``total_count`` trials."""

    arg_constraints = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True
    _expandable = ("total_count", "probs", "logits")

    def __init__(
        self,
        total_count: Any = 1,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        check_one("Binomial", probs=probs, logits=logits)
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

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with taeda.no_grad():
            return taeda.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        n = self.total_count
        ways = taeda.lgamma(n + 1) - taeda.lgamma(value + 1) - taeda.lgamma(n - value + 1)
        # n log(1 + exp(logits)), written so that it does not overflow and has its derivative at 0.
        above = (self.logits + self.logits.abs()) / 2
        normalizer = n * (above + taeda.log1p(taeda.exp(-self.logits.abs())))
        return value * self.logits + ways - normalizer

    def _equal_count(self, what: str) -> int:
        most = int(self.total_count.max())
        if not (self.total_count == most).all():
            raise NotImplementedError(
                f"{type(self).__name__}: Inhomogeneous total count not supported by `{what}`."
            )
        return most

    def entropy(self) -> Tensor:
        self._equal_count("entropy")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(taeda.exp(log_prob) * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        most = self._equal_count("enumerate_support")
        values = taeda.arange(1 + most, dtype=self.probs.dtype, device=self.probs.device)
        return self._enumerated(values, expand)
