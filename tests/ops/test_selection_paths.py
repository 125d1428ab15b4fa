"""Masks, ranks, membership and places in order: the paths for whole masks, long lines and few tests."""

from __future__ import annotations

import math

import numpy as np
import pytest

import taeda
from taeda.autograd import gradcheck, gradgradcheck

F = taeda.nn.functional


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


@pytest.mark.parametrize("shape", [(0,), (1,), (7,), (4, 5), (3, 0, 2), (2, 3, 4), (300, 500)])
@pytest.mark.parametrize("density", [0, 0.3, 1])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "bool", "complex128"])
def test_masks_over_all(shape, density, dtype):
    a, chosen = (
        (numbers(*shape) * 9).astype(dtype),
        np.random.default_rng(1).random(shape) < density,
    )
    x, mask = taeda.tensor(a), taeda.tensor(chosen)
    want = a[chosen]
    np.testing.assert_array_equal(x[mask].numpy(), want)
    np.testing.assert_array_equal(x.masked_select(mask).numpy(), want)
    turned = x.mT if x.dim() > 1 else x.flip(0)  # neither memory is in order
    other = mask.mT if x.dim() > 1 else mask.flip(0)
    np.testing.assert_array_equal(turned[other].numpy(), turned.numpy()[other.numpy()])
    np.testing.assert_array_equal(turned.contiguous()[other].numpy(), turned.numpy()[other.numpy()])
    for value in (0, x[mask] * 0 if dtype != "bool" else ~x[mask]):
        y, b = x.clone(), a.copy()
        y[mask] = value
        b[chosen] = value if isinstance(value, int) else value.numpy()
        np.testing.assert_array_equal(y.numpy(), b)
    source = (numbers(*shape, seed=3) * 9).astype(dtype)
    b = a.copy()
    b[chosen] = source.ravel()[: chosen.sum()]
    np.testing.assert_array_equal(x.masked_scatter(mask, taeda.tensor(source)).numpy(), b)


def test_masks_beside_other_indices():
    torch = pytest.importorskip("torch")
    a = numbers(4, 5, 6)
    rng = np.random.default_rng(2)
    row, plane, last = rng.random(4) < 0.5, rng.random((4, 5)) < 0.5, rng.random(6) < 0.5
    row[0] = row[2] = True
    for index in (
        lambda t: t(row), lambda t: (t(row), 1), lambda t: (t(row), slice(1, 3)), lambda t: (None, t(row)),
        lambda t: (slice(None), slice(None), t(last)), lambda t: (..., t(last)), lambda t: t(plane),
        lambda t: (t(plane), 2), lambda t: (t(plane), t(last[:1])), lambda t: (t(plane), None, slice(0, 2)),
        lambda t: (2, t(plane[0])), lambda t: (t(row), t([1] * int(row.sum()))),
        lambda t: (t([0] * int(last.sum())), slice(None), t(last)), lambda t: (t(row), ..., -1),
        lambda t: (True, t(row)), lambda t: (t(plane), t(2)), lambda t: (slice(1, None), t(plane[0])),
    ):  # fmt: skip
        x, y = taeda.tensor(a, requires_grad=True), torch.tensor(a, requires_grad=True)
        try:
            want = y[index(torch.tensor)]
        except IndexError:
            with pytest.raises(IndexError):
                x[index(taeda.tensor)]
            continue
        got = x[index(taeda.tensor)]
        np.testing.assert_array_equal(got.detach().numpy(), want.detach().numpy())
        (got * got).sum().backward()
        (want * want).sum().backward()
        np.testing.assert_array_equal(x.grad.numpy(), y.grad.numpy())
        for value in (0.5, want.detach() * 2):
            u, v = taeda.tensor(a), torch.tensor(a)
            same = value if isinstance(value, float) else taeda.tensor(value.numpy())
            u[index(taeda.tensor)] = same
            v[index(torch.tensor)] = value
            np.testing.assert_array_equal(u.numpy(), v.numpy())
            u[index(taeda.tensor)] += 1
            v[index(torch.tensor)] += 1
            np.testing.assert_array_equal(u.numpy(), v.numpy())


def test_masks_that_do_not_fit():
    x = taeda.rand(3, 4)
    for mask in (taeda.ones(4).bool(), taeda.ones(3, 3).bool(), taeda.ones(3, 4, 1).bool()):
        with pytest.raises(IndexError):
            x[mask]
        with pytest.raises(IndexError):
            x[mask] = 1.0
    with pytest.raises(RuntimeError):
        x[x > -1] = taeda.zeros(5)
    with pytest.raises(RuntimeError):
        x.masked_scatter(x > -1, taeda.zeros(5))


