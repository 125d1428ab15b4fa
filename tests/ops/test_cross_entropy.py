"""Cross entropy of logits (N, C), computed in one pass: values, gradients of both orders, odd rows."""

from __future__ import annotations

import numpy as np
import pytest

import taeda
import taeda.nn.functional as F

INF = float("inf")


def reference(x, target, weight, reduction, ignore_index=-100):
    x = x.astype(np.float64)
    most = x.max(1, keepdims=True)
    logp = x - most - np.log(np.exp(x - most).sum(1, keepdims=True))
    kept = target != ignore_index
    at = np.where(kept, target, 0)
    share = kept * (weight[at] if weight is not None else 1.0)
    each = -share * logp[np.arange(len(x)), at]
    if reduction == "none":
        return each
    return each.sum() / share.sum() if reduction == "mean" else each.sum()


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("classes", [1, 2, 37, 511, 512, 513, 1600])
def test_values(reduction, weighted, classes):
    rng = np.random.default_rng(classes)
    x = (rng.standard_normal((23, classes)) * 5).astype(np.float32)
    x[3] = np.sort(x[3])  # the largest comes last
    target = rng.integers(0, classes, 23)
    target[7] = -100
    weight = rng.random(classes).astype(np.float32) + 0.1 if weighted else None
    got = F.cross_entropy(
        taeda.tensor(x),
        taeda.tensor(target),
        None if weight is None else taeda.tensor(weight),
        reduction=reduction,
    )
    want = reference(x, target, weight, reduction)
    np.testing.assert_allclose(got.numpy(), want, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("weighted", [False, True])
def test_gradients(reduction, weighted):
    taeda.manual_seed(0)
    x = taeda.randn(5, 4, dtype=taeda.float64, requires_grad=True)
    target = taeda.tensor([1, 0, -1, 3, 3])
    weight = taeda.tensor([0.5, 1.0, 2.0, 0.25], dtype=taeda.float64) if weighted else None

    def loss(x):
        return F.cross_entropy(x, target, weight, ignore_index=-1, reduction=reduction)

    assert taeda.autograd.gradcheck(loss, (x,))
    assert taeda.autograd.gradgradcheck(loss, (x,))


@pytest.mark.parametrize("dtype", [taeda.float16, taeda.bfloat16])
def test_half(dtype):
    x = taeda.randn(6, 50).to(dtype).requires_grad_()
    target = taeda.arange(6)
    loss = F.cross_entropy(x, target)
    loss.backward()
    assert loss.dtype == x.grad.dtype == dtype
    wide = x.detach().float().requires_grad_()
    same = F.cross_entropy(wide, target)
    same.backward()
    assert abs(loss.item() - same.item()) < 0.02
    assert taeda.equal(x.grad, wide.grad.to(dtype))


def test_layouts():
    x, target = taeda.randn(30, 8), taeda.tensor([1, 5, 7, 7, 29, 3, 0, 4])
    assert taeda.equal(F.cross_entropy(x.t(), target), F.cross_entropy(x.t().contiguous(), target))
    row = taeda.randn(30)
    assert taeda.allclose(
        F.cross_entropy(row.expand(8, 30), target), F.cross_entropy(row.repeat(8, 1), target)
    )
    assert F.cross_entropy(row, taeda.tensor(3)).shape == ()


def test_odd_rows():
    nan = float("nan")
    rows = [[0.0, -INF, 1.0], [INF, 0.0, 0.0], [nan, 0.0, 0.0], [-INF] * 3, [1000.0, 0.0, -1000.0]]
    x = taeda.tensor(rows, requires_grad=True)
    each = F.cross_entropy(x, taeda.tensor([0, 0, 1, 0, 0]), reduction="none")
    assert each.isnan().tolist() == [False, True, True, True, False]
    assert each[4].item() == 0
    each[0].backward()
    assert x.grad[0, 1].item() == 0
    assert F.cross_entropy(x, taeda.tensor([1, 0, 0, 0, 0]), reduction="none")[0].item() == INF


def test_nothing_to_count():
    x = taeda.randn(3, 4, requires_grad=True)
    loss = F.cross_entropy(x, taeda.full((3,), -100))
    assert loss.isnan().item()
    loss.backward()
    assert not x.grad.any().item()
    assert F.cross_entropy(taeda.empty(0, 4), taeda.empty(0, dtype=taeda.int64)).isnan().item()
    assert F.cross_entropy(
        taeda.empty(0, 4), taeda.empty(0, dtype=taeda.int64), reduction="none"
    ).shape == (0,)


def test_errors():
    x = taeda.randn(3, 4)
    with pytest.raises(IndexError, match="Target 4"):
        F.cross_entropy(x, taeda.tensor([0, 4, 1]))
    with pytest.raises(ValueError, match="batch_size"):
        F.cross_entropy(x, taeda.tensor([0, 1]))
    with pytest.raises(RuntimeError, match="weight"):
        F.cross_entropy(x, taeda.tensor([0, 1, 2]), taeda.ones(3))
    assert F.cross_entropy(
        taeda.empty(3, 4, device="meta"), taeda.zeros(3, device="meta").long()
    ).is_meta


@pytest.mark.parametrize("classes", [1, 17, 64, 511, 5000])
def test_scores_of_all_sizes(classes):
    """Sums of exponentials beside float64: far-away, infinite and missing scores."""
    rng = np.random.default_rng(classes)
    sizes = np.array([0, 1, 3, 10, 30, 100, 1e3, 1e30, 5, 5, 5, 5])
    x = (rng.standard_normal((12, classes)) * sizes[:, None]).astype(np.float32)
    x[8, 1:] = x[9, ::2] = -INF
    x[9, 0] = 0
    x[10, classes // 2] = 1e4
    x[11, -1] = np.nan
    target = np.nan_to_num(x).argmax(1)
    target[3:6] = 0
    with np.errstate(invalid="ignore"):
        want = reference(x, target, None, "none")[:11]
    got = F.cross_entropy(taeda.tensor(x), taeda.tensor(target), reduction="none").numpy()
    assert np.isnan(got[11])
    np.testing.assert_allclose(got[:11], want, rtol=3e-7, atol=3e-7)
    logs = taeda.log_softmax(taeda.tensor(x), 1).numpy()
    wide = x[:11].astype(np.float64) - x[:11].max(1, keepdims=True)
    exact = wide - np.log(np.exp(wide).sum(1, keepdims=True))
    scale = 1 + np.abs(np.nan_to_num(x[:11], neginf=0)).max(1, keepdims=True)
    assert np.isnan(logs[11]).all()
    np.testing.assert_allclose(logs[:11] / scale, exact / scale, rtol=0, atol=5e-7)
