"""The same bits for any number of threads: work is cut by its size, never by their number."""

from __future__ import annotations

import pytest

import taeda
import taeda.nn.functional as F


def randn(*sizes):
    return taeda.randn(*sizes)


def with_gradients(function, *inputs):
    leaves = [x.detach().requires_grad_() for x in inputs]
    y = function(*leaves)
    taeda.manual_seed(1)
    y.backward(taeda.randn_like(y))
    return [y.detach(), *(x.grad for x in leaves)]


def attention(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def conv(x, w, b):
    return F.conv2d(x, w, b, padding=1)


def batch_norm(x, w, b):
    return F.batch_norm(x, None, None, w, b, training=True)


def embedding():
    at = taeda.randint(0, 3000, (20_000,))
    return with_gradients(lambda w: F.embedding(at, w), randn(3000, 96))


def loss(x):
    at = taeda.randint(0, x.size(1), (x.size(0),))
    return F.cross_entropy(x, at)


def linear_algebra():
    a, b = randn(300, 300), randn(300, 70)
    definite = a @ a.mT + 300 * taeda.eye(300)
    large = randn(450, 450)
    lower, factors = taeda.linalg.cholesky(definite), taeda.linalg.lu_factor(a)
    return [
        *factors,
        taeda.linalg.lu_factor(randn(200, 400)).LU,
        taeda.linalg.solve(a, b),
        lower,
        taeda.cholesky_solve(b, lower),
        taeda.linalg.solve_triangular(lower, b.mT, upper=False, left=False),
        *taeda.linalg.eigh(a + a.mT),
        taeda.linalg.eigvalsh(large + large.mT),
        *taeda.linalg.qr(a),
        taeda.linalg.qr(a[:100]).R,
        taeda.ormqr(*taeda.geqrf(a), b.mT, left=False),
    ]


def index_add():
    at = taeda.randint(0, 500, (30_000,))
    return [taeda.zeros(500, 32).index_add(0, at, randn(30_000, 32))]


def recurrent(kind):
    layer = kind(24, 40)
    x = randn(30, 50, 24).requires_grad_()
    layer(x)[0].sum().backward()
    return [x.grad, *(p.grad for p in layer.parameters())]


CASES = {
    "add": lambda: [randn(700, 800) + randn(800)],
    "gelu": lambda: with_gradients(F.gelu, randn(300_001)),
    "sum": lambda: [randn(1_000_003).sum(), randn(3, 300_000).sum(1), randn(3000, 300).sum(0)],
    "prod": lambda: [(randn(300_001) * 0.01 + 1).prod()],
    "var": lambda: [randn(1_000_003).var(), randn(700, 900).var(1), randn(3000, 300).std(0)],
    "norm": lambda: [randn(1_000_003).norm(), randn(1000, 300).norm(dim=1)],
    "max": lambda: [*randn(1000, 700).max(1), *randn(3000, 70).min(0), randn(500_000).argmax()],
    "logsumexp": lambda: [randn(500, 700).logsumexp(1), randn(500, 700).logsumexp(0)],
    "matmul": lambda: with_gradients(taeda.matmul, randn(257, 301), randn(301, 190)),
    "matmul of bfloat16": lambda: [randn(200, 300).bfloat16() @ randn(300, 100).bfloat16()],
    "matrix times vector": lambda: [randn(2000, 700) @ randn(700), randn(700) @ randn(700, 900)],
    "bmm": lambda: with_gradients(taeda.bmm, randn(24, 60, 70), randn(24, 70, 50)),
    "linear": lambda: with_gradients(F.linear, randn(300, 200), randn(100, 200), randn(100)),
    "linear of many rows": lambda: with_gradients(
        F.linear, randn(900, 520), randn(330, 520), randn(330)
    ),
    "LSTM": lambda: recurrent(taeda.nn.LSTM),
    "GRU": lambda: recurrent(taeda.nn.GRU),
    "conv2d": lambda: with_gradients(conv, randn(6, 16, 24, 24), randn(32, 16, 3, 3), randn(32)),
    "conv2d of one channel": lambda: with_gradients(
        conv, randn(16, 1, 28, 28), randn(16, 1, 3, 3), randn(16)
    ),
    "conv2d in steps": lambda: with_gradients(
        lambda x, w: F.conv2d(x, w, stride=2, padding=1), randn(20, 64, 8, 8), randn(96, 64, 3, 3)
    ),
    "conv2d of groups": lambda: with_gradients(
        lambda x, w: F.conv2d(x, w, padding=1, groups=4), randn(6, 64, 20, 20), randn(96, 16, 3, 3)
    ),
    "conv2d of many weights": lambda: with_gradients(
        lambda x, w: F.conv2d(x, w, padding=1), randn(1, 300, 7, 7), randn(200, 300, 3, 3)
    ),
    "conv3d in steps": lambda: with_gradients(
        lambda x, w, b: F.conv3d(x, w, b, stride=2, padding=1),
        randn(2, 16, 16, 16, 16),
        randn(32, 16, 3, 3, 3),
        randn(32),
    ),
    "conv2d of planes, 7x7": lambda: with_gradients(
        lambda x, w: F.conv2d(x, w, padding=3, groups=24), randn(8, 24, 28, 28), randn(24, 1, 7, 7)
    ),
    "conv2d of small planes": lambda: with_gradients(
        lambda x, w: F.conv2d(x, w, padding=1, groups=200), randn(8, 200, 7, 7), randn(200, 1, 3, 3)
    ),
    "conv1d": lambda: with_gradients(F.conv1d, randn(8, 16, 300), randn(24, 16, 5)),
    "conv_transpose2d": lambda: with_gradients(
        F.conv_transpose2d, randn(4, 16, 14, 14), randn(16, 8, 3, 3)
    ),
    "conv_transpose2d in steps": lambda: with_gradients(
        lambda x, w: F.conv_transpose2d(x, w, stride=2, padding=1),
        randn(2, 64, 16, 16),
        randn(64, 32, 4, 4),
    ),
    "max_pool2d": lambda: with_gradients(lambda x: F.max_pool2d(x, 3, 2), randn(8, 16, 40, 40)),
    "layer_norm": lambda: with_gradients(
        lambda x, w, b: F.layer_norm(x, (300,), w, b), randn(900, 300), randn(300), randn(300)
    ),
    "group_norm": lambda: with_gradients(
        lambda x, w, b: F.group_norm(x, 4, w, b), randn(16, 32, 20, 20), randn(32), randn(32)
    ),
    "batch_norm": lambda: with_gradients(batch_norm, randn(16, 32, 20, 20), randn(32), randn(32)),
    "batch_norm of rows": lambda: with_gradients(
        batch_norm, randn(2000, 300), randn(300), randn(300)
    ),
    "softmax": lambda: with_gradients(lambda x: F.softmax(x, 1), randn(900, 700)),
    "log_softmax": lambda: with_gradients(lambda x: F.log_softmax(x, 1), randn(900, 700)),
    "softmax of columns": lambda: with_gradients(lambda x: F.softmax(x, 0), randn(400, 900)),
    "cross_entropy": lambda: with_gradients(loss, randn(900, 700)),
    "embedding": embedding,
    "index_add": index_add,
    "gather": lambda: [randn(90_000).gather(0, taeda.randint(0, 90_000, (200_000,)))],
    "cat": lambda: [
        taeda.cat([randn(700, 500), randn(700, 301)], 1),
        taeda.cat([randn(200_000)] * 2),
    ],
    "transpose": lambda: [randn(700, 900).t().contiguous(), randn(4, 80, 900).mT.contiguous()],
    "sort": lambda: [*randn(300_000).sort(), *randn(400, 900).sort(1), *randn(5000, 9).sort(1)],
    "ranks": lambda: [
        *randn(300_000).median(0),
        *randn(300_000).kthvalue(77),
        randn(900, 300).mode(0)[0],
    ],
    "topk": lambda: [*randn(400, 2000).topk(10), *randn(400, 900).topk(300)],
    "cumsum": lambda: [
        randn(300_000).cumsum(0),
        randn(2, 150_001).cumsum(1),
        randn(500, 600).cumsum(1),
    ],
    "linear algebra": linear_algebra,
    "attention": lambda: with_gradients(
        attention, randn(2, 4, 200, 32), randn(2, 4, 200, 32), randn(2, 4, 200, 32)
    ),
    "fft": lambda: [taeda.view_as_real(taeda.fft.fft(randn(200, 1000)))],
    "dropout": lambda: [F.dropout(randn(300_000), 0.3)],
    "random numbers": lambda: [
        taeda.rand(100_003),
        taeda.rand(50_001, dtype=taeda.float64),
        randn(100_003),
        taeda.randn(50_001, dtype=taeda.float64),
        randn(40_000).bfloat16().normal_(),
        taeda.zeros(60_000).bernoulli_(0.3),
        taeda.zeros(60_001).exponential_(),
        taeda.zeros(60_001).geometric_(0.3),
        taeda.randint(0, 10, (60_001,)),
        taeda.bernoulli(taeda.rand(60_001)),
        taeda.rand(3),
    ],
    "interpolate": lambda: with_gradients(
        lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), randn(4, 8, 40, 40)
    ),
}


@pytest.fixture
def threads():
    before = taeda.get_num_threads()
    yield taeda.set_num_threads
    taeda.set_num_threads(before)


def same_bits(a, b):
    return a.dtype == b.dtype and taeda.equal(a.view(taeda.uint8), b.view(taeda.uint8))


@pytest.mark.parametrize("name", CASES)
def test_same_bits(name, threads):
    results = []
    for count in (1, 2, 3):
        threads(count)
        taeda.manual_seed(0)
        results.append([x.contiguous().reshape(-1) for x in CASES[name]()])
    for other in results[1:]:
        for k, (a, b) in enumerate(zip(results[0], other, strict=True)):
            assert same_bits(a, b), f"result {k} depends on the number of threads"
