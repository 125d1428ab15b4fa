"""Divergences between distributions of different classes: minus the entropy of p, minus the
expected log density of q, which asks for a few moments of p; infinite where p reaches further.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import taeda

from .bernoulli import Bernoulli
from .beta import Beta
from .binomial import Binomial
from .continuous_bernoulli import ContinuousBernoulli
from .exponential import Exponential
from .gamma import Gamma
from .gumbel import Gumbel
from .kl import infinite_like, register_kl
from .laplace import Laplace
from .normal import Normal
from .pareto import Pareto
from .poisson import Poisson
from .uniform import Uniform
from .utils import EULER

if TYPE_CHECKING:
    from taeda import Tensor


def _x_log_x(x: Tensor) -> Tensor:
    return x * x.log()


def expected_log(p: Any) -> Tensor:
    """``E[log x]``."""
    if isinstance(p, Beta):
        return p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma()
    if isinstance(p, Gamma):
        return p.concentration.digamma() - p.rate.log()
    if isinstance(p, Exponential):
        return -EULER - p.rate.log()
    if isinstance(p, Pareto):
        return p.scale.log() + p.alpha.reciprocal()
    assert isinstance(p, Uniform)
    return (_x_log_x(p.high) - _x_log_x(p.low)) / (p.high - p.low) - 1


def expected_exp(p: Any, t: Tensor) -> Tensor:
    """``E[exp(-t x)]``."""
    if isinstance(p, Exponential):
        return p.rate / (p.rate + t)
    if isinstance(p, Gamma):
        return (1 + t / p.rate).pow(-p.concentration)
    if isinstance(p, Normal):
        return (-p.loc * t + 0.5 * (p.scale * t).square()).exp()
    assert isinstance(p, Uniform)
    return ((-t * p.low).exp() - (-t * p.high).exp()) / (t * (p.high - p.low))


def cross_entropy(p: Any, q: Any) -> Tensor:
    """``E[-log q(x)]`` for x from p, where q is positive wherever p is."""
    if isinstance(q, Normal):
        distance = p.variance + (p.mean - q.loc).square()
        return 0.5 * distance / q.scale.square() + q.scale.log() + 0.5 * math.log(2 * math.pi)
    if isinstance(q, Exponential):
        return q.rate * p.mean - q.rate.log()
    if isinstance(q, Gamma):
        a = q.concentration
        return a.lgamma() - a * q.rate.log() - (a - 1) * expected_log(p) + q.rate * p.mean
    if isinstance(q, Gumbel):
        t = q.scale.reciprocal()
        return q.scale.log() + (p.mean - q.loc) * t + (q.loc * t).exp() * expected_exp(p, t)
    if isinstance(q, Pareto):
        return (q.alpha + 1) * expected_log(p) - q.alpha * q.scale.log() - q.alpha.log()
    if isinstance(q, ContinuousBernoulli):
        return -p.mean * q.logits - taeda.log1p(-q.probs) - q._log_norm()
    assert isinstance(q, Uniform)
    return (q.high - q.low).log()


def _difference(p: Any, q: Any) -> Tensor:
    return cross_entropy(p, q) - p.entropy()


def _infinite(p: Any, q: Any) -> Tensor:
    del q
    return infinite_like(p.mean)


FINITE: dict[type, tuple[type, ...]] = {
    Beta: (ContinuousBernoulli, Exponential, Gamma, Normal),
    ContinuousBernoulli: (Exponential, Normal),
    Exponential: (Gamma, Gumbel, Normal),
    Gamma: (Exponential, Gumbel, Normal),
    Gumbel: (Normal,),
    Laplace: (Normal,),
    Normal: (Gumbel,),
    Pareto: (Exponential, Gamma, Normal),
    Uniform: (Gumbel, Normal),
}
INFINITE: dict[type, tuple[type, ...]] = {
    Beta: (Pareto,),
    ContinuousBernoulli: (Pareto,),
    Exponential: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gamma: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gumbel: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Laplace: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Normal: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Pareto: (Beta, ContinuousBernoulli, Uniform),
    Poisson: (Bernoulli, Binomial),
}
for _p, _types in FINITE.items():
    for _q in _types:
        register_kl(_p, _q)(_difference)
for _p, _types in INFINITE.items():
    for _q in _types:
        register_kl(_p, _q)(_infinite)


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Bernoulli, q: Poisson) -> Tensor:
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


@register_kl(Normal, Laplace)
def _normal_laplace(p: Normal, q: Laplace) -> Tensor:
    shift, spread = p.loc - q.loc, math.sqrt(2) * p.scale
    folded = math.sqrt(2 / math.pi) * p.scale * (-(shift / spread).square()).exp()
    distance = folded + shift * taeda.erf(shift / spread)
    return distance / q.scale + (2 * q.scale).log() - p.entropy()


@register_kl(Beta, Uniform)
@register_kl(ContinuousBernoulli, Uniform)
def _unit_interval_uniform(p: Any, q: Uniform) -> Tensor:
    return taeda.where((q.high < 1) | (q.low > 0), math.inf, _difference(p, q))


@register_kl(Uniform, Beta)
def _uniform_beta(p: Uniform, q: Beta) -> Tensor:
    a, b = q.concentration1, q.concentration0
    mirrored = Uniform(1 - p.high, 1 - p.low, validate_args=False)
    normalizer = a.lgamma() + b.lgamma() - (a + b).lgamma()
    cross = normalizer - (a - 1) * expected_log(p) - (b - 1) * expected_log(mirrored)
    return taeda.where((p.high > 1) | (p.low < 0), math.inf, cross - p.entropy())


@register_kl(Uniform, ContinuousBernoulli)
def _uniform_continuous_bernoulli(p: Uniform, q: ContinuousBernoulli) -> Tensor:
    return taeda.where((p.high > 1) | (p.low < 0), math.inf, _difference(p, q))


@register_kl(Uniform, Exponential)
@register_kl(Uniform, Gamma)
def _uniform_positive(p: Uniform, q: Any) -> Tensor:
    return taeda.where(p.low < 0, math.inf, _difference(p, q))


@register_kl(Uniform, Pareto)
def _uniform_pareto(p: Uniform, q: Pareto) -> Tensor:
    return taeda.where(p.low < q.scale, math.inf, _difference(p, q))
