"""Kullback-Leibler divergences between distributions, by their classes.

>>> from taeda.distributions import Normal
>>> kl_divergence(Normal(0.0, 1.0), Normal(1.0, 1.0))
tensor(0.5000)
"""

from __future__ import annotations

import functools
import math
import warnings
from typing import TYPE_CHECKING, Any

import taeda
import taeda.nn.functional as F

from .bernoulli import Bernoulli
from .beta import Beta
from .binomial import Binomial
from .categorical import Categorical
from .cauchy import Cauchy
from .continuous_bernoulli import ContinuousBernoulli
from .dirichlet import Dirichlet
from .distribution import Distribution
from .exp_family import ExponentialFamily
from .exponential import Exponential
from .gamma import Gamma
from .geometric import Geometric
from .gumbel import Gumbel
from .half_normal import HalfNormal
from .independent import Independent
from .laplace import Laplace
from .lowrank_multivariate_normal import LowRankMultivariateNormal
from .multivariate_normal import MultivariateNormal, half_log_det, squared_distance
from .normal import Normal
from .one_hot_categorical import OneHotCategorical
from .pareto import Pareto
from .poisson import Poisson
from .transformed_distribution import TransformedDistribution
from .uniform import Uniform
from .utils import EULER, sum_rightmost

if TYPE_CHECKING:
    from collections.abc import Callable

    from taeda import Tensor

__all__ = ["kl_divergence", "register_kl"]

Divergence = Any

# Under the name that it has in PyTorch, where packages look into it.
_KL_REGISTRY: dict[tuple[type, type], Callable[[Any, Any], Any]] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Any], Any]:
    """A decorator: the function gives the divergence of ``type_p`` from ``type_q``.

    Of several that fit two distributions, the one of the nearest classes is taken.

    Raises:
        TypeError: a type is not a class. It need not be one of ``Distribution``'s subclasses: it
            may be a base of theirs.
    """
    for name, kind in (("type_p", type_p), ("type_q", type_q)):
        if not isinstance(kind, type):
            raise TypeError(f"register_kl: Expected {name} to be a class but got {kind}")

    def decorator(function: Any) -> Any:
        _KL_REGISTRY[type_p, type_q] = function
        _find.cache_clear()
        return function

    return decorator


@functools.cache
def _find(type_p: Any, type_q: Any) -> Callable[[Any, Any], Any] | None:
    fitting = [
        pair for pair in _KL_REGISTRY if issubclass(type_p, pair[0]) and issubclass(type_q, pair[1])
    ]
    if not fitting:
        return None

    mros = (type_p.__mro__, type_q.__mro__)

    def steps(kind: type, mro: tuple[type, ...]) -> int:
        return mro.index(kind) if kind in mro else len(mro)  # a virtual base, as of `abc`

    def distance(order: tuple[int, int]) -> Any:
        return lambda pair: [steps(pair[i], mros[i]) for i in order]

    left, right = min(fitting, key=distance((0, 1))), min(fitting, key=distance((1, 0)))
    if _KL_REGISTRY[left] is not _KL_REGISTRY[right]:
        warnings.warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). Please register_kl("
            f"{left[0].__name__}, {right[1].__name__})",
            RuntimeWarning,
            stacklevel=3,
        )
    return _KL_REGISTRY[left]


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """``E[log p(x) - log q(x)]`` for x from p: a tensor of the batch's shape.

    Raises:
        NotImplementedError: none is registered for their classes.
    """
    kinds: Any = type(p), type(q)
    function = _find(*kinds)
    if function is None:
        raise NotImplementedError(
            f"kl_divergence: No KL(p || q) is implemented for p type {type(p).__name__} and q type "
            f"{type(q).__name__}"
        )
    return function(p, q)


def infinite_like(x: Tensor) -> Tensor:
    """Infinity, in the shape of ``x``."""
    return taeda.full_like(x, math.inf)


@register_kl(ExponentialFamily, ExponentialFamily)
def _exponential_families(p: Any, q: Any) -> Divergence:
    """The Bregman divergence of the log normalizer."""
    if type(p) is not type(q):
        raise NotImplementedError(
            "kl_divergence: The cross KL-divergence between different exponential families cannot "
            "be computed"
        )
    p_params = [x.detach().requires_grad_() for x in p._natural_params]
    q_params = q._natural_params
    with taeda.enable_grad():
        log_normalizer = p._log_normalizer(*p_params)
        slopes = taeda.autograd.grad(log_normalizer.sum(), p_params, create_graph=True)
    result = q._log_normalizer(*q_params) - log_normalizer
    for a, b, slope in zip(p_params, q_params, slopes, strict=True):
        result = result - sum_rightmost((b - a) * slope, len(q.event_shape))
    return result


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Bernoulli, q: Bernoulli) -> Divergence:
    one = p.probs * (F.softplus(-q.logits) - F.softplus(-p.logits))
    one = taeda.where(q.probs == 0, math.inf, one)
    one = taeda.where(p.probs == 0, 0.0, one)
    zero = (1 - p.probs) * (F.softplus(q.logits) - F.softplus(p.logits))
    zero = taeda.where(q.probs == 1, math.inf, zero)
    return one + taeda.where(p.probs == 1, 0.0, zero)


@register_kl(Beta, Beta)
def _beta(p: Beta, q: Beta) -> Divergence:
    return kl_divergence(p._dirichlet, q._dirichlet)


@register_kl(Binomial, Binomial)
def _binomial(p: Binomial, q: Binomial) -> Divergence:
    if (p.total_count < q.total_count).any():
        raise NotImplementedError(
            "kl_divergence: KL between Binomials where q.total_count > p.total_count is not "
            "implemented"
        )
    each = p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p()
    return taeda.where(p.total_count > q.total_count, math.inf, p.total_count * each)


