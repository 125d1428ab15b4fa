"""The Bernoulli distribution."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import taeda
import taeda.nn.functional as F

from . import constraints
from .exp_family import ExponentialFamily
from .utils import (
    batch_of,
    binary_cross_entropy,
    broadcast_all,
    check_one,
    lazy_property,
    logits_to_probs,
    probs_to_logits,
)

if TYPE_CHECKING:
    from taeda import Tensor

__all__ = ["Bernoulli"]


class Bernoulli(ExponentialFamily):
    """0 or 1: 1 with probability ``probs``, or with log odds ``logits``; one of them is given."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True
    _expandable = ("probs", "logits")

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        check_one("Bernoulli", probs=probs, logits=logits)
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
        """The log odds."""
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Tensor:
        """The probability of 1."""
        return logits_to_probs(self.logits, is_binary=True)

    @property
    def param_shape(self) -> Any:
        """The shape of the parameter."""
        return self._param.size()

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        mode = (self.probs >= 0.5).to(self.probs)
        return taeda.where(self.probs == 0.5, math.nan, mode)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with taeda.no_grad():
            return taeda.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return -binary_cross_entropy(logits, value)

    def entropy(self) -> Tensor:
        return binary_cross_entropy(self.logits, self.probs)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = taeda.arange(2, dtype=self._param.dtype, device=self._param.device)
        return self._enumerated(values, expand)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (taeda.logit(self.probs),)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return F.softplus(x)
