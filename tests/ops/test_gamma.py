"""Gamma, Dirichlet and binomial draws, and how they move with their parameters."""

from __future__ import annotations

import pytest

import taeda

gamma, gamma_grad = taeda._C.ops._standard_gamma, taeda._C.ops._standard_gamma_grad
dirichlet, dirichlet_grad = taeda._C.ops._sample_dirichlet, taeda._C.ops._dirichlet_grad


def double(*values):
    return taeda.tensor(list(values), dtype=taeda.float64)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_draws_are_pytorchs(dtype):
    torch = pytest.importorskip("torch")
    drawn = []
    for library in (taeda, torch):
        ops = taeda._C.ops if library is taeda else torch
        options = {"dtype": getattr(library, dtype)}
        alpha = library.tensor([0.0, 1e-3, 0.3, 0.9, 1.0, 2.5, 30.0, 4000.0] * 50, **options)
        count = library.tensor([0.0, 1.0, 5.0, 20.0, 40.0, 1000.0] * 50, **options)
        p = library.tensor([0.5, 0.0, 1.0, 0.3, 0.9, 0.2] * 50, **options)
        library.manual_seed(9)
        drawn.append(
            [
                ops._standard_gamma(alpha).tolist(),
                library.binomial(count, p).tolist(),
                ops._standard_gamma(alpha.reshape(8, 50).t()[::2]).tolist(),
            ]
        )
        # The sum that they are divided by is added up in another order: equal but for the last bit.
        rows = ops._sample_dirichlet(alpha[2:8].expand(20, 6))
        drawn[-1].append(rows.to(library.float32).tolist())
    assert drawn[0] == drawn[1]


def test_gamma_gradients_are_those_of_the_quantile():
    special = pytest.importorskip("scipy.special")
    for alpha in (1e-3, 0.05, 0.3, 1.0, 2.5, 10.0, 77.0, 499.0, 501.0, 2000.0, 1e5):
        for share in (1e-6, 1e-3, 0.1, 0.5, 0.9, 0.999, 1 - 1e-6):
            x, h = special.gammaincinv(alpha, share), alpha * 1e-4
            if not 1e-300 < x < 1e300:
                continue
            ends = [special.gammaincinv(alpha + k * h, share) for k in (-2, -1, 1, 2)]
            slope = (ends[0] - 8 * ends[1] + 8 * ends[2] - ends[3]) / (12 * h)
            found = gamma_grad(double(alpha), double(x)).item()
            assert found == pytest.approx(slope, rel=1e-6), (alpha, share)


def test_dirichlet_gradients_are_those_of_the_beta_quantile():
    special = pytest.importorskip("scipy.special")
    for alpha in (0.05, 0.3, 1.0, 2.5, 30.0, 500.0):
        for beta in (0.05, 0.4, 1.0, 3.0, 40.0, 1000.0):
            for share in (1e-4, 0.1, 0.5, 0.9, 0.9999):
                x, h = special.betaincinv(alpha, beta, share), alpha * 1e-4
                if not 1e-200 < x < 1 - 1e-6:
                    continue
                ends = [special.betaincinv(alpha + k * h, beta, share) for k in (-2, -1, 1, 2)]
                slope = (ends[0] - 8 * ends[1] + 8 * ends[2] - ends[3]) / (12 * h)
                found = dirichlet_grad(double(x), double(alpha), double(alpha + beta)).item()
                assert found * (1 - x) == pytest.approx(slope, rel=1e-5), (alpha, beta, share)


def test_gradients_flow_to_the_parameters():
    alpha = double(0.5, 3.0).requires_grad_()
    x = gamma(alpha.expand(4, 2))
    (grad,) = taeda.autograd.grad(x.sum(), alpha)
    assert grad.tolist() == gamma_grad(alpha.expand(4, 2), x).sum(0).tolist()
    y = dirichlet(alpha)
    rows = [taeda.autograd.grad(y[i], alpha, retain_graph=True)[0] for i in range(2)]
    assert (rows[0] + rows[1]).abs().max().item() < 1e-12  # the sum stays 1
    assert rows[0][0].item() > 0
    p = double(0.5).requires_grad_()
    (grad,) = taeda.autograd.grad(taeda.binomial(double(3.0), p).sum(), p)
    assert grad.tolist() == [0.0]


def test_shapes_and_unusual_values():
    assert gamma(taeda.zeros(0, 3)).shape == (0, 3)
    assert dirichlet(taeda.zeros(0, 3)).shape == (0, 3)
    assert gamma(taeda.tensor(2.0)).shape == ()
    assert taeda.binomial(taeda.full((3, 1), 4.0), taeda.full((2,), 0.5)).shape == (3, 2)
    assert taeda.binomial(double(float("nan"), 4.0), double(0.5, float("nan"))).isnan().all()
    assert gamma(taeda.tensor([float("nan")])).shape == (1,)
    assert gamma_grad(double(-1.0, 2.0), double(1.0, float("nan"))).isnan().all()
    assert dirichlet_grad(double(0.0, 1.0), double(1.0, 1.0), double(2.0, 2.0)).isfinite().all()
    half = taeda.binomial(taeda.full((9,), 4.0).bfloat16(), taeda.full((9,), 0.5).bfloat16())
    assert half.dtype is taeda.bfloat16 and ((half >= 0) & (half <= 4)).all()


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: gamma(taeda.tensor([1, 2])), NotImplementedError),
        (lambda: taeda.binomial(taeda.tensor([3]), taeda.tensor([0.5])), ValueError),
        (lambda: taeda.binomial(taeda.tensor([3.0]), double(0.5)), RuntimeError),
        (lambda: gamma_grad(taeda.tensor([1.0]), double(0.5)), RuntimeError),
        (lambda: dirichlet(taeda.tensor(1.0)), RuntimeError),
    ],
)
def test_errors(call, error):
    with pytest.raises(error):
        call()


@pytest.mark.parametrize("dtype", [taeda.float32, taeda.float64])
def test_dirichlet_stays_inside_the_simplex(dtype):
    draws = taeda.distributions.Beta(*taeda.full((2,), 1e-2, dtype=dtype)).sample((2000,))
    assert draws.min() > 0 and draws.max() < 1
    middle = (draws > 0.4) & (draws < 0.6)
    assert middle.double().mean() < 0.01