def test_derivatives_through_masks():
    x = taeda.tensor(numbers(4, 5), requires_grad=True)
    mask = taeda.tensor(numbers(4, 5, seed=1)) > 0
    for f in (lambda x: x[mask], lambda x: x.masked_select(mask), lambda x: x[mask[0].any(), mask]):
        assert gradcheck(f, (x,))
        assert gradgradcheck(f, (x,))
    g = taeda.func.vmap(lambda row, m: row[m] if m.dim() == 0 else row * m)(x, mask)
    assert g.shape == (4, 5)
    picked = taeda.func.vmap(lambda row: row[mask[0]])(x)
    assert picked.equal(x[:, mask[0]])


def ranked(a, k):
    """The k-th smallest of each line, NaN being the largest, as NumPy sorts."""
    return np.sort(a, -1, kind="stable")[..., k - 1]


@pytest.mark.parametrize(
    "dtype", ["float32", "float64", "int64", "int32", "int16", "int8", "uint8"]
)
@pytest.mark.parametrize("n", [1, 2, 64, 65, 100, 1000, 5000])
def test_ranks(dtype, n):
    for spread in (3, 100, 1e6, 1e18):
        scaled = np.clip(numbers(3, n) * spread, -9e17, 9e17)
        a = (
            scaled.astype(dtype)
            if dtype.startswith("float")
            else scaled.astype("int64").astype(dtype)
        )
        x = taeda.tensor(a)
        for k in {1, (n + 1) // 2, n, max(1, n // 7)}:
            values, places = x.kthvalue(k)
            np.testing.assert_array_equal(values.numpy(), ranked(a, k))
            np.testing.assert_array_equal(x.gather(1, places[:, None])[:, 0], values)
            order = np.argsort(a, -1, kind="stable")[:, k - 1]
            np.testing.assert_array_equal(places.numpy(), order)
            assert x.T.contiguous().T.kthvalue(k)[1].equal(places)  # strided lines
        np.testing.assert_array_equal(x.median(1)[0].numpy(), ranked(a, (n + 1) // 2))
        flat = np.sort(a.ravel())
        assert x.median().item() == flat[(flat.size - 1) // 2]


def test_ranks_among_nan_zeros_and_infinities():
    a = np.array([[0.0, -0.0, math.nan, math.inf] * 50, [-math.inf, 1, 2, math.nan] * 50])
    x = taeda.tensor(a)
    for k in (1, 50, 51, 100, 101, 150, 151, 200):
        np.testing.assert_array_equal(x.kthvalue(k)[0].numpy(), ranked(a, k))
    assert x.median(1)[0].isnan().all()
    assert x.median(1)[1].tolist() == [2, 3]
    assert x.nanmedian(1)[0].tolist() == [0.0, 1.0]
    none = taeda.full((2, 100), math.nan)
    assert none.nanmedian(1)[0].isnan().all()
    assert taeda.full((3, 100), 7.0).median(1)[0].tolist() == [7.0] * 3
    assert taeda.full((3, 100), 7.0).median(1)[1].tolist() == [49] * 3


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64", "uint8", "int16"])
@pytest.mark.parametrize("count", [0, 1, 5, 16, 17, 200])
def test_isin(dtype, count):
    rng = np.random.default_rng(0)
    a, tests = (rng.integers(0, 99, s).astype(dtype) for s in ((37, 60), (count,)))
    for x in (taeda.tensor(a), taeda.tensor(a.T.copy()).T):
        for invert in (False, True):
            got = taeda.isin(x, taeda.tensor(tests), invert=invert)
            np.testing.assert_array_equal(got.numpy(), np.isin(a, tests, invert=invert))
    assert taeda.isin(5, taeda.tensor([1, 5])).item()
    assert not taeda.isin(taeda.tensor([1, 2]), 1.5).any()
    assert taeda.isin(taeda.tensor([0.1]), 0.1).item()
    nan = taeda.tensor([math.nan, 0.0, -0.0, math.inf])
    assert taeda.isin(nan, nan[:2]).tolist() == [False, True, True, False]
    assert taeda.isin(nan, nan.repeat(20)).tolist() == [False, True, True, True]
    assert not taeda.isin(nan, taeda.full((30,), math.nan)).any()
    assert taeda.isin(taeda.zeros(0), nan).shape == (0,)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "uint8"])
@pytest.mark.parametrize("n", [1, 2, 3, 20, 64, 1000])
def test_places_in_order(dtype, n):
    rng = np.random.default_rng(0)
    line = np.sort(rng.integers(0, 200, n).astype(dtype))
    values = rng.integers(0, 220, (30, 7)).astype(dtype)
    for right in (False, True):
        want = np.searchsorted(line, values, "right" if right else "left")
        x, v = taeda.tensor(line), taeda.tensor(values)
        np.testing.assert_array_equal(taeda.searchsorted(x, v, right=right).numpy(), want)
        np.testing.assert_array_equal(taeda.bucketize(v, x, right=right).numpy(), want)
        rows = taeda.searchsorted(x.expand(30, n), v, right=right)
        np.testing.assert_array_equal(rows.numpy(), want)
    if dtype.startswith("float"):
        torch = pytest.importorskip("torch")
        special = [math.nan, math.inf, -math.inf]
        for ends in ([0.0, 1.0], [0.0, math.inf], [0.0, 1.0, math.nan]):
            got = taeda.searchsorted(taeda.tensor(ends), taeda.tensor(special))
            want = torch.searchsorted(torch.tensor(ends), torch.tensor(special))
            assert got.tolist() == want.tolist()


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool", "uint8", "float16"])
@pytest.mark.parametrize("n", [0, 1, 2047, 2048, 5000])
def test_equal(dtype, n):
    a = np.abs(numbers(n) * 50).astype(dtype)  # casts of negative numbers to uint8 differ
    x, y = taeda.tensor(a), taeda.tensor(a)
    assert taeda.equal(x, y)
    for at in {0, n // 2, n - 1} if n else ():
        z = y.clone()
        z[at] = 1 - z[at] if dtype != "bool" else ~z[at]
        assert not taeda.equal(x, z)
        assert not taeda.equal(z, x)
    if dtype.startswith("float") and n:
        assert not taeda.equal(x * math.nan, x * math.nan)
        assert taeda.equal(x * 0, -(x * 0))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(), (0,), (1,), (17,), (3, 5)])
def test_complex_of_parts(dtype, shape):
    a, b = numbers(*shape).astype(dtype), numbers(*shape, seed=1).astype(dtype)
    got = taeda.complex(taeda.tensor(a), taeda.tensor(b))
    np.testing.assert_array_equal(got.numpy(), a + 1j * b)
    pairs = taeda.stack([taeda.tensor(a), taeda.tensor(b)], -1)
    np.testing.assert_array_equal(pairs.numpy(), np.stack([a, b], -1))
    wide = taeda.complex(taeda.tensor(a).expand(2, *shape), taeda.tensor(b))
    np.testing.assert_array_equal(wide.numpy(), np.broadcast_to(a + 1j * b, (2, *shape)))


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, math.inf])
def test_rows_that_are_too_long(p):
    table = numbers(6, 11)
    index = taeda.tensor([[1, 1, 4], [0, 1, 4]])
    weight = taeda.tensor(table)
    rows = F.embedding(index, weight, max_norm=2.0, norm_type=p)
    norms = np.linalg.norm(table, ord=p, axis=1, keepdims=True)
    shortened = np.where(norms > 2, table * (2 / (norms + 1e-7)), table)
    for i in (2, 3, 5):
        shortened[i] = table[i]
    np.testing.assert_allclose(weight.numpy(), shortened, rtol=1e-12)
    np.testing.assert_allclose(rows.numpy(), shortened[index.numpy()], rtol=1e-12)


def test_margin_losses_under_vmap():
    x, weight = taeda.tensor(numbers(3, 4, 5)), taeda.tensor(np.abs(numbers(5)))
    target, named = taeda.randint(0, 5, (3, 4)), taeda.randint(-1, 5, (3, 4, 5))
    for reduction in ("none", "mean", "sum"):
        one = lambda a, t: F.multi_margin_loss(a, t, 2, 0.5, weight, reduction=reduction)  # noqa: E731
        many = lambda a, t: F.multilabel_margin_loss(a, t, reduction=reduction)  # noqa: E731
        for f, t in ((one, target), (many, named)):
            want = taeda.stack([f(a, b) for a, b in zip(x, t, strict=True)])
            taeda.testing.assert_close(taeda.vmap(f)(x, t), want)
            grad = taeda.func.grad(lambda a, b, f=f: f(a, b).square().sum())
            want = taeda.stack([grad(a, b) for a, b in zip(x, t, strict=True)])
            taeda.testing.assert_close(taeda.vmap(grad)(x, t), want)
