"""Margin losses and distances between a matrix's own rows, against PyTorch and float64 formulas."""

from __future__ import annotations

import math

import numpy as np
import pytest

import taeda
from taeda.autograd import gradcheck, gradgradcheck

F = taeda.nn.functional
REDUCTIONS = ("none", "mean", "sum")


def scores(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def labels(rows, classes, seed=0):
    """Rows of class numbers, of which some end at a -1; what stands after it must not count."""
    rng = np.random.default_rng(seed)
    target = rng.integers(0, classes, (rows, classes))
    for row in target[1:]:
        row[rng.integers(0, classes)] = -1
    return target


def one_right(x, target, p, margin, weight):
    total = np.zeros(len(x))
    for i, t in enumerate(target):
        terms = np.maximum(0, margin - x[i, t] + np.delete(x[i], t)) ** p
        total[i] = terms.sum() * (1 if weight is None else weight[t]) / x.shape[1]
    return total


def many_right(x, target):
    total = np.zeros(len(x))
    for i, row in enumerate(target):
        named = row[: np.argmax(row < 0)] if (row < 0).any() else row
        wrong = np.setdiff1d(np.arange(x.shape[1]), named)
        total[i] = sum(np.maximum(0, 1 - x[i, r] + x[i, wrong]).sum() for r in named)
    return total / x.shape[1]


def reduce(each, reduction):
    return {"none": each, "mean": each.mean(), "sum": each.sum()}[reduction]


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("p", "margin"), [(1, 1.0), (2, 1.0), (1, -0.3), (2, 0.2)])
@pytest.mark.parametrize("size", [(1, 1), (3, 7), (5, 33), (40, 130)])
def test_multi_margin(size, p, margin, weighted, reduction):
    x, target = scores(*size), np.random.default_rng(1).integers(0, size[1], size[0])
    weight = np.abs(scores(size[1], seed=2)) if weighted else None
    want = reduce(one_right(x, target, p, margin, weight), reduction)
    for dtype, tolerance in ((taeda.float64, 1e-12), (taeda.float32, 1e-5), (taeda.bfloat16, 0.05)):
        w = None if weight is None else taeda.tensor(weight, dtype=dtype)
        got = F.multi_margin_loss(
            taeda.tensor(x, dtype=dtype), taeda.tensor(target), p, margin, w, reduction=reduction
        )
        assert got.dtype == dtype
        np.testing.assert_allclose(
            got.double().numpy(), want, rtol=tolerance, atol=tolerance * np.abs(want).max()
        )


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("size", [(1, 1), (3, 7), (5, 33), (9, 130)])
def test_multilabel_margin(size, reduction):
    x, target = scores(*size), labels(*size)
    want = reduce(many_right(x, target), reduction)
    for dtype, tolerance in ((taeda.float64, 1e-12), (taeda.float32, 1e-5), (taeda.float16, 0.01)):
        got = F.multilabel_margin_loss(
            taeda.tensor(x, dtype=dtype), taeda.tensor(target), reduction=reduction
        )
        np.testing.assert_allclose(got.double().numpy(), want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_margin_derivatives(reduction):
    x = taeda.tensor(scores(4, 9)).requires_grad_()
    strided = taeda.tensor(scores(9, 4)).requires_grad_()
    target = taeda.tensor([0, 8, 3, 3])
    weight = taeda.tensor(np.abs(scores(9, seed=3)))
    named = taeda.tensor(labels(4, 9))
    for p in (1, 2):
        for w in (None, weight):
            f = lambda x, p=p, w=w: F.multi_margin_loss(  # noqa: E731
                x, target, p, 0.7, w, reduction=reduction
            )
            assert gradcheck(f, (x,))
            assert gradcheck(lambda x, f=f: f(x.T), (strided,))
            assert gradgradcheck(f, (x,))
    f = lambda x: F.multilabel_margin_loss(x, named, reduction=reduction)  # noqa: E731
    assert gradcheck(f, (x,))
    assert gradcheck(lambda x: f(x.T), (strided,))
    assert gradgradcheck(f, (x,))


def test_margin_of_one_vector_and_of_no_rows():
    x = taeda.tensor(scores(5), requires_grad=True)
    for target in (taeda.tensor(2), taeda.tensor([2])):
        loss = F.multi_margin_loss(x, target, reduction="none")
        assert loss.shape == target.shape
        assert loss.item() == pytest.approx(one_right(x.detach().numpy()[None], [2], 1, 1, None)[0])
    assert gradcheck(lambda x: F.multi_margin_loss(x, taeda.tensor(2), p=2), (x,))
    assert gradgradcheck(lambda x: F.multi_margin_loss(x, taeda.tensor([2]), p=2), (x,))
    named = taeda.tensor([3, 1, -1, 0, 0])
    assert gradgradcheck(lambda x: F.multilabel_margin_loss(x, named, reduction="none"), (x,))
    assert F.multi_margin_loss(taeda.tensor(0.3), taeda.tensor(0)).item() == 0
    assert F.multilabel_margin_loss(taeda.tensor(0.3), taeda.tensor([0])).item() == 0
    empty = taeda.zeros(0, 4, requires_grad=True)
    none = taeda.zeros(0, dtype=taeda.int64)
    assert F.multi_margin_loss(empty, none, reduction="none").shape == (0,)
    loss = F.multi_margin_loss(empty, none, reduction="sum")
    assert loss.item() == 0
    loss.backward()
    assert empty.grad.shape == (0, 4)
    assert math.isnan(F.multi_margin_loss(empty, none).item())
    assert F.multilabel_margin_loss(empty, none.reshape(0, 1).expand(0, 4)).isnan().item()


def test_margin_terms_that_are_not_numbers_or_tie():
    torch = pytest.importorskip("torch")
    inf, nan = math.inf, math.nan
    rows = [[1, nan, 2, 0.5], [1, 0, 2, 0.5], [nan, 0, 1, 2], [inf, 0, 1, 2], [0, inf, -inf, 1]]
    named = [[0, -1, 0, 0], [0, 2, 2, 0], [-1, 0, 0, 0], [0, 1, -1, 3], [0, 3, -1, 1]]
    for f, target, options in (
        ("multi_margin_loss", [0, 0, 0, 0, 0], {}),
        ("multi_margin_loss", [0, 0, 0, 0, 0], {"p": 2}),
        ("multilabel_margin_loss", named, {}),
    ):
        x, y = (t.tensor(rows, requires_grad=True) for t in (taeda, torch))
        got = getattr(F, f)(x, taeda.tensor(target), reduction="none", **options)
        want = getattr(torch.nn.functional, f)(y, torch.tensor(target), reduction="none", **options)
        got[:3].sum().backward()
        want[:3].sum().backward()
        np.testing.assert_allclose(got.tolist(), want.tolist(), rtol=1e-6)
        np.testing.assert_allclose(x.grad.tolist(), y.grad.tolist(), rtol=1e-6)


def test_margin_refusals():
    x, t = taeda.rand(3, 4), taeda.tensor([0, 1, 2])
    bad = [
        (RuntimeError, lambda: F.multi_margin_loss(x, taeda.tensor([0, 4, 1]))),
        (RuntimeError, lambda: F.multi_margin_loss(x, taeda.tensor([0, -1, 1]))),
        (RuntimeError, lambda: F.multi_margin_loss(x, t[:2])),
        (RuntimeError, lambda: F.multi_margin_loss(x, t[:, None])),
        (RuntimeError, lambda: F.multi_margin_loss(x, t.int())),
        (NotImplementedError, lambda: F.multi_margin_loss(x.long(), t)),
        (RuntimeError, lambda: F.multi_margin_loss(x[:, :0], t)),
        (RuntimeError, lambda: F.multi_margin_loss(x[None], t[:1])),
        (ValueError, lambda: F.multi_margin_loss(x, t, p=3)),
        (ValueError, lambda: F.multi_margin_loss(x, t, reduction="max")),
        (ValueError, lambda: F.multi_margin_loss(x, t, weight=taeda.rand(4, 1))),
        (RuntimeError, lambda: F.multi_margin_loss(x, t, weight=taeda.rand(3))),
        (RuntimeError, lambda: F.multi_margin_loss(x, t, weight=taeda.rand(4).double())),
        (RuntimeError, lambda: F.multilabel_margin_loss(x, taeda.full((3, 4), 4))),
        (RuntimeError, lambda: F.multilabel_margin_loss(x, taeda.full((3, 4), -2))),
        (RuntimeError, lambda: F.multilabel_margin_loss(x, taeda.zeros(3, 3).long())),
        (RuntimeError, lambda: F.multilabel_margin_loss(x, taeda.zeros(3, 4).int())),
        (RuntimeError, lambda: F.multilabel_margin_loss(x[:, :0], taeda.zeros(3, 0).long())),
        (RuntimeError, lambda: F.pdist(x[0])),
        (RuntimeError, lambda: F.pdist(t[:, None])),
        (RuntimeError, lambda: F.pdist(x, -1.0)),
        (RuntimeError, lambda: taeda._C.ops._square_of_pairs(x[0], 3)),
        (RuntimeError, lambda: taeda._C.ops._square_of_pairs(x[0], -1)),
        (RuntimeError, lambda: taeda._C.ops._pairs_of_square(x)),
    ]
    for error, f in bad:
        with pytest.raises(error):
            f()


@pytest.mark.parametrize("p", [0, 0.5, 1, 1.5, 2, 3, math.inf])
@pytest.mark.parametrize("size", [(0, 3), (1, 3), (2, 5), (5, 0), (7, 9), (30, 17), (70, 300)])
def test_pdist(size, p):
    x = scores(*size)
    first, second = np.triu_indices(size[0], 1)
    apart = np.abs(x[first] - x[second])
    if p == 0:
        want = (apart != 0).sum(-1).astype(float)
    elif math.isinf(p):
        want = apart.max(-1, initial=0)
    else:
        want = (apart**p).sum(-1) ** (1 / p)
    for dtype, tolerance in ((taeda.float64, 1e-12), (taeda.float32, 2e-5)):
        got = taeda.pdist(taeda.tensor(x, dtype=dtype), p)
        assert got.dtype == dtype
        np.testing.assert_allclose(got.double().numpy(), want, rtol=tolerance, atol=1e-6)


@pytest.mark.parametrize("p", [1, 1.5, 2, 3, math.inf])
def test_pdist_derivatives(p):
    torch = pytest.importorskip("torch")
    x = taeda.tensor(scores(6, 4), requires_grad=True)
    assert gradcheck(lambda x: F.pdist(x, p), (x,))
    assert gradgradcheck(lambda x: F.pdist(x, p), (x,))
    rows = [[1.0, 1.0], [1.0, 1.0], [2.0, 1.0]]  # of which two are the same
    a, b = taeda.tensor(rows, requires_grad=True), torch.tensor(rows, requires_grad=True)
    F.pdist(a, p).sum().backward()
    torch.nn.functional.pdist(b, p).sum().backward()
    np.testing.assert_allclose(a.grad.tolist(), b.grad.tolist(), rtol=1e-6)


@pytest.mark.parametrize("dtype", [taeda.float32, taeda.float64, taeda.int32])
@pytest.mark.parametrize("shape", [(2, 8), (3, 7), (5, 100), (2, 3, 64), (4, 1, 200), (2, 70000)])
def test_a_number_for_each_line(shape, dtype):
    rng = np.random.default_rng(0)
    a = (np.abs(rng.standard_normal(shape)) * 10 + 1).astype(str(dtype).split(".")[1])
    column = (rng.standard_normal((*shape[:-1], 1)) * 10 + 40).astype(a.dtype)
    x, c = taeda.tensor(a), taeda.tensor(column)
    wide = taeda.tensor(np.repeat(a, 2, -1))[..., ::2]
    for f in (lambda x, y: x + y, lambda x, y: x - y, lambda x, y: x * y, lambda x, y: x / y):
        for left, right, want in (
            (x, c, f(a, column)), (c, x, f(column, a)), (x, c[:1], f(a, column[:1])),
            (wide, c, f(a, column)), (c[0], wide, f(column[0], a)),
        ):  # fmt: skip
            np.testing.assert_allclose(f(left, right).numpy(), want, rtol=2e-7)
    if dtype.is_floating_point:
        y = x.clone()
        y *= c
        np.testing.assert_allclose(y.numpy(), a * column, rtol=1e-12)
        special = taeda.tensor([[math.nan], [math.inf], [-0.0]], dtype=dtype)
        got = special * taeda.ones(3, 20, dtype=dtype)
        np.testing.assert_array_equal(got.numpy(), np.repeat(special.numpy(), 20, 1))
