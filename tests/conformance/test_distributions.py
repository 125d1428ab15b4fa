"""Every distribution beside PyTorch's: densities, moments, draws, gradients, divergences, errors."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the conformance suite compares with PyTorch")

import taeda  # noqa: E402
import taeda.distributions as ours_module  # noqa: E402
from tests.conformance.bridge import tensor_to_taeda, to_torch  # noqa: E402

DTYPE = torch.float64


def t(*values: Any) -> Any:
    return torch.tensor(list(values), dtype=DTYPE)


def spd(n: int, seed: int, *batch: int) -> Any:
    root = torch.randn(*batch, n, n, generator=torch.Generator().manual_seed(seed), dtype=DTYPE)
    return root @ root.mT + torch.eye(n, dtype=DTYPE)


COV = spd(3, 0, 2)
LOC = torch.arange(6.0, dtype=DTYPE).reshape(2, 3) / 5
P2 = t(0.3, 0.8)
SIMPLEX = torch.tensor([[0.1, 0.2, 0.7], [0.5, 0.25, 0.25]], dtype=DTYPE)

# Name -> the distribution's class and its parameters.
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "Bernoulli-probs": ("Bernoulli", {"probs": t(0.3, 0.8, 0.5)}),
    "Bernoulli-logits": ("Bernoulli", {"logits": t(-1.0, 2.0)}),
    "Beta": ("Beta", {"concentration1": t(0.5, 2.0, 5.0), "concentration0": t(3.0, 0.7, 4.0)}),
    "Binomial-probs": ("Binomial", {"total_count": 10, "probs": P2}),
    "Binomial-logits": ("Binomial", {"total_count": t(5.0, 5.0), "logits": t(-1.0, 0.5)}),
    "Categorical-probs": ("Categorical", {"probs": SIMPLEX}),
    "Categorical-logits": ("Categorical", {"logits": LOC}),
    "Cauchy": ("Cauchy", {"loc": t(0.0, 1.0), "scale": t(1.0, 2.0)}),
    "Chi2": ("Chi2", {"df": t(1.0, 3.5)}),
    "ContinuousBernoulli": ("ContinuousBernoulli", {"probs": t(0.1, 0.4995, 0.9)}),
    "ContinuousBernoulli-logits": ("ContinuousBernoulli", {"logits": t(-1.0, 0.0, 2.0)}),
    "Dirichlet": ("Dirichlet", {"concentration": t(0.5, 2.0, 3.0)}),
    "Dirichlet-batch": ("Dirichlet", {"concentration": SIMPLEX * 9}),
    "Exponential": ("Exponential", {"rate": t(0.5, 2.0)}),
    "FisherSnedecor": ("FisherSnedecor", {"df1": t(3.0, 7.0, 5.0), "df2": t(5.0, 3.0, 1.5)}),
    "Gamma": ("Gamma", {"concentration": t(0.3, 1.0, 40.0), "rate": t(2.0, 0.5, 3.0)}),
    "GeneralizedPareto": (
        "GeneralizedPareto",
        {  # PyTorch's compares with a float32 zero
            "loc": t(0.0, 1.0, 2.0).float(),
            "scale": t(1.0, 2.0, 0.5).float(),
            "concentration": t(-0.3, 0.0, 0.4).float(),
        },
    ),
    "Geometric-probs": ("Geometric", {"probs": P2}),
    "Geometric-logits": ("Geometric", {"logits": t(-1.0, 0.5)}),
    "Gumbel": ("Gumbel", {"loc": t(0.0, 1.0), "scale": t(1.0, 2.0)}),
    "HalfCauchy": ("HalfCauchy", {"scale": t(1.0, 2.0)}),
    "HalfNormal": ("HalfNormal", {"scale": t(1.0, 2.0)}),
    "InverseGamma": ("InverseGamma", {"concentration": t(0.7, 3.0), "rate": t(1.0, 2.0)}),
    "Kumaraswamy": ("Kumaraswamy", {"concentration1": t(0.7, 3.0), "concentration0": t(2.0, 1.5)}),
    "Laplace": ("Laplace", {"loc": t(0.0, 1.0), "scale": t(1.0, 2.0)}),
    "LogNormal": ("LogNormal", {"loc": t(0.0, 1.0), "scale": t(1.0, 0.5)}),
    "LogisticNormal": ("LogisticNormal", {"loc": LOC, "scale": LOC + 0.5}),
    "LowRankMultivariateNormal": (
        "LowRankMultivariateNormal",
        {"loc": LOC, "cov_factor": COV[..., :2], "cov_diag": LOC + 0.5},
    ),
    "Multinomial": ("Multinomial", {"total_count": 6, "probs": SIMPLEX}),
    "MultivariateNormal-cov": ("MultivariateNormal", {"loc": LOC, "covariance_matrix": COV}),
    "MultivariateNormal-prec": ("MultivariateNormal", {"loc": LOC, "precision_matrix": COV}),
    "MultivariateNormal-tril": (
        "MultivariateNormal",
        {"loc": LOC, "scale_tril": torch.linalg.cholesky(COV[0])},
    ),
    "NegativeBinomial": ("NegativeBinomial", {"total_count": t(3.0, 0.5), "probs": P2}),
    "NegativeBinomial-logits": ("NegativeBinomial", {"total_count": 4, "logits": t(-1.0, 0.5)}),
    "Normal": ("Normal", {"loc": t(0.0, 1.0), "scale": t(1.0, 2.0)}),
    "Normal-numbers": ("Normal", {"loc": 0.5, "scale": 2.0}),
    "OneHotCategorical": ("OneHotCategorical", {"probs": SIMPLEX}),
    "OneHotCategoricalStraightThrough": ("OneHotCategoricalStraightThrough", {"probs": SIMPLEX}),
    "Pareto": ("Pareto", {"scale": t(1.0, 2.0, 0.5), "alpha": t(0.5, 1.5, 3.0)}),
    "Poisson": ("Poisson", {"rate": t(0.5, 20.0)}),
    "RelaxedBernoulli": ("RelaxedBernoulli", {"temperature": t(0.7), "probs": P2}),
    "RelaxedOneHotCategorical": (
        "RelaxedOneHotCategorical",
        {"temperature": t(0.7), "probs": SIMPLEX},
    ),
    "StudentT": ("StudentT", {"df": t(0.8, 1.5, 7.0), "loc": t(0.0, 1.0, 2.0), "scale": 2.0}),
    "Uniform": ("Uniform", {"low": t(-1.0, 0.2), "high": t(2.0, 0.9)}),
    "VonMises": ("VonMises", {"loc": t(0.0, 1.0), "concentration": t(0.5, 30.0)}),
    "Wishart-cov": ("Wishart", {"df": t(4.0, 6.5), "covariance_matrix": COV}),
    "Wishart-prec": ("Wishart", {"df": t(3.5, 9.0), "precision_matrix": COV}),
    "Wishart-tril": ("Wishart", {"df": t(5.0), "scale_tril": torch.linalg.cholesky(COV)}),
    "LKJCholesky": ("LKJCholesky", {"dim": 3, "concentration": t(0.5, 2.0)}),
    "Weibull": ("Weibull", {"scale": t(1.0, 2.0), "concentration": t(0.7, 3.0)}),
}
MISSING: set[str] = set()


def convert(value: Any, requires_grad: bool = False) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    made = tensor_to_taeda(value)
    return made.requires_grad_(requires_grad)


def make(name: str, most: int | None = None) -> tuple[Any, Any, list, list]:
    """The distribution in both libraries, and the parameters that can have gradients.

    ``most`` cuts the batch of a distribution of numbers.
    """
    kind, options = CASES[name]
    if most and kind not in ("Dirichlet", "Categorical", "OneHotCategorical"):
        options = {
            k: v[:most] if isinstance(v, torch.Tensor) and v.dim() == 1 else v
            for k, v in options.items()
        }
    theirs = {
        k: v.clone().requires_grad_() if isinstance(v, torch.Tensor) else v
        for k, v in options.items()
    }
    ours = {k: convert(v, True) for k, v in options.items()}
    leaves = [k for k, v in options.items() if isinstance(v, torch.Tensor)]
    return (
        getattr(ours_module, kind)(**ours),
        getattr(torch.distributions, kind)(**theirs),
        [ours[k] for k in leaves],
        [theirs[k] for k in leaves],
    )


def assert_close(ours: Any, theirs: Any, rtol: float = 1e-9, atol: float = 1e-11) -> None:
    torch.testing.assert_close(
        to_torch(ours).to(theirs.dtype), theirs.detach(), rtol=rtol, atol=atol, equal_nan=True
    )


def outcome(function: Any) -> Any:
    """The value, or the type of the exception."""
    try:
        return function()
    except (NotImplementedError, ValueError, AttributeError, RuntimeError) as error:
        return type(error)


def drawn(theirs: Any, shape: tuple = ()) -> Any:
    """A draw of PyTorch's distribution. Its Wishart takes every draw for singular, draws again, and
    warns; here is the first one."""
    if isinstance(theirs, torch.distributions.Wishart):
        return theirs._bartlett_sampling(torch.Size(shape))
    return theirs.rsample(shape) if theirs.has_rsample else theirs.sample(shape)


def values_for(theirs: Any) -> Any:
    torch.manual_seed(11)
    with torch.no_grad():
        return drawn(theirs, (5,))


def compare(ours: Any, theirs: Any, **tolerance: float) -> None:
    if isinstance(theirs, type):
        assert ours is theirs
    else:
        assert not isinstance(ours, type), ours
        assert_close(ours, theirs, **tolerance)


# The von Mises density's Bessel functions are polynomials good to 1e-7.
LOOSE = {
    "VonMises": {"rtol": 1e-6, "atol": 1e-7},
    "GeneralizedPareto": {"rtol": 2e-5, "atol": 1e-5},
    "Multinomial": {"rtol": 1e-6, "atol": 1e-7},  # PyTorch's entropy is in float32 in parts
    "Normal-numbers": {"rtol": 1e-5, "atol": 1e-6},
}


def test_what_is_missing():
    kinds = {
        n for n in torch.distributions.__all__ if isinstance(getattr(torch.distributions, n), type)
    }
    assert {n for n in kinds if not hasattr(ours_module, n)} == MISSING
    assert {kind for kind, _ in CASES.values()} | MISSING | {
        "Distribution", "ExponentialFamily", "Independent", "MixtureSameFamily",
        "TransformedDistribution",
    } | {n for n in kinds if n.endswith("Transform")} == kinds  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_shapes_and_moments(name):
    ours, theirs, *_ = make(name)
    assert tuple(ours.batch_shape) == tuple(theirs.batch_shape)
    assert tuple(ours.event_shape) == tuple(theirs.event_shape)
    assert ours.has_rsample == theirs.has_rsample
    assert ours.has_enumerate_support == theirs.has_enumerate_support
    assert repr(ours.support) == repr(theirs.support).replace(
        "torch.", "taeda."
    ) or "tensor" in repr(theirs.support)
    for what in ("mean", "variance", "stddev", "mode"):
        if (name, what) == ("Kumaraswamy", "mode"):
            continue  # PyTorch's is nan where the mode is inside; see below
        compare(
            outcome(lambda w=what: getattr(ours, w)),
            outcome(lambda w=what: getattr(theirs, w)),
            **LOOSE.get(name, {}),
        )
    compare(outcome(ours.entropy), outcome(theirs.entropy), **LOOSE.get(name, {}))
    compare(outcome(ours.perplexity), outcome(theirs.perplexity), **LOOSE.get(name, {}))
    if theirs.has_enumerate_support:
        for expand in (True, False):
            assert_close(ours.enumerate_support(expand), theirs.enumerate_support(expand))


@pytest.mark.parametrize("name", CASES)
def test_log_prob_and_cdf_with_gradients(name):
    ours, theirs, our_leaves, their_leaves = make(name)
    tolerance = LOOSE.get(name, {"rtol": 1e-7, "atol": 1e-9})
    value = values_for(theirs)
    our_value = convert(value)
    mine, other = ours.log_prob(our_value), theirs.log_prob(value)
    assert_close(mine, other, **tolerance)
    if their_leaves:
        theirs_grads = torch.autograd.grad(other.sum(), their_leaves, allow_unused=True)
        our_grads = taeda.autograd.grad(mine.sum(), our_leaves, allow_unused=True)
        for a, b in zip(our_grads, theirs_grads, strict=True):
            assert (a is None) == (b is None)
            if b is not None:
                # What a Cholesky factor has above the diagonal is not used.
                lower = name == "Wishart-tril" and b.dim() > 1
                assert_close(a.tril() if lower else a, b.tril() if lower else b, **tolerance)
    compare(outcome(lambda: ours.cdf(our_value)), outcome(lambda: theirs.cdf(value)), **tolerance)
    shares = torch.rand(
        value.shape,
        dtype=value.dtype if value.is_floating_point() else DTYPE,
        generator=torch.Generator().manual_seed(1),
    )
    compare(
        outcome(lambda: ours.icdf(convert(shares))),
        outcome(lambda: theirs.icdf(shares)),
        **tolerance,
    )


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("shape", [(), (7,), (2, 3)], ids=str)
def test_draws_are_the_same_for_a_seed(name, shape):
    ours, theirs, *_ = make(name)
    torch.manual_seed(5)
    taeda.manual_seed(5)
    for _ in range(2):
        their_draw = drawn(theirs, shape) if "Wishart" in name else theirs.sample(shape)
        assert_close(ours.sample(shape), their_draw, **LOOSE.get(name, {}))


def reparametrised() -> list:
    return [
        n for n, (kind, o) in CASES.items() if getattr(torch.distributions, kind)(**o).has_rsample
    ]


@pytest.mark.parametrize("name", reparametrised())
def test_gradients_through_draws(name):
    ours, theirs, our_leaves, their_leaves = make(name)
    torch.manual_seed(5)
    taeda.manual_seed(5)
    a, b = ours.rsample((20,)), drawn(theirs, (20,))
    assert_close(a, b, **LOOSE.get(name, {}))
    if not their_leaves:
        return
    weights = torch.linspace(0.5, 1.5, b.numel(), dtype=b.dtype).reshape(b.shape)
    theirs_grads = torch.autograd.grad((b * weights).sum(), their_leaves, allow_unused=True)
    our_grads = taeda.autograd.grad((a * convert(weights)).sum(), our_leaves, allow_unused=True)
    # PyTorch's derivatives of gamma and beta numbers by their shapes are fits good to 3 digits.
    approximate = any(
        s in name for s in ("Gamma", "Beta", "Dirichlet", "Chi2", "Student", "Fisher", "Wishart")
    )
    rtol = 5e-3 if approximate else LOOSE.get(name, {}).get("rtol", 1e-7)
    for x, y in zip(our_grads, theirs_grads, strict=True):
        assert (x is None) == (y is None)
        if y is not None:
            assert_close(x, y, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("name", CASES)
def test_expanding(name):
    ours, theirs, *_ = make(name)
    value = values_for(theirs)
    log_prob = theirs.log_prob(value)  # lazily computed parameters are expanded too
    ours.log_prob(convert(value))
    batch = (4, *theirs.batch_shape)
    ours, theirs = ours.expand(batch), theirs.expand(batch)
    assert tuple(ours.batch_shape) == tuple(theirs.batch_shape)
    assert tuple(ours.sample((2,)).shape) == tuple(drawn(theirs, (2,)).shape)
    assert_close(
        ours.log_prob(convert(value[:1])), theirs.log_prob(value[:1]), rtol=1e-6, atol=1e-7
    )
    del log_prob


PAIRS = sorted(
    {(a.__name__, b.__name__) for a, b in torch.distributions.kl._KL_REGISTRY}
    - {("ExponentialFamily",) * 2, ("Independent",) * 2, ("TransformedDistribution",) * 2}
)


@pytest.mark.parametrize(("p", "q"), PAIRS, ids=[f"{a}-{b}" for a, b in PAIRS])
def test_divergences(p, q):
    def named(kind: str) -> list:
        return [n for n in CASES if CASES[n][0] == kind]

    compared = 0
    for a, b in itertools.product(named(p), named(q)):
        our_p, their_p, *_ = make(a, 2)
        our_q, their_q, *_ = make(b, 2)
        try:
            expected = torch.distributions.kl_divergence(their_p, their_q)
        except (RuntimeError, NotImplementedError):  # batches that do not go together
            continue
        compared += 1
        result = ours_module.kl_divergence(our_p, our_q)
        expected = expected.expand(torch.broadcast_shapes(expected.shape, result.shape))
        # PyTorch holds pi in float32 in some of them.
        assert_close(result.expand(expected.shape), expected, rtol=2e-6, atol=2e-7)
    assert compared


def test_divergences_of_composed_distributions():
    results = []
    for library, c in ((taeda, convert), (torch, lambda v: v)):
        d = library.distributions
        p = d.Independent(d.Normal(c(LOC), c(LOC + 1)), 1)
        q = d.Independent(d.Normal(c(LOC * 2), c(LOC + 2)), 1)
        logs = d.LogNormal(c(LOC), c(LOC + 1)), d.LogNormal(c(LOC * 2), c(LOC + 2))
        gammas = d.Chi2(c(t(1.0, 3.0))), d.Gamma(c(t(2.0, 3.0)), c(t(1.0, 0.5)))
        results.append([d.kl_divergence(p, q), d.kl_divergence(*logs), d.kl_divergence(*gammas)])
        with pytest.raises(NotImplementedError):
            d.kl_divergence(p, gammas[0])
    for a, b in zip(*results, strict=True):
        assert_close(a, b)


def test_the_mode_of_kumaraswamy_is_the_highest_point():
    ours, _, _, _ = make("Kumaraswamy")
    mode = ours.mode.detach()
    assert mode[0].isnan()  # at an end of the interval
    one = ours_module.Kumaraswamy(*(p[1] for p in (ours.concentration1, ours.concentration0)))
    around = [one.log_prob(mode[1] + d).item() for d in (-1e-3, 0.0, 1e-3)]
    assert around[1] == max(around)


def test_mixtures():
    found = []
    for library, c in ((taeda, convert), (torch, lambda v: v)):
        d = library.distributions
        library.manual_seed(3)
        plain = d.MixtureSameFamily(d.Categorical(c(SIMPLEX)), d.Normal(c(LOC), c(LOC + 1)))
        vectors = d.MixtureSameFamily(
            d.Categorical(c(t(0.3, 0.7))), d.Independent(d.Normal(c(LOC), c(LOC + 1)), 1)
        )
        at = c(t(0.3, 0.8))
        found.append(
            [
                plain.sample((4,)), plain.mean, plain.variance, plain.log_prob(at), plain.cdf(at),
                vectors.sample((4,)), vectors.mean, vectors.variance, vectors.log_prob(c(LOC[0])),
                plain.expand((3, 2)).log_prob(at),
            ]
        )  # fmt: skip
    for a, b in zip(*found, strict=True):
        assert_close(a, b)


INVALID = {
    "Normal-scale": lambda d, x: d.Normal(x(0.0), x(-1.0)),
    "Normal-nan": lambda d, x: d.Normal(x(float("nan")), x(1.0)),
    "Normal-string": lambda d, x: d.Normal("a", x(1.0)),
    "Normal-value": lambda d, x: d.Normal(x(0.0), x(1.0)).log_prob(x(float("nan"))),
    "Normal-number": lambda d, x: d.Normal(x(0.0), x(1.0)).log_prob(1.0),
    "Normal-shape": lambda d, x: d.Normal(x(0.0, 1.0), x(1.0)).log_prob(x(1.0, 2.0, 3.0)),
    "Bernoulli-both": lambda d, x: d.Bernoulli(x(0.5), x(0.5)),
    "Bernoulli-none": lambda d, x: d.Bernoulli(),
    "Bernoulli-probs": lambda d, x: d.Bernoulli(x(1.5)),
    "Bernoulli-value": lambda d, x: d.Bernoulli(x(0.5)).log_prob(x(0.5)),
    "Categorical-scalar": lambda d, x: d.Categorical(x(0.5)[0]),
    "Categorical-negative": lambda d, x: d.Categorical(x(-0.5, 1.0)),
    "Categorical-value": lambda d, x: d.Categorical(x(0.5, 1.0)).log_prob(x(2.0)),
    "Uniform-order": lambda d, x: d.Uniform(x(1.0), x(0.0)),
    "Uniform-value": lambda d, x: d.Uniform(x(0.0), x(1.0)).log_prob(x(2.0)),
    "Dirichlet-scalar": lambda d, x: d.Dirichlet(x(1.0)[0]),
    "Dirichlet-value": lambda d, x: d.Dirichlet(x(1.0, 1.0)).log_prob(x(0.5, 0.6)),
    "Geometric-zero": lambda d, x: d.Geometric(x(0.0)),
    "MVN-none": lambda d, x: d.MultivariateNormal(x(0.0, 1.0)),
    "MVN-asymmetric": lambda d, x: d.MultivariateNormal(
        x(0.0, 1.0), x(1.0, 2.0, 0.0, 1.0).reshape(2, 2)
    ),
    "Independent-dims": lambda d, x: d.Independent(d.Normal(x(0.0), x(1.0)), 2),
    "Transformed-type": lambda d, x: d.TransformedDistribution(d.Normal(x(0.0), x(1.0)), 3),
    "Mixture-type": lambda d, x: d.MixtureSameFamily(
        d.Normal(x(0.0), x(1.0)), d.Normal(x(0.0), x(1.0))
    ),
    "Multinomial-value": lambda d, x: d.Multinomial(2, x(0.5, 0.5)).log_prob(x(2.0, 1.0)),
    "no-rsample": lambda d, x: d.Bernoulli(x(0.5)).rsample(),
    "no-cdf": lambda d, x: d.Poisson(x(0.5)).cdf(x(1.0)),
    "cache": lambda d, x: d.ExpTransform(cache_size=2),
    "register": lambda d, x: d.register_kl(3, 4),
    "biject": lambda d, x: d.biject_to(d.constraints.boolean),
    "validate": lambda d, x: d.Distribution.set_default_validate_args("x"),
}


@pytest.mark.parametrize("name", INVALID)
def test_errors(name):
    raised = []
    for library in (taeda, torch):
        with pytest.raises(Exception) as info:
            INVALID[name](
                library.distributions,
                lambda *v, lib=library: lib.tensor(list(v), dtype=lib.float64),
            )
        raised.append(info.type)
    assert raised[0] is raised[1]
