"""Results larger than the caches, which are written past them, and long lines of indices."""

from __future__ import annotations

import pytest

import taeda


@pytest.mark.parametrize("offset", [0, 3])
def test_results_larger_than_the_caches(offset):
    n = 9_000_005
    a, b, out = taeda.rand(n + offset), taeda.rand(n + offset), taeda.zeros(n + offset)
    taeda.add(a[offset:], b[offset:], out=out[offset:])
    assert taeda.equal(out[offset:], (a.double() + b.double()).float()[offset:])
    assert not out[:offset].any()
    kept = a.clone()
    a.mul_(b)
    assert taeda.equal(a[-1000:], kept[-1000:] * b[-1000:])
    assert taeda.equal(a[:1000], kept[:1000] * b[:1000])


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "bfloat16", "complex64"])
def test_one_operand_and_numbers(dtype):
    dtype = getattr(taeda, dtype)
    n = (33 << 20) // dtype.itemsize + 5
    part = (taeda.arange(1_003) % 7 - 3).to(dtype)
    x = part.repeat(n // 1_003 + 1)[:n]
    ends = [slice(0, 2_000), slice(n // 2, n // 2 + 2_000), slice(n - 2_000, n)]
    functions = [taeda.neg, taeda.square, lambda v: v * 2, lambda v: 3 - v, lambda v: v - v * v]
    if not dtype.is_complex:
        functions += [lambda v: v.clamp(-1, 2), lambda v: v.abs() % 2]
    if dtype.is_floating_point:
        functions += [taeda.relu, taeda.exp, lambda v: v / 3]
    for function in functions:
        y = function(x)
        for end in ends:
            assert taeda.equal(y[end], function(x[end]))
    y = x.clone()
    y.mul_(2).add_(x)
    for end in ends:
        assert taeda.equal(y[end], x[end] * 2 + x[end])


def test_functions_that_take_long():
    n = (8 << 20) + 77
    part = taeda.linspace(-9, 9, 1_003)
    part[5:10] = taeda.tensor([0.0, -0.0, float("nan"), float("inf"), -float("inf")])
    x = part.repeat(n // 1_003 + 1)[:n]
    x[70] = x[-3] = 1e6  # too wide an angle for the quick sine
    names = [
        "exp",
        "exp2",
        "expm1",
        "log",
        "log1p",
        "sin",
        "cos",
        "tan",
        "asin",
        "atan",
        "sinh",
        "tanh",
        "sigmoid",
        "erf",
        "sqrt",
        "rsqrt",
    ]
    functions = [getattr(taeda, name) for name in names]
    functions += [taeda.nn.functional.gelu, taeda.nn.functional.silu, taeda.nn.functional.mish]
    for function in functions:
        y = function(x)
        for end in (slice(0, 1_024), slice(4_096_000, 4_097_000), slice(n - 77, n)):
            expected = function(x[end])
            assert taeda.equal(y[end].isnan(), expected.isnan())
            taeda.testing.assert_close(y[end], expected, rtol=3e-7, atol=0, equal_nan=True)


def test_large_choices():
    n = (8 << 20) + 3
    x, y = taeda.randn(n), taeda.randn(n)
    chosen = taeda.where(x > y, x, y)
    assert taeda.equal(chosen, taeda.maximum(x, y))
    assert taeda.equal(x.masked_fill(x < 0, 0), x.relu())
    x.requires_grad_()
    (slope,) = taeda.autograd.grad(x.relu(), x, y)
    assert taeda.equal(slope, (x.detach() > 0) * y)


def test_large_bools_and_slopes():
    n = (33 << 20) + 3
    x = (taeda.arange(n) % 11).float()
    for function in (lambda v: v > 5, lambda v: v == v * 2, taeda.isnan, taeda.logical_not):
        y = function(x)
        for end in (slice(0, 999), slice(n - 999, n)):
            assert taeda.equal(y[end], function(x[end]))
    x = x[: (9 << 20) + 1].requires_grad_()
    for function in (taeda.tanh, taeda.sin, taeda.relu, taeda.nn.functional.gelu):
        whole = taeda.autograd.grad(function(x).sum(), x)[0]
        end = x.detach()[-999:].requires_grad_()
        assert taeda.equal(whole[-999:], taeda.autograd.grad(function(end).sum(), end)[0])


@pytest.mark.parametrize("offset", [0, 3])
def test_large_copies(offset):
    n = 4_500_007
    x = taeda.arange(n + offset, dtype=taeda.int32)[offset:]
    ends = taeda.tensor([offset, n - 1 + offset], dtype=taeda.int32)
    y = x.clone()
    assert taeda.equal(y[:: n - 1], ends)
    assert taeda.equal(y[1:] - y[:-1], taeda.ones(n - 1, dtype=taeda.int32))
    joined = taeda.cat([x, x[:7], y])
    assert joined.shape == (2 * n + 7,)
    assert taeda.equal(joined[:n], x)
    assert taeda.equal(joined[n : n + 7], x[:7])
    assert taeda.equal(joined[n + 7 :], y)


@pytest.mark.parametrize("dtype", ["bfloat16", "float64", "int8", "int64", "complex64", "bool"])
def test_large_conversions(dtype):
    dtype = getattr(taeda, dtype)
    n = (17 << 20) // dtype.itemsize + 3
    x = (taeda.arange(1_003) % 120 - 3).float().repeat(n // 1_003 + 1)[:n]
    y = x.to(dtype)
    for part in (slice(0, 1_100), slice(n - 1_100, n)):
        assert taeda.equal(y[part], x[part].to(dtype))
    middle = slice(n // 2, n // 2 + 70_000)
    assert taeda.equal(y[middle], x[middle].to(dtype))


def test_large_joins_of_columns():
    a, b = taeda.rand(1500, 2100), taeda.rand(1500, 900)
    joined = taeda.cat([a, b, a[:, :0]], 1)
    assert taeda.equal(joined[:, :2100], a)
    assert taeda.equal(joined[:, 2100:], b)


@pytest.mark.parametrize("width", [1, 24, 64, 1000])
def test_large_selections(width):
    count = 4_300_000 // width
    x = taeda.arange(300 * width).reshape(300, width).float()
    at = taeda.randint(0, 300, (count,))
    expected = at.float().unsqueeze(1) * width + taeda.arange(width)
    assert taeda.equal(x.index_select(0, at), expected)
    assert taeda.equal(x[at - 300], expected)
    assert taeda.equal(taeda.nn.functional.embedding(at, x), expected)
    assert taeda.equal(x[at, width - 1], expected[:, -1])


@pytest.mark.parametrize("n", [1, 63, 64, 65, 127, 128, 129, 16_385, 100_003])
def test_long_lines_of_indices(n):
    x = taeda.arange(3 * n).reshape(3, n)
    at = taeda.randint(0, n, (3, n))
    expected = at + taeda.arange(3).unsqueeze(1) * n
    assert taeda.equal(x.gather(1, at), expected)
    assert taeda.equal(x.t().gather(0, at.t()).t(), expected)
    assert taeda.equal(x[0].gather(0, at[0].int()), at[0])
    for bad in (n, -1, -(2**63), 2**63 - 1):
        wrong = at.clone()
        wrong[2, n - 1] = bad
        with pytest.raises(RuntimeError, match=f"index {bad} is out of bounds for dimension 1"):
            x.gather(1, wrong)
        with pytest.raises(IndexError, match=str(bad)):
            x.index_select(1, wrong[2])


@pytest.mark.parametrize("dtype", [taeda.float32, taeda.float64, taeda.int16])
@pytest.mark.parametrize(
    "shape", [(2048, 2064), (2083, 2090), (16, 300_017), (300_000, 17), (3, 1040, 1424)]
)
def test_large_transposes(dtype, shape):
    x = taeda.arange(taeda.Size(shape).numel(), dtype=taeda.int32).reshape(shape).to(dtype)
    y = x.transpose(-1, -2).contiguous()
    assert y.is_contiguous()
    assert y.shape == x.transpose(-1, -2).shape
    for i in (0, 1, shape[-2] // 2 + 1, shape[-2] - 1):
        assert taeda.equal(y[..., i], x[..., i, :])
    assert taeda.equal(y.transpose(-1, -2), x)
    wide = taeda.zeros(*y.shape[:-1], y.shape[-1] + 5, dtype=dtype)
    wide[..., 3:-2] = x.transpose(-1, -2)
    assert taeda.equal(wide[..., 3:-2], y)
    assert not wide[..., :3].any()
    assert not wide[..., -2:].any()


@pytest.mark.parametrize("dtype", [taeda.float32, taeda.float64])
@pytest.mark.parametrize("width", [1024, 1000, 16_384])
def test_large_softmax(dtype, width):
    rows = 20_000_000 // (4 * width) + 3
    x = taeda.randn(rows, width, dtype=dtype) * 10
    x[1, ::3] = -float("inf")
    x[2, 7] = float("nan")
    x[3, 1:] = -200.0
    x[4] = -float("inf")
    for function in (taeda.softmax, taeda.log_softmax):
        y = function(x, 1)
        for part in (slice(0, 7), slice(rows - 6, rows)):  # these are not written past the caches
            taeda.testing.assert_close(
                y[part], function(x[part], 1), rtol=0, atol=0, equal_nan=True
            )
        assert y[2].isnan().all()
        assert y[4].isnan().all()
    exact = taeda.softmax(x[:2].double(), 1)
    taeda.testing.assert_close(taeda.softmax(x, 1)[:2].double(), exact, rtol=6e-6, atol=1.2e-38)
    assert not taeda.softmax(x, 1)[1, ::3].any()


@pytest.mark.parametrize("dtype", [taeda.float32, taeda.float64], ids=str)
@pytest.mark.parametrize("width", [1024, 1000, 560])
def test_large_softmax_gradients(dtype, width):
    rows = 20_000_000 // (4 * width) + 3
    x, g = taeda.randn(rows, width, dtype=dtype) * 5, taeda.randn(rows, width, dtype=dtype)

    def gradient(function, x, g):
        x = x.clone().requires_grad_()
        function(x, 1).backward(g)
        return x.grad

    for function in (taeda.softmax, taeda.log_softmax):
        grad = gradient(function, x, g)
        for part in (slice(0, 7), slice(rows - 6, rows)):  # these are not written past the caches
            few = gradient(function, x[part], g[part])
            taeda.testing.assert_close(grad[part], few, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("affine", ["", "w", "b", "wb"])
@pytest.mark.parametrize("width", [1024, 1000])
def test_large_layer_norm(affine, width):
    rows = 20_000_000 // (4 * width) + 3
    x = taeda.randn(rows, width) + 3
    w = taeda.rand(width) if "w" in affine else None
    b = taeda.rand(width) if "b" in affine else None
    y = taeda.layer_norm(x, (width,), w, b)
    for part in (slice(0, 7), slice(rows - 6, rows)):
        exact = taeda.layer_norm(
            x[part].double(), (width,), *(v if v is None else v.double() for v in (w, b))
        )
        taeda.testing.assert_close(y[part].double(), exact, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("affine", [False, True])
def test_large_layer_norm_backward(affine):
    rows, width = 5003, 1024
    x, g = taeda.randn(rows, width) + 1, taeda.randn(rows, width)
    parameters = [taeda.rand(width), taeda.rand(width)] if affine else []
    leaves = [v.clone().requires_grad_() for v in (x, *parameters)]
    taeda.layer_norm(leaves[0], (width,), *leaves[1:]).backward(g)
    wide = [v.double().requires_grad_() for v in (x, *parameters)]
    taeda.layer_norm(wide[0], (width,), *wide[1:]).backward(g.double())
    for mine, exact in zip(leaves, wide, strict=True):
        taeda.testing.assert_close(mine.grad.double(), exact.grad, rtol=1e-5, atol=2e-4)
