"""Distances between rows, vector products and overlapping windows, against NumPy."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import taeda
from taeda.autograd import gradcheck, gradgradcheck

SHAPES = [((7, 5), (9, 5)), ((3, 16), (40, 16)), ((30, 70), (33, 70)), ((2, 5, 3), (2, 17, 3))]
SHAPES += [((40, 3, 3), (40, 4, 3)), ((2, 1, 8), (2, 4, 8)), ((1, 1), (2, 1)), ((30, 3), (100, 3))]


def random(*shape: int, dtype: str = "float64") -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("a,b", SHAPES, ids=str)
@pytest.mark.parametrize("p", [1.0, 2.0])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_distances(a: tuple[int, ...], b: tuple[int, ...], p: float, dtype: str) -> None:
    x, y = random(*a, dtype=dtype), random(*b, dtype=dtype)
    difference = x[..., :, None, :].astype("float64") - y[..., None, :, :]
    expected = np.linalg.norm(difference, ord=p, axis=-1)
    got = taeda.cdist(taeda.tensor(x), taeda.tensor(y), p=p).numpy()
    np.testing.assert_allclose(got, expected, rtol=2e-6 if dtype == "float32" else 1e-14)
    weight = random(*got.shape)
    leaf = taeda.tensor(x.astype("float64"), requires_grad=True)
    other = taeda.tensor(y.astype("float64"), requires_grad=True)
    (taeda.cdist(leaf, other, p=p) * taeda.tensor(weight)).sum().backward()
    far = expected[..., None] if p == 2 else 1
    slope = (difference / far if p == 2 else np.sign(difference)) * weight[..., None]
    np.testing.assert_allclose(leaf.grad.numpy(), slope.sum(-2), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(other.grad.numpy(), -slope.sum(-3), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("p", [1.0, 2.0])
def test_distances_of_odd_numbers(p: float) -> None:
    x = np.zeros((5, 4), "float32")
    y = np.zeros((6, 4), "float32")
    x[1, 2], x[2, 0], y[3, 1] = np.nan, np.inf, -np.inf
    got = taeda.cdist(taeda.tensor(x), taeda.tensor(y), p=p).numpy()
    expected = np.linalg.norm(x[:, None] - y, ord=p, axis=-1)
    np.testing.assert_array_equal(got, expected)
    same = taeda.tensor(x[:1].repeat(5, 0), requires_grad=True)
    taeda.cdist(same, same.detach(), p=p).sum().backward()
    np.testing.assert_array_equal(same.grad.numpy(), np.zeros((5, 4)))


@pytest.mark.parametrize("shape,dim", [((3,), 0), ((4, 3), 1), ((3, 4), 0), ((2, 3, 5), 1)])
def test_cross(shape: tuple[int, ...], dim: int) -> None:
    x, y = random(*shape), random(*shape) + 1
    expected = np.cross(x, y, axis=dim)
    a, b = taeda.tensor(x, requires_grad=True), taeda.tensor(y, requires_grad=True)
    np.testing.assert_allclose(taeda.cross(a, b, dim).detach().numpy(), expected, rtol=1e-13)
    np.testing.assert_allclose(taeda.linalg.cross(a, b, dim=dim).detach().numpy(), expected)
    assert gradcheck(lambda s, t: taeda.cross(s, t, dim), (a, b))
    assert gradgradcheck(lambda s, t: taeda.cross(s, t, dim), (a, b))


def test_cross_of_views() -> None:
    x, y = taeda.tensor(random(50, 7)), taeda.tensor(random(3, 1))
    got = taeda.cross(x[:, 1:4], y.T, dim=1)
    np.testing.assert_allclose(got.numpy(), np.cross(x.numpy()[:, 1:4], y.numpy().T), rtol=1e-13)
    assert taeda.cross(taeda.zeros(0, 3), taeda.zeros(0, 3)).shape == (0, 3)
    with pytest.raises(RuntimeError, match="length 3"):
        taeda.cross(taeda.zeros(2, 4), taeda.zeros(2, 4), dim=1)
    whole = taeda.cross(taeda.tensor([1, 2, 3]), taeda.tensor([4, 5, 6]))
    assert whole.tolist() == [-3, 6, -3]


@pytest.mark.parametrize("size,step", [(1, 1), (2, 2), (2, 3), (3, 1), (5, 2), (7, 3)])
@pytest.mark.parametrize("dim", [0, 1])
def test_windows_put_back(size: int, step: int, dim: int) -> None:
    x = taeda.tensor(random(9, 11), requires_grad=True)
    windows = x.unfold(dim, size, step)
    g = random(*windows.shape)
    windows.backward(taeda.tensor(g))
    expected = np.zeros((9, 11))
    lines, g = np.moveaxis(expected, dim, 0), np.moveaxis(g, dim, 0)
    for w in range(len(g)):
        lines[w * step : w * step + size] += np.moveaxis(g[w], -1, 0)
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-13)


def test_examples() -> None:
    """Under vmap, with gradients, as one example after the other."""
    x, y, g = (taeda.tensor(random(4, *n)) for n in ((6, 3), (5, 3), (6, 5)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cross = taeda.vmap(lambda a, b: taeda.cross(a, b, -1))(x[:, :5], y)
        alone = taeda.vmap(lambda a: taeda.cross(a, y[0], -1))(x[:, :5])

        def slope(a: taeda.Tensor, b: taeda.Tensor, w: taeda.Tensor) -> taeda.Tensor:
            return taeda.func.grad(lambda t: (taeda.cdist(t, b, p=1) * w).sum())(a)

        slopes = taeda.vmap(slope)(x, y, g)
        shared = taeda.vmap(slope, in_dims=(0, None, None))(x, y[0], g[0])
    np.testing.assert_allclose(cross.numpy(), np.cross(x.numpy()[:, :5], y.numpy()), rtol=1e-13)
    np.testing.assert_allclose(alone.numpy(), np.cross(x.numpy()[:, :5], y.numpy()[0]), rtol=1e-13)
    for i in range(4):
        np.testing.assert_allclose(slopes[i].numpy(), slope(x[i], y[i], g[i]).numpy())
        np.testing.assert_allclose(shared[i].numpy(), slope(x[i], y[0], g[0]).numpy())
