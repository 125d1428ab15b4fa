"""Attention in one call, against the formula."""

import math

import pytest

import taeda
from taeda.nn import functional as F

SHAPES = [(2, 3, 5, 7, 4, 6), (1, 2, 70, 130, 8, 8), (2, 1, 1, 3, 4, 4), (2, 2, 129, 129, 3, 3)]


def formula(q, k, v, mask=None, causal=False, scale=None):
    scores = q @ k.mT * (1 / math.sqrt(q.size(-1)) if scale is None else scale)
    if causal:
        mask = taeda.ones(q.size(-2), k.size(-2), dtype=taeda.bool).tril()
    if mask is not None:
        mask = mask.expand(scores.shape)
        scores = scores.masked_fill(~mask, -math.inf) if mask.dtype == taeda.bool else scores + mask
    empty = (scores == -math.inf).all(-1, keepdim=True)
    return scores.masked_fill(empty, 0.0).softmax(-1).masked_fill(empty, 0.0) @ v


def inputs(batch, heads, queries, keys, size, value_size, dtype=taeda.float64):
    taeda.manual_seed(0)
    q = taeda.randn(batch, queries, heads, size, dtype=dtype).transpose(1, 2)
    k = taeda.randn(batch, heads, keys, size, dtype=dtype)
    v = taeda.randn(batch, keys, heads, value_size, dtype=dtype).transpose(1, 2)
    return [t.requires_grad_() for t in (q, k, v)]


def masks(shape):
    batch, heads, queries, keys = shape[:4]
    taeda.manual_seed(1)
    yield None
    yield taeda.rand(queries, keys) > 0.3
    yield taeda.rand(batch, 1, queries, keys) > 0.5
    yield taeda.randn(batch, heads, 1, keys)
    hidden = taeda.zeros(batch, 1, queries, keys, dtype=taeda.float64)
    hidden[:, :, 0] = -math.inf
    yield hidden


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("number", range(5))
@pytest.mark.parametrize("dtype", [taeda.float32, taeda.float64])
def test_values_and_gradients(shape, number, dtype):
    mask = list(masks(shape))[number]
    if mask is not None and mask.dtype == taeda.float64:
        mask = mask.to(dtype)
    leaves = inputs(*shape, dtype=dtype)
    for causal in (False, True) if mask is None else (False,):
        actual = F.scaled_dot_product_attention(*leaves, mask, is_causal=causal, scale=0.7)
        expected = formula(*leaves, mask, causal, 0.7)
        close = {"rtol": 1e-4, "atol": 1e-5}
        assert taeda.allclose(actual.to(expected.dtype), expected, **close)
        weight = taeda.randn(actual.shape, dtype=dtype)
        ours = taeda.autograd.grad((actual * weight).sum(), leaves)
        theirs = taeda.autograd.grad((expected * weight).sum(), leaves)
        for a, e in zip(ours, theirs, strict=True):
            assert a.shape == e.shape and taeda.allclose(a, e, **close)


@pytest.mark.parametrize("number", range(5))
@pytest.mark.parametrize("causal", [False, True])
def test_derivatives(number, causal):
    shape = (1, 2, 4, 3, 2, 3)
    mask = list(masks(shape))[number]
    if causal and mask is not None:
        pytest.skip("a causal mask excludes another")
    leaves = inputs(*shape)

    def run(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, mask, is_causal=causal)

    assert taeda.autograd.gradcheck(run, leaves)
    assert taeda.autograd.gradgradcheck(run, leaves)


def test_sizes_at_the_edge():
    run = F.scaled_dot_product_attention
    z = taeda.zeros
    assert run(z(2, 0, 4), z(2, 3, 4), z(2, 3, 5)).shape == (2, 0, 5)
    assert run(z(0, 2, 4), z(0, 3, 4), z(0, 3, 5)).shape == (0, 2, 5)
    assert run(z(2, 4), z(3, 4), z(3, 5)).shape == (2, 5)
    none = run(taeda.ones(2, 2, 4), z(2, 0, 4), z(2, 0, 5))
    assert none.shape == (2, 2, 5) and int(none.count_nonzero()) == 0
    mean = run(z(2, 0), z(3, 0), taeda.arange(12.0).reshape(3, 4))
    assert taeda.allclose(mean, taeda.tensor([[4.0, 5.0, 6.0, 7.0]] * 2))
    q = taeda.ones(1, 1, 1, 4).expand(2, 3, 5, 4)  # rows that lie on each other
    assert taeda.allclose(run(q, q, q), q)
    assert run(*(t.to("meta") for t in (q, q, q))).is_meta
    bad = taeda.full((1, 2, 2), float("nan"))
    assert bool(run(bad, bad, bad).isnan().all())


def test_two_batch_dimensions():
    q, k, v = (
        t.detach().expand(3, *t.shape).transpose(0, 1).requires_grad_()
        for t in inputs(2, 4, 5, 6, 3, 2)
    )
    mask = taeda.rand(2, 1, 1, 5, 6) > 0.3
    actual = F.scaled_dot_product_attention(q, k, v, mask)
    expected = formula(q, k, v, mask, False)
    assert taeda.allclose(actual, expected)
    ours = taeda.autograd.grad((actual * actual).sum(), (q, k, v))
    theirs = taeda.autograd.grad((expected * expected).sum(), (q, k, v))
    assert all(map(taeda.allclose, ours, theirs))


def test_half_and_heads_beside_each_other():
    q, k, v = (t.detach() for t in inputs(2, 3, 9, 11, 4, 4, dtype=taeda.float32))
    whole = F.scaled_dot_product_attention(q, k, v)
    half = F.scaled_dot_product_attention(q.half(), k.half(), v.half())
    assert half.dtype == taeda.float16 and taeda.allclose(half.float(), whole, atol=3e-3)
    assert whole.transpose(1, 2).is_contiguous()


def test_masks_that_are_trained():
    q, k, v = inputs(1, 2, 3, 4, 2, 2)
    mask = taeda.randn(3, 4, dtype=taeda.float64, requires_grad=True)
    F.scaled_dot_product_attention(q, k, v, mask).sum().backward()
    assert mask.grad is not None


def test_the_op_refuses():
    attention = taeda._C.ops._attention
    z = taeda.zeros
    with pytest.raises(RuntimeError, match="do not fit together"):
        attention(z(2, 3, 4), z(2, 3, 5), z(2, 3, 4), None, False, 1.0)
    with pytest.raises(RuntimeError, match="one dtype"):
        attention(z(3, 4), z(3, 4).double(), z(3, 4), None, False, 1.0)
    with pytest.raises(RuntimeError):
        attention(z(3, 4), z(3, 4), z(3, 4), z(5, 5), False, 1.0)