@register_kl(Categorical, Categorical)
def _categorical(p: Categorical, q: Categorical) -> Divergence:
    t = p.probs * (p.logits - q.logits)
    t = taeda.where(q.probs == 0, math.inf, t)
    return taeda.where(p.probs == 0, 0.0, t).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot_categorical(p: OneHotCategorical, q: OneHotCategorical) -> Divergence:
    return _categorical(p._categorical, q._categorical)


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Cauchy, q: Cauchy) -> Divergence:
    # Chyzak, Nielsen: A closed-form formula for the divergence between Cauchy distributions, 2019.
    distance = (p.scale + q.scale).square() + (p.loc - q.loc).square()
    return distance.log() - (4 * p.scale * q.scale).log()


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p: ContinuousBernoulli, q: ContinuousBernoulli) -> Divergence:
    at_p = p._log_norm() + taeda.log1p(-p.probs)
    at_q = q._log_norm() + taeda.log1p(-q.probs)
    return p.mean * (p.logits - q.logits) + at_p - at_q


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Dirichlet, q: Dirichlet) -> Divergence:
    a, b = p.concentration, q.concentration
    total = a.sum(-1)
    beta_a = total.lgamma() - a.lgamma().sum(-1)
    beta_b = b.sum(-1).lgamma() - b.lgamma().sum(-1)
    expected = a.digamma() - total.digamma().unsqueeze(-1)
    return beta_a - beta_b + ((a - b) * expected).sum(-1)


@register_kl(Exponential, Exponential)
def _exponential(p: Exponential, q: Exponential) -> Divergence:
    ratio = q.rate / p.rate
    return -ratio.log() + ratio - 1


@register_kl(Gamma, Gamma)
def _gamma(p: Gamma, q: Gamma) -> Divergence:
    a, b = p.concentration, q.concentration
    return (
        b * (p.rate / q.rate).log()
        + taeda.lgamma(b)
        - taeda.lgamma(a)
        + (a - b) * taeda.digamma(a)
        + (q.rate - p.rate) * (a / p.rate)
    )


@register_kl(Geometric, Geometric)
def _geometric(p: Geometric, q: Geometric) -> Divergence:
    return -p.entropy() - taeda.log1p(-q.probs) / p.probs - q.logits


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Gumbel, q: Gumbel) -> Divergence:
    ratio, shift = p.scale / q.scale, (q.loc - p.loc) / q.scale
    smoothed = (shift + (1 + ratio).lgamma()).exp()
    return -ratio.log() - shift + ratio * EULER + smoothed - (1 + EULER)


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p: HalfNormal, q: HalfNormal) -> Divergence:
    return _normal(p.base_dist, q.base_dist)


@register_kl(Laplace, Laplace)
def _laplace(p: Laplace, q: Laplace) -> Divergence:
    ratio, distance = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + distance / q.scale + ratio * taeda.exp(-distance / p.scale) - 1


@register_kl(Normal, Normal)
def _normal(p: Normal, q: Normal) -> Divergence:
    ratio = (p.scale / q.scale).square()
    shift = ((p.loc - q.loc) / q.scale).square()
    return 0.5 * (ratio + shift - 1 - ratio.log())


@register_kl(Pareto, Pareto)
def _pareto(p: Pareto, q: Pareto) -> Divergence:
    ratio = q.alpha / p.alpha
    result = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return taeda.where(p.scale < q.scale, math.inf, result)


@register_kl(Poisson, Poisson)
def _poisson(p: Poisson, q: Poisson) -> Divergence:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Uniform, Uniform)
def _uniform(p: Uniform, q: Uniform) -> Divergence:
    result = ((q.high - q.low) / (p.high - p.low)).log()
    return taeda.where((q.low > p.low) | (q.high < p.high), math.inf, result)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: TransformedDistribution, q: TransformedDistribution) -> Divergence:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError(
            "kl_divergence: KL between distributions whose transforms or event shapes differ is "
            "not implemented"
        )
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Independent, Independent)
def _independent(p: Independent, q: Independent) -> Divergence:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError(
            "kl_divergence: KL between Independents of different reinterpreted_batch_ndims is not "
            "implemented"
        )
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


def _covariance_root(p: Any) -> Tensor:
    """A matrix whose product with its transpose is the covariance."""
    if isinstance(p, MultivariateNormal):
        return p._unbroadcasted_scale_tril
    return taeda.cat([p.cov_factor, taeda.diag_embed(p.cov_diag.sqrt())], -1)


def _half_log_det(p: Any) -> Tensor:
    if isinstance(p, MultivariateNormal):
        return half_log_det(p._unbroadcasted_scale_tril)
    return 0.5 * p._log_det()


def _multivariate_normals(p: Any, q: Any) -> Divergence:
    if p.event_shape != q.event_shape:
        raise ValueError(
            "kl_divergence: KL-divergence between two multivariate normals with different event "
            "shapes cannot be computed"
        )
    batch = taeda.broadcast_shapes(p.batch_shape, q.batch_shape)
    factor, root = q.scale_tril, _covariance_root(p)
    factor = factor.expand(batch + factor.shape[-2:])
    root = root.expand(batch + root.shape[-2:])
    spread = taeda.linalg.solve_triangular(factor, root, upper=False).square().sum((-2, -1))
    distance = squared_distance(factor, (q.loc - p.loc).expand(batch + p.event_shape))
    change = _half_log_det(q) - _half_log_det(p)
    return change + 0.5 * (spread + distance - p.event_shape[0])


for _type_p in (MultivariateNormal, LowRankMultivariateNormal):
    for _type_q in (MultivariateNormal, LowRankMultivariateNormal):
        register_kl(_type_p, _type_q)(_multivariate_normals)
