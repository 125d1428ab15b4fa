"""The continuous Bernoulli distribution."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import taeda

from . import constraints
from .exp_family import ExponentialFamily
from .utils import (
    batch_of,
    binary_cross_entropy,
    broadcast_all,
    check_one,
    clamp_probs,
    lazy_property,
    logits_to_probs,
    probs_to_logits,
)

if TYPE_CHECKING:
    from taeda import Tensor

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(ExponentialFamily):
    """A density on [0, 1] proportional to ``probs ** x * (1 - probs) ** (1 - x)``.

    Loaiza-Ganem, Cunningham: The continuous Bernoulli: fixing a pervasive error in variational
    autoencoders, NeurIPS 2019. Between ``lims``, where the formulas are 0 / 0, series are used.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _expandable = ("probs", "logits")

    def __init__(
        self,
        probs: Any = None,
        logits: Any = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        check_one("ContinuousBernoulli", probs=probs, logits=logits)
        given = logits if probs is None else probs
        if probs is None:
            (self.logits,) = broadcast_all(logits)
        else:
            (self.probs,) = broadcast_all(probs)
            if (
                validate_args is not None
                and not self.arg_constraints["probs"].check(self.probs).all()
            ):
                raise ValueError(f"{type(self).__name__}: The parameter probs has invalid values")
            self.probs = clamp_probs(self.probs)
        self._lims = lims
        param = self.logits if probs is None else self.probs
        super().__init__(batch_of(param, given), validate_args=validate_args)

    @lazy_property
    def logits(self) -> Tensor:
        """The log odds."""
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Tensor:
        """The parameter in [0, 1]."""
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    @property
    def param_shape(self) -> Any:
        """The shape of the parameter."""
        return self._batch_shape

    def _is_stable(self) -> Tensor:
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _stable_probs(self) -> Tensor:
        return taeda.where(self._is_stable(), self.probs, self._lims[0])

    def _log_norm(self) -> Tensor:
        p = self._stable_probs()
        low, high = p.clamp(max=0.5 - 1e-9), p.clamp(min=0.5 + 1e-9)
        ends = taeda.log(taeda.abs(taeda.log1p(-p) - taeda.log(p)))
        width = taeda.where(p <= 0.5, taeda.log1p(-2 * low), taeda.log(2 * high - 1))
        x = (self.probs - 0.5).square()
        series = math.log(2) + (4.0 / 3 + 104.0 / 45 * x) * x
        return taeda.where(self._is_stable(), ends - width, series)

    @property
    def mean(self) -> Tensor:
        p = self._stable_probs()
        mean = p / (2 * p - 1) + 1 / (taeda.log1p(-p) - taeda.log(p))
        x = self.probs - 0.5
        series = 0.5 + (1.0 / 3 + 16.0 / 45 * x.square()) * x
        return taeda.where(self._is_stable(), mean, series)

    @property
    def stddev(self) -> Tensor:
        return taeda.sqrt(self.variance)

    @property
    def variance(self) -> Tensor:
        p = self._stable_probs()
        spread = taeda.log1p(-p) - taeda.log(p)
        variance = p * (p - 1) / (1 - 2 * p).square() + 1 / spread.square()
        x = (self.probs - 0.5).square()
        series = 1.0 / 12 - (1.0 / 15 - 128.0 / 945 * x) * x
        return taeda.where(self._is_stable(), variance, series)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with taeda.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        u = taeda.rand(shape, dtype=self.probs.dtype, device=self.probs.device)
        return self.icdf(u)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return -binary_cross_entropy(logits, value) + self._log_norm()

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        p = self._stable_probs()
        cdf = (p**value * (1 - p) ** (1 - value) + p - 1) / (2 * p - 1)
        unbounded = taeda.where(self._is_stable(), cdf, value)
        return unbounded.clamp(min=0, max=1)

    def icdf(self, value: Tensor) -> Tensor:
        p = self._stable_probs()
        rise = taeda.log1p(-p + value * (2 * p - 1)) - taeda.log1p(-p)
        return taeda.where(self._is_stable(), rise / (taeda.log(p) - taeda.log1p(-p)), value)

    def entropy(self) -> Tensor:
        at_0, at_1 = taeda.log1p(-self.probs), taeda.log(self.probs)
        return self.mean * (at_0 - at_1) - self._log_norm() - at_0

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.logits,)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        """``log((exp(x) - 1) / x)``, 0 / 0 near 0."""
        far = (x <= self._lims[0] - 0.5) | (x > self._lims[1] - 0.5)
        cut = taeda.where(far, x, self._lims[0] - 0.5)
        exact = taeda.log(taeda.abs(taeda.expm1(cut))) - taeda.log(taeda.abs(cut))
        series = 0.5 * x + x.square() / 24.0 - x.pow(4) / 2880.0
        return taeda.where(far, exact, series)
