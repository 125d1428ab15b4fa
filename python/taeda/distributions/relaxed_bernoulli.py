"""Relaxed Bernoulli distributions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import taeda

from . import constraints
from .distribution import Distribution
from .transformed_distribution import TransformedDistribution
from .transforms import SigmoidTransform
from .utils import (
    batch_of,
    broadcast_all,
    check_one,
    clamp_probs,
    lazy_property,
    logits_to_probs,
    probs_to_logits,
)

if TYPE_CHECKING:
    from taeda import Tensor

__all__ = ["LogitRelaxedBernoulli", "RelaxedBernoulli"]


class LogitRelaxedBernoulli(Distribution):
    """The log odds of a relaxed Bernoulli number.

    Maddison, Mnih, Teh: The concrete distribution, ICLR 2017; Jang, Gu, Poole: Categorical
    reparameterization with Gumbel-softmax, ICLR 2017.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real
    _expandable = ("probs", "logits")

    def __init__(
        self,
        temperature: Tensor,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        check_one("LogitRelaxedBernoulli", probs=probs, logits=logits)
        self.temperature = temperature
        given = logits if probs is None else probs
        if probs is None:
            (self.logits,) = broadcast_all(logits)
        else:
            (self.probs,) = broadcast_all(probs)
        super().__init__(batch_of(self._param, given), validate_args=validate_args)

    @property
    def _param(self) -> Tensor:
        probs = self.__dict__.get("probs")
        return self.logits if probs is None else probs

    @lazy_property
    def logits(self) -> Tensor:
        """The log odds of 1."""
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Tensor:
        """The probability of 1."""
        return logits_to_probs(self.logits, is_binary=True)

    @property
    def param_shape(self) -> Any:
        """The shape of the parameter."""
        return self._param.size()

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        probs = clamp_probs(self.probs.expand(shape))
        u = clamp_probs(taeda.rand(shape, dtype=probs.dtype, device=probs.device))
        odds = u.log() - (-u).log1p() + probs.log() - (-probs).log1p()
        return odds / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        distance = logits - value * self.temperature
        return self.temperature.log() + distance - 2 * distance.exp().log1p()


class RelaxedBernoulli(TransformedDistribution):
    """Numbers in [0, 1] that go to Bernoulli draws as ``temperature`` goes to 0."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    base_dist: LogitRelaxedBernoulli

    def __init__(
        self,
        temperature: Tensor,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        base = LogitRelaxedBernoulli(temperature, probs, logits)
        super().__init__(base, SigmoidTransform(), validate_args=validate_args)

    @property
    def temperature(self) -> Tensor:
        """How far from a Bernoulli distribution it is."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Tensor:
        """The log odds of 1."""
        return self.base_dist.logits

    @property
    def probs(self) -> Tensor:
        """The probability of 1."""
        return self.base_dist.probs
