"""Every transform and constraint of the distributions beside PyTorch's."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="the conformance suite compares with PyTorch")

import taeda  # noqa: E402
from tests.conformance.bridge import tensor_to_taeda, to_torch  # noqa: E402

DTYPE = torch.float64


def vector(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(4), dtype=DTYPE)


def library_tensor(library, *values):
    return library.tensor(list(values), dtype=library.float64)


# Name -> (how to make it from the module, a value).
TRANSFORMS = {
    "Abs": (lambda d, lib: d.AbsTransform(), vector(3)),
    "Affine": (lambda d, lib: d.AffineTransform(1.5, -2.0), vector(2, 3)),
    "Affine-tensor": (
        lambda d, lib: d.AffineTransform(0.0, library_tensor(lib, 1.0, -2.0, 3.0), event_dim=1),
        vector(2, 3),
    ),
    "Cat": (
        lambda d, lib: d.CatTransform(
            [d.ExpTransform(), d.TanhTransform()], dim=-1, lengths=[1, 2]
        ),
        vector(2, 3),
    ),
    "Compose": (
        lambda d, lib: d.ComposeTransform([d.AffineTransform(1.0, 2.0), d.SigmoidTransform()]),
        vector(2, 3),
    ),
    "Compose-vector": (
        lambda d, lib: d.ComposeTransform(
            [d.AffineTransform(1.0, 2.0), d.StickBreakingTransform()]
        ),
        vector(2, 3),
    ),
    "CorrCholesky": (lambda d, lib: d.CorrCholeskyTransform(), vector(2, 6)),
    "Cumulative": (
        lambda d, lib: d.CumulativeDistributionTransform(
            d.Normal(library_tensor(lib, 0.5), library_tensor(lib, 2.0))
        ),
        vector(2, 3),
    ),
    "Exp": (lambda d, lib: d.ExpTransform(), vector(2, 3)),
    "Exp-inverse": (lambda d, lib: d.ExpTransform().inv, vector(2, 3).exp()),
    "Independent": (lambda d, lib: d.IndependentTransform(d.ExpTransform(), 1), vector(2, 3)),
    "LowerCholesky": (lambda d, lib: d.LowerCholeskyTransform(), vector(2, 3, 3)),
    "PositiveDefinite": (lambda d, lib: d.PositiveDefiniteTransform(), vector(2, 3, 3)),
    "Power": (
        lambda d, lib: d.PowerTransform(library_tensor(lib, 2.0, 0.5, -1.0)),
        vector(2, 3).exp(),
    ),
    "Reshape": (lambda d, lib: d.ReshapeTransform((2, 3), (6,)), vector(4, 2, 3)),
    "Sigmoid": (lambda d, lib: d.SigmoidTransform(), vector(2, 3)),
    "Softmax": (lambda d, lib: d.SoftmaxTransform(), vector(2, 3)),
    "Softplus": (lambda d, lib: d.SoftplusTransform(), vector(2, 3)),
    "Stack": (
        lambda d, lib: d.StackTransform([d.ExpTransform(), d.SigmoidTransform()], dim=0),
        vector(2, 3),
    ),
    "StickBreaking": (lambda d, lib: d.StickBreakingTransform(), vector(2, 3)),
    "Tanh": (lambda d, lib: d.TanhTransform(), vector(2, 3)),
    "identity": (lambda d, lib: d.identity_transform, vector(2, 3)),
}


def outcome(function):
    try:
        return function()
    except (NotImplementedError, ValueError) as error:
        return type(error)


def compare(ours, theirs):
    if isinstance(theirs, torch.Tensor):
        torch.testing.assert_close(to_torch(ours), theirs, rtol=1e-9, atol=1e-10)
    elif isinstance(theirs, (tuple, torch.Size)):
        assert tuple(ours) == tuple(theirs)
    elif not isinstance(theirs, type):
        assert ours == theirs
    else:
        assert ours is theirs


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms(name):
    make, value = TRANSFORMS[name]
    ours, theirs = make(taeda.distributions, taeda), make(torch.distributions, torch)
    x = tensor_to_taeda(value)
    y, their_y = ours(x), theirs(value)
    compare(y, their_y)
    compare(outcome(lambda: ours.inv(y)), outcome(lambda: theirs.inv(their_y)))
    compare(
        outcome(lambda: ours.log_abs_det_jacobian(x, y)),
        outcome(lambda: theirs.log_abs_det_jacobian(value, their_y)),
    )
    assert ours.bijective == theirs.bijective
    compare(outcome(lambda: ours.sign), outcome(lambda: theirs.sign))
    compare(ours.forward_shape(x.shape), theirs.forward_shape(value.shape))
    compare(ours.inverse_shape(y.shape), theirs.inverse_shape(their_y.shape))
    assert ours.domain.event_dim == theirs.domain.event_dim
    assert ours.codomain.event_dim == theirs.codomain.event_dim
    compare(ours.codomain.check(y), theirs.codomain.check(their_y))
    compare(ours.domain.check(x), theirs.domain.check(value))
    if name != "CorrCholesky":  # PyTorch's is equal only to itself
        assert (ours == make(taeda.distributions, taeda)) == (
            theirs == make(torch.distributions, torch)
        )
    cached = outcome(lambda: ours.with_cache(1))
    if not isinstance(cached, type) and name not in ("identity", "Exp-inverse"):
        z = cached(x)
        assert cached.inv(z) is x or name.startswith(("Compose", "Cat", "Stack"))
        assert cached.inv.inv is cached


CONSTRAINTS = {
    "boolean": lambda c: c.boolean,
    "one_hot": lambda c: c.one_hot,
    "nonnegative_integer": lambda c: c.nonnegative_integer,
    "positive_integer": lambda c: c.positive_integer,
    "integer_interval": lambda c: c.integer_interval(-1, 2),
    "real": lambda c: c.real,
    "real_vector": lambda c: c.real_vector,
    "positive": lambda c: c.positive,
    "nonnegative": lambda c: c.nonnegative,
    "greater_than": lambda c: c.greater_than(0.5),
    "greater_than_eq": lambda c: c.greater_than_eq(0.5),
    "less_than": lambda c: c.less_than(0.5),
    "multinomial": lambda c: c.multinomial(2),
    "unit_interval": lambda c: c.unit_interval,
    "interval": lambda c: c.interval(-1.0, 0.5),
    "half_open_interval": lambda c: c.half_open_interval(0.0, 1.0),
    "simplex": lambda c: c.simplex,
    "lower_triangular": lambda c: c.lower_triangular,
    "lower_cholesky": lambda c: c.lower_cholesky,
    "corr_cholesky": lambda c: c.corr_cholesky,
    "square": lambda c: c.square,
    "symmetric": lambda c: c.symmetric,
    "positive_semidefinite": lambda c: c.positive_semidefinite,
    "positive_definite": lambda c: c.positive_definite,
    "independent": lambda c: c.independent(c.positive, 2),
    "cat": lambda c: c.cat([c.positive, c.real], -1, [1, 2]),
    "stack": lambda c: c.stack([c.positive, c.real, c.unit_interval], -1),
}
VALUES = [
    torch.tensor([[0.0, 1.0, 0.0], [0.5, 0.25, 0.25], [1.0, 0.5, -1.0]]),
    torch.tensor([[1.0, 0.0, 0.0], [0.6, 0.8, 0.0], [0.0, 0.0, 1.0]]),
    torch.tensor([[2.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, float("nan")]]),
    torch.tensor([[2.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 3.0]]),
    torch.tensor([[2.0, 0.0, 1.0], [0.0, -1.0, 0.0], [1.0, 0.0, 0.5]]),
]


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_constraints(name):
    ours = CONSTRAINTS[name](taeda.distributions.constraints)
    theirs = CONSTRAINTS[name](torch.distributions.constraints)
    assert ours.event_dim == theirs.event_dim and ours.is_discrete == theirs.is_discrete
    assert repr(ours) == repr(theirs)
    for value in VALUES:
        if "definite" in name and value.isnan().any():
            continue
        compare(ours.check(tensor_to_taeda(value)), theirs.check(value))


@pytest.mark.parametrize("registry", ["biject_to", "transform_to"])
@pytest.mark.parametrize("name", CONSTRAINTS)
def test_transforms_to_constraints(registry, name):
    def transform(library):
        d = library.distributions
        return getattr(d, registry)(CONSTRAINTS[name](d.constraints))

    ours, theirs = outcome(lambda: transform(taeda)), outcome(lambda: transform(torch))
    if isinstance(theirs, type):
        assert ours is theirs
        return
    value = vector(3, 3)
    compare(ours(tensor_to_taeda(value)), theirs(value))
