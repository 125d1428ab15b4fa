"""Ops that are composed of others, beside NumPy and Python; and what must be refused."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import taeda
import taeda.nn.functional as F


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


@pytest.mark.parametrize("shape", [(1, 1), (2, 7), (4, 1), (3, 0)])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_cov_is_numpys(shape):
    x = numbers(*shape)
    for correction in (0, 1):
        expected = np.cov(x, ddof=correction)
        actual = taeda.cov(taeda.tensor(x), correction=correction).numpy()
        np.testing.assert_allclose(actual, expected, rtol=1e-12)


@pytest.mark.parametrize("how", ["linear", "lower", "higher", "midpoint", "nearest"])
@pytest.mark.parametrize("dim", [None, 0, 1])
def test_quantile_is_numpys(how, dim):
    x, q = numbers(5, 6), [0.0, 0.25, 0.5, 1.0]
    expected = np.quantile(x, q, axis=dim, method=how)
    actual = taeda.quantile(taeda.tensor(x), taeda.tensor(q, dtype=taeda.float64), dim,
                            interpolation=how)  # fmt: skip
    np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-12)


def test_quantile_of_nan():
    x = taeda.tensor([[1.0, math.nan, 3.0], [4.0, 5.0, 6.0]])
    assert taeda.quantile(x, 0.5, 1).isnan().tolist() == [True, False]
    assert taeda.nanquantile(x, 0.5, 1).tolist() == [2.0, 5.0]


@pytest.mark.parametrize("density", [False, True])
def test_histograms_are_numpys(density):
    x, w = numbers(50, 2), np.abs(numbers(50, seed=1))
    bins = [3, 4]
    expected, edges = np.histogramdd(x, bins, weights=w, density=density)
    hist, found = taeda.histogramdd(taeda.tensor(x), bins, weight=taeda.tensor(w), density=density)
    np.testing.assert_allclose(hist.numpy(), expected, rtol=1e-12)
    for a, b in zip(found, edges, strict=True):
        np.testing.assert_allclose(a.numpy(), b, rtol=1e-12)
    expected, _ = np.histogram(x[:, 0], [-1.0, 0.0, 0.5, 2.0], density=density)
    edges = taeda.tensor([-1.0, 0.0, 0.5, 2.0], dtype=taeda.float64)
    hist, _ = taeda.histogram(taeda.tensor(x[:, 0]), edges, density=density)
    np.testing.assert_allclose(hist.numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize("edge_order", [1, 2])
def test_gradient_is_numpys(edge_order):
    x, places = numbers(4, 5), np.array([0.0, 0.5, 2.0, 2.5, 4.0])
    expected = np.gradient(x, 0.5, places, edge_order=edge_order)
    actual = taeda.gradient(
        taeda.tensor(x), spacing=(taeda.arange(4, dtype=taeda.float64) / 2, taeda.tensor(places)),
        edge_order=edge_order,
    )  # fmt: skip
    for a, e in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a.numpy(), e, rtol=1e-12)


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0, 2.0, 3.0, math.inf])
def test_cdist_sums_up_differences(p):
    a, b = numbers(2, 1, 3, 4), numbers(3, 2, 4)
    diff = np.abs(a[..., :, None, :] - b[..., None, :, :])
    if p == 0:
        expected = (diff != 0).sum(-1)
    else:
        expected = diff.max(-1) if p == math.inf else (diff**p).sum(-1) ** (1 / p)
    actual = taeda.cdist(taeda.tensor(a), taeda.tensor(b), p).numpy()
    np.testing.assert_allclose(actual, expected, rtol=1e-12)
    assert taeda.cdist(taeda.ones(0, 3), taeda.ones(2, 3)).shape == (0, 2)
    assert taeda.cdist(taeda.ones(30, 0), taeda.ones(2, 0), p).tolist() == [[0.0, 0.0]] * 30


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sizes", [(40, 33, 1), (26, 3, 17), (2, 50, 70)])
def test_cdist_by_product(sizes, dtype):
    m, n, k = sizes
    a, b = numbers(2, 1, m, k).astype(dtype), numbers(3, n, k).astype(dtype)
    a[1, 0, 0, 0] = math.inf
    a[1, 0, 1, 0] = math.nan
    b[2, :2] = a[0, 0, :2] + dtype(1e-4)  # near, and far from the origin
    a += 100
    b += 100
    expected = np.sqrt(
        ((a[..., :, None, :].astype(float) - b[..., None, :, :].astype(float)) ** 2).sum(-1)
    )
    near = 1e-12 if dtype is np.float64 else 1e-4
    for mode in ("use_mm_for_euclid_dist", "use_mm_for_euclid_dist_if_necessary"):
        x, y = taeda.tensor(a), taeda.tensor(b)
        actual = taeda.cdist(x, y, compute_mode=mode)
        np.testing.assert_allclose(actual.numpy(), expected, rtol=near)
        assert taeda.cdist(y, y, compute_mode=mode).diagonal(dim1=-2, dim2=-1).count_nonzero() == 0


@pytest.mark.parametrize("mode", ["use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist"])
def test_cdist_gradients(mode):
    a, b = (taeda.tensor(numbers(2, 3, 4) + shift, requires_grad=True) for shift in (0, 1))
    assert taeda.autograd.gradcheck(lambda x, y: taeda.cdist(x, y, compute_mode=mode), (a, b))
    assert taeda.autograd.gradgradcheck(lambda x, y: taeda.cdist(x, y, compute_mode=mode), (a, b))


@pytest.mark.parametrize(("n", "r"), [(0, 2), (1, 1), (4, 2), (4, 4), (3, 5), (5, 0)])
def test_combinations_are_itertools(n, r):
    x = taeda.arange(n)
    for repeat, expected in (
        (False, itertools.combinations(range(n), r)),
        (True, itertools.combinations_with_replacement(range(n), r)),
    ):
        found = taeda.combinations(x, r, repeat)
        if r:
            assert found.shape == (len(rows := list(expected)), r)
            assert found.tolist() == [list(row) for row in rows]


def test_isin_and_mode():
    x = taeda.tensor([[3, 1, 1], [2, 2, 3]])
    assert taeda.isin(x, taeda.tensor([1, 2])).tolist() == [
        [False, True, True],
        [True, True, False],
    ]
    assert taeda.isin(x, taeda.empty(0, dtype=taeda.int64), invert=True).all()
    assert not taeda.isin(taeda.tensor(math.nan), taeda.tensor([math.nan, 1.0]))
    values, indices = x.mode(1)
    assert (values.tolist(), indices.tolist()) == ([1, 2], [2, 1])


def test_copies_have_memory_of_their_own():
    x = taeda.arange(6).reshape(2, 3)
    for copy in (x.narrow_copy(1, 0, 2), taeda.t_copy(x), *taeda.unbind_copy(x)):
        assert copy.is_contiguous()
        copy.zero_()
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_out_is_of_the_results_dtype_and_does_not_overlap_itself():
    x = taeda.ones(2, 2)
    with pytest.raises(RuntimeError, match="dtype"):
        taeda.mm(x, x, out=taeda.empty(2, 2, dtype=taeda.float64))
    spread = taeda.zeros(1).expand(2, 2)
    for call in (taeda.add, taeda.mm):
        with pytest.raises(RuntimeError, match="single memory location"):
            call(x, x, out=spread)
    assert spread.sum() == 0
    assert taeda.sum(taeda.tensor([1.6, 1.6]), out=taeda.empty((), dtype=taeda.int64)) == 2


def test_numbers_stand_for_tensors_where_pytorch_takes_them():
    x = taeda.tensor([1, 2])
    assert taeda.add(2, 3) == 5
    assert taeda.pow(2, x).tolist() == [2, 4]
    for call in (taeda.eq, taeda.lt, taeda.rsub, taeda.copysign):
        with pytest.raises(TypeError):
            call(2, x)
    for call in (taeda.pow, taeda.remainder, taeda.bitwise_and):
        with pytest.raises(TypeError):
            call(2, 3)


def test_masks_and_segments_do_not_reach_beyond_their_tensor():
    with pytest.raises(RuntimeError, match="broadcast shape"):
        taeda.zeros(2).masked_scatter_(taeda.ones(3, 2, dtype=taeda.bool), taeda.ones(6))
    for lengths in ([2, -1], [3, 3], [1]):
        with pytest.raises(RuntimeError):
            taeda.segment_reduce(taeda.ones(4), "sum", lengths=taeda.tensor(lengths))
    with pytest.raises(RuntimeError):
        taeda.segment_reduce(taeda.ones(4), "sum", offsets=taeda.tensor([2, 9]))


def ctc_by_counting(log_probs, target, blank=0):
    """The sum over all paths that become the target once repeats and blanks are taken out."""
    steps, classes = log_probs.shape
    total = 0.0
    for path in itertools.product(range(classes), repeat=steps):
        labels = [k for k, _ in itertools.groupby(path)]
        if [k for k in labels if k != blank] == target:
            total += math.exp(sum(log_probs[t, k] for t, k in enumerate(path)))
    return -math.log(total) if total else math.inf


@pytest.mark.parametrize("target", [[], [1], [2, 1], [1, 1], [1, 2, 1], [1, 1, 1]])
def test_ctc_loss_sums_over_all_alignments(target):
    log_probs = taeda.tensor(numbers(4, 1, 3)).log_softmax(-1)
    labels = taeda.tensor(target, dtype=taeda.int64).reshape(1, -1)
    loss = F.ctc_loss(log_probs, labels, [4], [len(target)], reduction="none")
    assert loss.item() == pytest.approx(ctc_by_counting(log_probs[:, 0].numpy(), target))
    if math.isinf(loss.item()):
        assert F.ctc_loss(log_probs, labels, [4], [len(target)], zero_infinity=True) == 0


def test_ctc_gradient_through_log_softmax():
    logits = taeda.tensor(numbers(5, 2, 3)).requires_grad_()
    labels = taeda.tensor([[1, 2], [1, 1]])

    def loss(x):
        return F.ctc_loss(x.log_softmax(-1), labels, [5, 4], [2, 2], reduction="sum")

    assert taeda.autograd.gradcheck(loss, (logits,))
    for bad in ([[1, 3], [1, 1]], [[1, -1], [1, 1]]):
        with pytest.raises(RuntimeError, match="label"):
            F.ctc_loss(logits, taeda.tensor(bad), [5, 5], [2, 2])


def test_fractional_pooling_covers_the_plane():
    x = taeda.arange(64.0).reshape(1, 1, 8, 8)
    out, places = F.fractional_max_pool2d(x, 2, output_size=(3, 4), return_indices=True)
    assert out.shape == (1, 1, 3, 4)
    assert taeda.equal(out, x.flatten(2).gather(2, places.flatten(2)).reshape(out.shape))
    assert out[..., -1, -1] == 63
