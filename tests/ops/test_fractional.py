"""Pooling over windows at random places, against PyTorch with the same samples."""

from __future__ import annotations

import math

import numpy as np
import pytest

import taeda
from taeda.autograd import gradcheck, gradgradcheck

F = taeda.nn.functional
CASES = [
    (2, (2, 3, 9, 11), (2, 3), (4, 5)), (2, (1, 1, 3, 3), (3, 3), (1, 1)), (2, (2, 2, 7, 8), (1, 2), (7, 1)),
    (3, (2, 2, 6, 7, 8), (2, 3, 2), (3, 2, 4)), (3, (1, 2, 4, 4, 5), (2, 2, 2), (2, 1, 2)),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("rank", "shape", "kernel", "out"), CASES)
def test_windows(rank, shape, kernel, out, dtype):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    a = rng.standard_normal(shape).astype(dtype)
    samples = rng.random((*shape[:2], rank)).astype(dtype)
    samples.flat[0] = 0
    x, y = taeda.tensor(a, requires_grad=True), torch.tensor(a, requires_grad=True)
    name = f"fractional_max_pool{rank}d"
    args = {"output_size": out, "return_indices": True}
    got, places = getattr(F, name)(x, kernel, _random_samples=taeda.tensor(samples), **args)
    want, expected = getattr(torch.nn.functional, name)(
        y, kernel, _random_samples=torch.tensor(samples), **args
    )
    np.testing.assert_array_equal(got.detach().numpy(), want.detach().numpy())
    np.testing.assert_array_equal(places.numpy(), expected.numpy())
    (got * got).sum().backward()
    (want * want).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy(), rtol=1e-6)
    turned = taeda.tensor(a).mT.contiguous().mT  # the same in another order of memory
    again = getattr(F, name)(turned, kernel, _random_samples=taeda.tensor(samples), **args)
    assert again[0].equal(got.detach())
    assert again[1].equal(places)


def test_derivatives():
    x = taeda.tensor(np.random.default_rng(1).permutation(60).reshape(1, 2, 5, 6) * 1.0)
    x.requires_grad_()
    u = taeda.rand(1, 2, 2, dtype=taeda.float64)
    f = lambda x: F.fractional_max_pool2d(x, 2, output_size=3, _random_samples=u)  # noqa: E731
    assert gradcheck(f, (x,))
    assert gradgradcheck(f, (x,))


def test_special_values_and_refusals():
    x = taeda.tensor([[[1.0, math.nan, 3], [4, 5, 6], [1, 2, -math.inf]]])
    half = taeda.full((1, 1, 2), 0.5)
    got = F.fractional_max_pool2d(x, 2, output_size=2, _random_samples=half)
    assert got.isnan().tolist() == [[[True, True], [False, False]]]
    assert F.fractional_max_pool2d(x[:0][None], 2, output_size=2).shape == (1, 0, 2, 2)
    low = taeda.full((1, 3, 3), -math.inf)
    assert (F.fractional_max_pool2d(low, 2, output_size=2) == -math.inf).all()
    assert F.fractional_max_pool2d(x.bfloat16(), 2, output_size=2).dtype == taeda.bfloat16
    for samples in (half * math.nan, half * math.inf, half * -1e30):
        with pytest.raises(RuntimeError, match="out of its plane"):
            F.fractional_max_pool2d(x, 2, output_size=2, _random_samples=samples)
    with pytest.raises(NotImplementedError):
        taeda._C.ops._fractional_max_pool(x[None].nan_to_num().long(), half.long(), [2, 2], [2, 2])
    for kernel, out in (([4, 1], [1, 1]), ([2, 2], [3, 1]), ([0, 1], [1, 1]), ([2], [2]),
                        ([2**62, 2], [2**62, 2])):  # fmt: skip
        with pytest.raises(RuntimeError):
            taeda._C.ops._fractional_max_pool(x[None], half, kernel, out)


def test_one_factor_for_many_normal_vectors():
    """`log_prob` of one Cholesky factor, of a batch of them, and of values with more dimensions."""
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    factor = np.tril(rng.standard_normal((4, 4))) * 0.3 + np.eye(4)
    for batch, values in (
        ((), ()),
        ((), (5,)),
        ((), (2, 5)),
        ((3,), (3,)),
        ((3,), (5, 3)),
        ((), (1,)),
    ):
        loc, value = rng.standard_normal((*batch, 4)), rng.standard_normal((*values, 4))
        for one in (factor, np.broadcast_to(factor, (*batch, 4, 4)).copy()):
            got, want = (
                t.distributions.MultivariateNormal(
                    t.tensor(loc), scale_tril=t.tensor(one)
                ).log_prob(t.tensor(value))
                for t in (taeda, torch)
            )
            assert got.shape == want.shape
            np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-10)
