"""`nn.attention.varlen` against attention of each sequence, computed from its definition."""

from __future__ import annotations

import math

import pytest

import taeda
from taeda.nn.attention.varlen import AuxRequest, varlen_attn, varlen_attn_out

QUERIES, KEYS = [3, 1, 4, 0], [3, 5, 2, 2]


def starts(lengths):
    return taeda.tensor([0, *lengths]).cumsum(0).int()


def random(*shape):
    return taeda.randn(*shape, dtype=taeda.float64).requires_grad_()


def by_definition(q, k, v, window, scale=None):
    """(tokens, heads, size) of one sequence."""
    left, right = window
    k, v = (x.repeat_interleave(q.size(1) // x.size(1), 1) for x in (k, v))
    scale = 1 / math.sqrt(q.size(-1)) if scale is None else scale
    scores = taeda.einsum("ihe,jhe->hij", q, k) * scale
    for i in range(q.size(0)):
        at = i + k.size(0) - q.size(0)
        for j in range(k.size(0)):
            if (left >= 0 and j < at - left) or (right >= 0 and j > at + right):
                scores[:, i, j] = -math.inf
    weights = scores.softmax(-1).nan_to_num(0.0)
    return taeda.einsum("hij,jhe->ihe", weights, v), scores.logsumexp(-1).t()


@pytest.mark.parametrize("window", [(-1, -1), (-1, 0), (1, 0), (0, 1), (2, -1)])
@pytest.mark.parametrize("heads", [2, 4])
def test_values_and_gradients(window, heads):
    q, k, v = random(8, 4, 6), random(12, heads, 6), random(12, heads, 6)
    options = {"window_size": window, "enable_gqa": heads != 4, "return_aux": AuxRequest(lse=True)}
    found, sums = varlen_attn(q, k, v, starts(QUERIES), starts(KEYS), 4, 5, **options)
    parts = zip(q.split(QUERIES), k.split(KEYS), v.split(KEYS), strict=True)
    expected = [by_definition(*part, window) for part in parts]
    wanted = taeda.cat([e for e, _ in expected])
    taeda.testing.assert_close(found, wanted)
    taeda.testing.assert_close(sums, taeda.cat([s for _, s in expected]).float())
    if window == (-1, -1):
        weights = taeda.randn_like(found)
        grads = taeda.autograd.grad((found * weights).sum(), (q, k, v))
        taeda.testing.assert_close(grads, taeda.autograd.grad((wanted * weights).sum(), (q, k, v)))


def test_a_sequence_does_not_depend_on_the_others():
    q, k = taeda.randn(8, 2, 16), taeda.randn(12, 2, 16)
    whole = varlen_attn(q, k, k, starts(QUERIES), starts(KEYS), 4, 5, num_splits=1)
    alone = varlen_attn(q[:3], k[:3], k[:3], starts([3]), starts([3]), 3, 3)
    assert taeda.equal(whole[:3], alone)


def test_caches_of_keys():
    q, k = random(8, 2, 6), random(12, 2, 6)
    used = taeda.tensor([2, 5, 1, 0])
    found = varlen_attn(q, k, k, starts(QUERIES), starts(KEYS), 4, 5, seqused_k=used)
    parts = zip(q.split(QUERIES), k.split(KEYS), used.tolist(), strict=True)
    expected = [by_definition(a, b[:n], b[:n], (-1, -1))[0] for a, b, n in parts]
    taeda.testing.assert_close(found, taeda.cat(expected))
    pool = random(6, 2, 2, 6)
    table = taeda.tensor([[4, 0, 0], [1, 2, 5], [3, 0, 0], [0, 0, 0]], dtype=taeda.int32)
    paged = {"seqused_k": used, "block_table": table}
    found = varlen_attn(q, pool, pool, starts(QUERIES), None, 4, 5, **paged)
    parts = zip(q.split(QUERIES), table.tolist(), used.tolist(), strict=True)
    expected = [
        by_definition(a, *[taeda.cat([pool[p] for p in pages])[:n]] * 2, (-1, -1))[0]
        for a, pages, n in parts
    ]
    taeda.testing.assert_close(found, taeda.cat(expected))


def test_out():
    q = taeda.randn(5, 2, 4, requires_grad=True)
    out = taeda.empty(5, 2, 4)
    places = starts([2, 3])
    assert varlen_attn_out(out, q, q, q, places, places, 3, 3, scale=0.3) is out
    taeda.testing.assert_close(out, varlen_attn(q, q, q, places, places, 3, 3, scale=0.3).detach())
    request = AuxRequest(lse=True)
    assert len(varlen_attn_out(out, q, q, q, places, places, 3, 3, return_aux=request)) == 2
    with pytest.raises(RuntimeError, match="expected out"):
        varlen_attn_out(taeda.empty(4, 2, 4), q, q, q, places, places, 3, 3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cu_seq_q": taeda.tensor([0, 3])}, "rise from 0 to the 5"),
        ({"cu_seq_q": taeda.tensor([0, 4, 3, 5])}, "rise from 0"),
        ({"cu_seq_k": taeda.tensor([0.0, 5.0])}, "1-D tensor of integers"),
        ({"cu_seq_k": taeda.tensor([0, 5])}, "queries of 2 sequences and keys of 1"),
        ({"max_q": 2}, "must bound the lengths"),
        ({"seqused_k": taeda.tensor([3, 1])}, "must be at most"),
        ({"block_table": taeda.tensor([[0]])}, "needs seqused_k"),
        ({"num_splits": 0}, "num_splits"),
    ],
)
def test_errors(change, message):
    q, places = taeda.randn(5, 2, 4), starts([2, 3])
    given = {"cu_seq_q": places, "cu_seq_k": places, "max_q": 3, "max_k": 3} | change
    with pytest.raises((RuntimeError, ValueError), match=message):
        varlen_attn(q, q, q, **given)
