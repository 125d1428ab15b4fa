"""Layouts and values that kernels treat apart: reversed, rolled and expanded inputs, bytes, whole
numbers at the edges of float64."""

from __future__ import annotations

import pytest

np = pytest.importorskip("numpy")

import taeda  # noqa: E402

DTYPES = [
    taeda.bool, taeda.uint8, taeda.int16, taeda.int64, taeda.float16, taeda.float32, taeda.float64,
    taeda.complex64, taeda.complex128,
]  # fmt: skip


def numbers(*sizes, dtype=taeda.float32):
    taeda.manual_seed(7)
    return (taeda.rand(*sizes) * 100).to(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_reversed_and_rolled(dtype):
    for sizes in [(5, 70), (3, 4, 33), (1, 1), (40_001,)]:
        x = numbers(*sizes, dtype=dtype)
        for dims in [(0,), (-1,), tuple(range(len(sizes)))]:
            assert np.array_equal(x.flip(dims).numpy(), np.flip(x.numpy(), dims))
        assert np.array_equal(x.T.flip(0).numpy() if x.dim() == 2 else x.flip(0).numpy(),
                              np.flip(x.numpy().T if x.dim() == 2 else x.numpy(), 0))  # fmt: skip
    # Rows of a page, moved by little: where copies run from the end.
    for shift in (1, 2, 7, 60, 600, -1, -9):
        x = numbers(6, 4096 // dtype.itemsize, dtype=dtype)
        for dims in [(1,), (0,), (0, 1)]:
            shifts = (shift,) * len(dims)
            assert np.array_equal(x.roll(shifts, dims).numpy(), np.roll(x.numpy(), shifts, dims))
    x = numbers(9, dtype=dtype)
    wide = x[:, None].expand(9, 50)
    assert np.array_equal(wide.contiguous().numpy(), np.repeat(x.numpy()[:, None], 50, 1))


@pytest.mark.parametrize("dtype", DTYPES)
def test_permuted_and_every_other(dtype):
    x = numbers(5, 7, 66, dtype=dtype)
    for order in [(2, 0, 1), (1, 0, 2), (2, 1, 0)]:
        y, want = x.permute(order), x.numpy().transpose(order)
        for dims in [(0,), (1, 2), (0, 1, 2)]:
            assert np.array_equal(y.flip(dims).numpy(), np.flip(want, dims))
    for n in (1, 2, 15, 64, 66):
        for first in (0, 1):
            part = x[:, :, first:n:2]
            assert np.array_equal(part.contiguous().numpy(), x.numpy()[:, :, first:n:2])


def bits(x):
    return x.view(taeda.int16).numpy().view(np.uint16)


@pytest.mark.parametrize("dtype", [taeda.float16, taeda.bfloat16])
def test_signs_of_halves(dtype):
    special = taeda.tensor([0.0, -0.0, float("inf"), -float("inf"), float("nan"), 1e-7, -1e-7])
    x = taeda.cat([special, taeda.randn(83)]).to(dtype)
    y = taeda.randn(90).to(dtype)
    for a, b in [(x, y), (x[:5], y[:5]), (x[::3], y[::3]), (x.view(9, 10).t(), y.view(10, 9))]:
        p, q = bits(a.contiguous()), bits(b.contiguous())
        assert np.array_equal(bits((-a).contiguous()), p ^ 0x8000)
        assert np.array_equal(bits(a.abs().contiguous()), p & 0x7FFF)
        signed = taeda.copysign(a, b).contiguous()
        assert np.array_equal(bits(signed), (p & 0x7FFF) | (q & 0x8000))
        assert np.array_equal(bits(taeda.copysign(a, -1.0).contiguous()), p | 0x8000)
    assert taeda.copysign(x, y.float()).dtype == taeda.float32
    assert bits(taeda.neg(x, out=taeda.empty_like(x)))[1] == 0
    leaf = x[7:].clone().requires_grad_()
    (-leaf.abs()).sum().backward()
    assert taeda.equal(leaf.grad, -x[7:].sign())


def test_larger_and_smaller_bools():
    a, b = numbers(33, 40) > 50, numbers(40).expand(33, 40) > 30
    for name in ("maximum", "fmax", "minimum", "fmin"):
        want = (np.maximum if name in ("maximum", "fmax") else np.minimum)(a.numpy(), b.numpy())
        assert np.array_equal(getattr(taeda, name)(a, b).numpy(), want)


def test_plus_is_the_same_tensor():
    x = numbers(3).requires_grad_()
    assert taeda.positive(x) is x and +x is x


@pytest.mark.parametrize("dtype", [taeda.float16, taeda.bfloat16])
def test_operands_that_are_one(dtype):
    x = numbers(70, 90, dtype=dtype)
    for y in (x, x.t(), x[:, ::2], x[:1].expand(20, -1)):
        copied = y.clone()
        assert taeda.equal(y + y, y + copied) and taeda.equal(y * y, y * copied)
        assert taeda.equal(taeda.addcmul(y, y, y), taeda.addcmul(y, copied, copied.clone()))


def test_gradients_of_sums_pass_through():
    a, b = numbers(3, 4).requires_grad_(), numbers(4).requires_grad_()
    g = numbers(3, 4)
    for call, sign in ((lambda: a + b, 1), (lambda: a - b, -1)):
        a.grad = b.grad = None
        call().backward(g)
        assert taeda.equal(a.grad, g) and taeda.equal(b.grad, g.sum(0) * sign)
        a.grad.zero_()
        assert g.abs().sum() > 0
    (a + a).backward(g)
    assert taeda.equal(a.grad, g * 2)
    c = numbers(3, 4, dtype=taeda.complex64).requires_grad_()
    a.grad = None
    (c + a).backward(c.detach())
    assert taeda.equal(a.grad, c.detach().real)


@pytest.mark.parametrize("dtype", [taeda.int32, taeda.int64])
def test_whole_division(dtype):
    kind = getattr(np, str(dtype).removeprefix("taeda."))
    least, most = np.iinfo(kind).min, np.iinfo(kind).max
    edges = {least, least + 1, most, most - 1, -1, 0, 1, 2, 3, -3, 7, 2**31 - 1, -(2**31)}
    if dtype == taeda.int64:
        for bits in (52, 53, 54, 62):
            edges |= {s * (2**bits + o) for s in (1, -1) for o in (-1, 0, 1)}
    values = np.array(sorted(edges), dtype=kind)
    for divisor in sorted(edges - {0}):
        y = np.full_like(values, divisor)
        a, b = taeda.from_numpy(values.copy()), taeda.from_numpy(y)
        with np.errstate(over="ignore"):
            exact = [(int(v) // divisor, int(v) % divisor) for v in values]
        floor = np.array([q for q, _ in exact], dtype=object)
        floor = np.array([least if q > most else q for q in floor], dtype=kind)
        assert np.array_equal((a // b).numpy(), floor), divisor
        assert np.array_equal((a % b).numpy(), np.array([r for _, r in exact], dtype=kind)), divisor
        truncated = [abs(int(v)) // abs(divisor) * (1 if (v < 0) == (divisor < 0) else -1)
                     for v in values]  # fmt: skip
        truncated = np.array([least if q > most else q for q in truncated], dtype=kind)
        assert np.array_equal(taeda.div(a, b, rounding_mode="trunc").numpy(), truncated), divisor
        rest = np.array([int(v) - int(v) // divisor * divisor if (v < 0) == (divisor < 0) or
                         int(v) % divisor == 0 else int(v) % divisor - divisor
                         for v in values], dtype=kind)  # fmt: skip
        assert np.array_equal(taeda.fmod(a, b).numpy(), rest), divisor
    x = taeda.arange(-1500, 1500, dtype=dtype)
    for divisor in (1, 3, 7, -5, 1000):
        assert np.array_equal((x // divisor).numpy(), x.numpy() // divisor)
        assert np.array_equal((x % divisor).numpy(), x.numpy() % divisor)
    for call in (lambda: x // 0, lambda: x % 0, lambda: taeda.fmod(x, 0)):
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            call()


def test_logarithms_to_other_bases():
    powers = taeda.arange(-126, 128).float()
    assert taeda.equal(taeda.log2(2**powers), powers)
    tens = taeda.tensor([10.0**k for k in range(11)])
    assert taeda.equal(tens.log10(), taeda.arange(11.0))
    x = taeda.cat([numbers(5000) + 1e-3, taeda.tensor([1e-45, 3e38, 1e-38])])
    for ours, theirs in ((x.log2(), np.log2), (x.log10(), np.log10)):
        expected = theirs(x.numpy().astype("float64"))
        assert np.abs(ours.numpy() - expected).max() < 2e-6 * 10
    odd = taeda.tensor([0.0, -0.0, -1.0, float("inf"), float("nan")])
    for call in (taeda.log2, taeda.log10):
        got = call(odd)
        assert got[:2].eq(-float("inf")).all() and got[2].isnan() and got[4].isnan()
        assert got[3] == float("inf")


@pytest.mark.parametrize("dtype", [taeda.bool, taeda.uint8, taeda.int8, taeda.float16])
def test_reductions_of_narrow_elements(dtype):
    taeda.manual_seed(1)
    for sizes in [(1,), (15,), (63, 65), (5000,), (3, 70_000)]:
        x = taeda.randint(0, 2 if dtype == taeda.bool else 127, sizes).to(dtype)
        wide = x.numpy().astype("float64")
        for dim in (None, 0, -1):
            total = x.sum() if dim is None else x.sum(dim)
            counted = x.count_nonzero() if dim is None else x.count_nonzero(dim)
            assert np.array_equal(counted.numpy(), (wide != 0).sum(dim))
            if dtype == taeda.float16:
                with np.errstate(over="ignore"):
                    expected = wide.sum(dim).astype("float32").astype("float16")
                assert np.array_equal(total.numpy(), expected)
            else:
                assert np.array_equal(total.numpy(), wide.sum(dim))
    full = taeda.full((4, 100_000), 255, dtype=taeda.uint8)
    assert full.sum() == 4 * 100_000 * 255 and (full.sum(1) == 25_500_000).all()


@pytest.mark.parametrize("dtype", [taeda.float32, taeda.float64, taeda.int64, taeda.bool])
def test_scatter_and_gather_by_rows(dtype):
    x, rows = numbers(50, 40, dtype=dtype), taeda.randint(0, 20, (50,))
    wide = rows[:, None].expand(50, 40)
    dense = wide.contiguous()
    target = taeda.zeros(20, 40, dtype=dtype)
    assert taeda.equal(target.scatter_add(0, wide, x), target.scatter_add(0, dense, x))
    assert taeda.equal(target.scatter(0, wide, x), target.scatter(0, dense, x))
    assert taeda.equal(x.gather(0, wide), x.gather(0, dense))
    assert taeda.equal(x.t().gather(1, wide.t()), x.t().gather(1, dense.t()))
    assert taeda.equal(x[:, ::2].gather(0, wide[:, :20]), x[:, ::2].gather(0, dense[:, :20]))
    if dtype != taeda.bool:
        for how in ("sum", "prod", "amax", "amin", "mean"):
            a, b = (target.scatter_reduce(0, i, x, how) for i in (wide, dense))
            assert taeda.equal(a, b)
    one = taeda.tensor(3).expand(4, 40)
    assert taeda.equal(x.gather(0, one), x[3].expand(4, 40))
    for index in (wide + 50, (rows - 50)[:, None].expand(50, 40)):
        with pytest.raises((RuntimeError, IndexError), match="out of bounds"):
            x.gather(0, index)
        with pytest.raises((RuntimeError, IndexError), match="out of bounds"):
            target.scatter_add(0, index, x)


@pytest.mark.parametrize("dtype", DTYPES)
def test_unique_consecutive(dtype):
    x = taeda.tensor([1, 1, 0, 0, 0, 1, 3, 3, 1]).to(dtype)
    values, inverse, counts = x.unique_consecutive(return_inverse=True, return_counts=True)
    if dtype == taeda.bool:
        assert values.tolist() == [True, False, True] and counts.tolist() == [2, 3, 4]
        return
    assert values.tolist() == [1, 0, 1, 3, 1] and counts.tolist() == [2, 3, 1, 2, 1]
    assert inverse.tolist() == [0, 0, 1, 1, 1, 2, 3, 3, 4]
    assert x[:0].unique_consecutive().shape == (0,)
    assert x.reshape(3, 3).unique_consecutive().tolist() == values.tolist()
    assert x.reshape(1, 9).unique_consecutive(dim=1).tolist() == [values.tolist()]


@pytest.mark.parametrize("dtype", [taeda.float32, taeda.float64, taeda.complex64])
def test_small_systems(dtype):
    taeda.manual_seed(2)
    for n in (1, 2, 3, 4, 7, 12, 13):
        a = taeda.randn(40, n, n, dtype=dtype) + 0.5 * taeda.eye(n, dtype=dtype)
        b = taeda.randn(40, n, 3, dtype=dtype)
        wide = a.numpy().astype("complex128" if dtype.is_complex else "float64")
        close = {"rtol": 2e-2, "atol": 2e-3} if dtype != taeda.float64 else {"rtol": 1e-8}
        lu, pivots = taeda.linalg.lu_factor(a)
        p, low, up = taeda.lu_unpack(lu, pivots)
        product = (p @ low @ up).numpy()
        np.testing.assert_allclose(product, a.numpy(), rtol=1e-4, atol=1e-4)
        assert low.abs().max() <= 1.5
        np.testing.assert_allclose(taeda.linalg.det(a).numpy(), np.linalg.det(wide), **close)
        np.testing.assert_allclose((a @ taeda.linalg.solve(a, b)).numpy(), b.numpy(), **close)
        np.testing.assert_allclose(
            (a @ taeda.linalg.inv(a)).numpy(), np.broadcast_to(np.eye(n), a.shape), **close,
            **({} if "atol" in close else {"atol": 1e-8}),
        )  # fmt: skip
    singular = taeda.ones(2, 3, 3, dtype=dtype)
    assert taeda.equal(taeda.linalg.det(singular), taeda.zeros(2, dtype=dtype))
    assert (taeda.linalg.inv_ex(singular).info == 2).all()
    with pytest.raises(RuntimeError, match="singular"):
        taeda.linalg.solve(singular, singular)


@pytest.mark.parametrize("dtype", [taeda.float32, taeda.float64, taeda.float16, taeda.int64])
def test_sums_of_few_rows(dtype):
    for sizes, dim in [
        ((2, 40), 0), ((3, 1000), 0), ((8, 33), 0), ((9, 64), 0), ((5, 7, 200), 1),
        ((2, 3, 100), (0, 1)), ((4, 2, 2, 64), (1, 2)), ((2, 1, 4, 70_001), (0, 2)),
        ((3, 2, 31), 1), ((6, 1, 50), 1), ((1, 4, 50), (0, 1)), ((32, 5), 0), ((64, 10), 0),
        ((65, 3), 0), ((7, 2), 0), ((3, 31, 13), 1), ((40, 17), 0), ((12, 1), 0),
    ]:  # fmt: skip
        x = numbers(*sizes, dtype=dtype) - 50
        expected = x.numpy().astype("float64").sum(dim)
        close = (
            {"rtol": 1e-3, "atol": 1e-2} if dtype == taeda.float16 else {"rtol": 2e-6, "atol": 1e-4}
        )
        np.testing.assert_allclose(x.sum(dim).numpy(), expected, **close)
        turned = x.transpose(0, -1).contiguous().transpose(0, -1)
        np.testing.assert_allclose(turned.sum(dim).numpy(), expected, **close)
        apart = numbers(2 * sizes[0], *sizes[1:], dtype=dtype)[::2]
        np.testing.assert_allclose(
            apart.sum(dim).numpy(), apart.numpy().astype("float64").sum(dim), **close
        )
        same = x[0].expand(4, *sizes[1:])
        np.testing.assert_allclose(same.sum(0).numpy(), x[0].numpy() * 4.0, **close)
    x, before, sums = numbers(4, 300_000), taeda.get_num_threads(), []
    for count in (1, 2, 3):
        taeda.set_num_threads(count)
        sums.append(x.sum(0))
    taeda.set_num_threads(before)
    assert taeda.equal(sums[1], sums[0]) and taeda.equal(sums[2], sums[0])


@pytest.mark.parametrize("columns", [127, 128, 255, 256, 257, 1024, 2500])
def test_operands_with_one_value_a_row(columns):
    x, v, w = taeda.rand(7, columns) + 0.5, taeda.rand(7) + 0.5, taeda.rand(columns) + 0.5
    left, right = v.double()[:, None], w.double()
    for got, want in [
        (x * v[:, None], x.double() * left),
        (v[:, None] / x, left / x.double()),
        (taeda.where(v[:, None] > 1, x, v[:, None]), taeda.where(left > 1, x.double(), left)),
        (taeda.outer(v, w), left * right),
        (taeda.addr(x, v, w), x.double() + left * right),
        (taeda.addr(x[0], v, w, beta=2, alpha=3), 2 * x[0].double() + 3 * left * right),
    ]:
        taeda.testing.assert_close(got.double(), want, rtol=2e-7, atol=2e-7)


@pytest.mark.parametrize("rows", [1, 100, 5000, 300_001])
@pytest.mark.parametrize("columns", [1, 2, 3, 40])
def test_sums_of_narrow_columns(rows, columns):
    x = taeda.rand(rows, columns, dtype=taeda.complex64)
    exact = x.numpy().astype("complex128").sum(0)
    np.testing.assert_allclose(x.sum(0).numpy(), exact, rtol=1e-6)


def test_cumulative_extremes_of_lines():
    nan, inf = float("nan"), float("inf")
    for line in ([1.0, 3.0, 3.0, 2.0, nan, 5.0, nan, 7.0], [nan, 1.0], [-inf, -inf, inf, 0.0]):
        x = taeda.tensor(line)
        column = x[:, None].expand(-1, 3).contiguous()
        for call in (taeda.cummax, taeda.cummin):
            ours, across = call(x, 0), call(column, 0)
            assert (
                ours.values.numpy().tobytes() == across.values[:, 1].contiguous().numpy().tobytes()
            )
            assert taeda.equal(ours.indices, across.indices[:, 1])


@pytest.mark.parametrize(
    ("size", "stride", "offset"),
    [
        ((3, 4), (8, 1), 0),  # apart
        ((4, 3), (1, 8), 2),
        ((2, 3), (7, 2), 5),
        ((5,), (0,), 3),  # the same place again and again
        ((3, 4), (1, 1), 1),
        ((0, 2), (4, 1), 0),
        ((), (), 7),
    ],
)
@pytest.mark.parametrize("source", ["whole", "turned", "part", "expanded"])
def test_gradient_of_as_strided(size, stride, offset, source):
    x = taeda.arange(48.0).requires_grad_()
    form = {
        "whole": lambda: x * 1,
        "turned": lambda: (x * 1).view(6, 8).t(),
        "part": lambda: (x * 1).view(6, 8)[:, 1:],
        "expanded": lambda: (x * 1).view(48, 1).expand(48, 2),
    }[source]
    g = taeda.arange(1.0, 1 + np.prod(size, dtype=int)).view(size)
    grads = []
    for create_graph in (False, True):  # by memory, and by operations
        before = form()
        y = before.as_strided(size, stride, offset)
        grads.append(taeda.autograd.grad(y, (before, x), g, create_graph=create_graph))
    for fast, slow in zip(*grads, strict=True):
        assert fast.shape == slow.shape
        np.testing.assert_array_equal(fast.numpy(), slow.detach().numpy())
    if source in ("whole", "turned"):
        want = np.zeros(48, np.float32)
        for place in np.ndindex(*size):
            want[offset + int(np.dot(place, stride))] += g.numpy()[place]
        np.testing.assert_array_equal(grads[0][1].numpy(), want)
