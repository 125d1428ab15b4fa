"""Reductions against PyTorch: dtypes, layouts, dimensions, NaN, empties, accuracy, gradients."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="compares with PyTorch")

import taeda  # noqa: E402
from tests.conformance.bridge import to_taeda, to_torch  # noqa: E402
from tests.ops.compare import assert_close, compare, compare_error, leaf  # noqa: E402

DIMS = [None, 0, 1, -1, (0, 2), (1, 2), (0, 1, 2)]
LAYOUTS = {
    "contiguous": lambda: torch.randn(5, 6, 7, dtype=torch.float64),
    "permuted": lambda: torch.randn(7, 5, 6, dtype=torch.float64).permute(1, 2, 0),
    "strided": lambda: torch.randn(10, 6, 21, dtype=torch.float64)[::2, :, ::3],
    "expanded": lambda: torch.randn(5, 1, 7, dtype=torch.float64).expand(5, 6, 7),
}
DIFFERENTIABLE = ["sum", "mean", "var", "std", "amax", "amin", "logsumexp", "nansum", "nanmean"]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_dimensions_and_layouts(name: str, layout: str) -> None:
    x = LAYOUTS[layout]().detach().requires_grad_()
    for dim, keepdim in itertools.product(DIMS, (False, True)):
        if dim is None and name == "logsumexp":
            continue
        compare(name, x, dim=dim, keepdim=keepdim)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["max", "min", "prod", "median", "argmax", "argmin"])
def test_one_dimension(name: str, layout: str) -> None:
    x = LAYOUTS[layout]().detach().requires_grad_()
    compare(name, x)
    if name == "median" and layout == "expanded":
        return  # all elements are equal: any of them may be named
    for dim, keepdim in itertools.product((0, 1, 2, -1), (False, True)):
        compare(name, x, dim=dim, keepdim=keepdim)


@pytest.mark.parametrize(
    "name", ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "complex64"]
)
def test_dtypes(name: str) -> None:
    dtype = getattr(torch, name)
    x = torch.randint(0, 2, (37, 45)) if name == "bool" else torch.randint(-3, 4, (37, 45))
    x = x.to(dtype)
    ops = ["sum", "any", "all", "count_nonzero"]
    if dtype.is_floating_point or dtype.is_complex:
        ops += ["mean", "var", "std"]
    if not dtype.is_complex:
        ops += ["amax", "amin", "max", "min"]
        if name != "bool":
            ops += ["argmax", "argmin"]
    for op, dim in itertools.product(ops, (0, 1)):
        compare(op, x, dim)
        compare(op, x.t(), dim)
    for op in ops:
        compare(op, x)
    compare("prod", x[:3, :5], 0)


def test_result_dtypes() -> None:
    x = torch.randint(0, 5, (4, 5))
    for dtype in (torch.float32, torch.int8, torch.float64, torch.bool, torch.complex64):
        compare("sum", x, dtype=dtype)
        compare("sum", x.half(), dtype=dtype) if dtype is not torch.complex64 else None
    compare("mean", x, dtype=torch.float32)
    compare("prod", x, dtype=torch.float64)
    compare_error("mean", x)
    compare_error("var", x)


def test_large_reductions_are_accurate() -> None:
    g = torch.Generator().manual_seed(0)
    x = torch.rand(3_000_000, generator=g) + 1
    ours = to_taeda(x)
    exact = x.double()
    assert ours.sum().item() == pytest.approx(exact.sum().item(), rel=2e-7)
    assert ours.mean().item() == pytest.approx(exact.mean().item(), rel=2e-7)
    assert (ours + 1e4).var().item() == pytest.approx((x + 1e4).double().var().item(), rel=1e-5)
    wide = x.view(30_000, 100)
    assert_close(to_taeda(wide).sum(0), wide.double().sum(0).float())
    assert_close(to_taeda(wide).var(0), wide.double().var(0).float())
    assert_close(to_taeda(wide[:, :3].contiguous()).sum(0), wide[:, :3].double().sum(0).float())


@pytest.mark.parametrize("shape", [(70_000,), (300, 301), (3, 50_000), (50_000, 3), (9, 40, 11, 5)])
def test_every_cut_of_the_work(shape: tuple) -> None:
    g = torch.Generator().manual_seed(1)
    x = torch.randn(shape, generator=g)
    for dim in range(-1, len(shape)):
        for name in ("sum", "amax", "argmin", "var", "norm"):
            compare(name, x, dim=dim) if name != "norm" else compare(name, x, 2.0, dim)
    for name in ("sum", "amax", "argmin", "var", "norm"):
        compare(name, x)
    compare("any", x > 4, -1)
    compare("all", x > -4)


def test_threads_do_not_change_bits() -> None:
    x = taeda.randn(1 << 20) * 100
    threads = taeda.get_num_threads()
    try:
        results = []
        for n in (1, 2, 5):
            taeda.set_num_threads(n)
            results.append([x.sum().item(), x.view(1024, -1).sum(0).tolist(), x.var().item()])
    finally:
        taeda.set_num_threads(threads)
    assert results[0] == results[1] == results[2]


NAN = float("nan")


@pytest.mark.parametrize("n", [3, 40, 1000])
def test_nan(n: int) -> None:
    x = torch.arange(n, dtype=torch.float32)
    x[n // 2] = NAN
    for name in (
        "sum",
        "max",
        "min",
        "amax",
        "amin",
        "argmax",
        "argmin",
        "nansum",
        "nanmean",
        "any",
        "norm",
        "median",
        "nanmedian",
    ):
        compare(name, x)
    for name in ("max", "min", "median", "nanmedian"):
        compare(name, x, 0)
        compare(name, torch.stack([x, x.flip(0), x.nan_to_num()]).t().contiguous(), 0)
    compare("aminmax", x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int32])
def test_columns_and_rows_of_many_sizes(dtype: torch.dtype) -> None:
    for rows, cols in ((1, 5), (9, 16), (37, 100), (300, 4100), (2000, 70), (70, 2500)):
        x = (torch.randn(rows, cols) * 1000).round().to(dtype)
        names = ["sum", "amax", "amin", "max", "argmin"]
        for name in names if dtype in (torch.int32, torch.bfloat16) else [*names, "mean"]:
            compare(name, x, 0)
            compare(name, x, 1)
        if dtype.is_floating_point:
            x[rows // 2, cols // 2] = NAN
            x[0, cols - 1] = NAN
            x[rows - 1, 0] = float("inf")
            x[0, 0] = -float("inf")
            for name in ("amax", "amin", "max", "min", "argmax", "argmin"):
                compare(name, x, 0)
                compare(name, x, 1)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int32", "int64"])
@pytest.mark.parametrize(("rows", "cols"), [(1024, 33), (1031, 2100), (4100, 16), (2048, 1)])
def test_places_in_long_columns(dtype: str, rows: int, cols: int) -> None:
    x = (torch.randn(rows, cols) * 40).round().to(getattr(torch, dtype))  # many ties
    wide = torch.stack([x, -x], 1)[:, 0]
    for a, name in itertools.product((x, wide, x[:1].expand(rows, -1)), ("max", "argmin")):
        compare(name, a, 0)
    if not x.is_floating_point():
        return
    for sign in (1.0, -1.0):  # a zero's sign is that of the first one
        zeros = torch.zeros(rows, cols, dtype=x.dtype)
        zeros[::2] *= sign
        zeros[1::2] *= -sign
        found = to_taeda(zeros).max(0).values.float().numpy()
        assert (np.signbit(found) == (sign < 0)).all()
    compare("max", torch.full_like(x, -float("inf")), 0)
    for row in (0, 5, rows // 2, rows - 1):
        x[row, row % cols] = NAN
        x[rows - 1, (row + 7) % cols] = float("inf")
        compare("max", x, 0)
        compare("argmin", x, 0)
    compare("argmax", torch.full_like(x, NAN), 0)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int64", "int16", "uint8"])
@pytest.mark.parametrize("n", [2, 3, 4, 7, 16, 17, 40, 63])
def test_many_short_rows(dtype: str, n: int) -> None:
    x = (torch.randn(1500, 2, n).abs() * 5).round().to(getattr(torch, dtype))
    views = [
        x,
        x[1:130, 1],
        x[:, :, : n - 1],
        x.transpose(0, 1)[:, :900],
        x[:, :1].expand(-1, 5, -1),
    ]
    for a, name in itertools.product(views, ("sum", "amax", "argmin", "any", "prod")):
        compare(name, a if name != "prod" else (a % 3).clamp(max=2)[..., :7], -1)
    if x.is_floating_point():
        x[4, 1, n - 1] = x[1001, 0, 0] = NAN
        for name in ("amin", "argmax", "var", "mean"):
            compare(name, x, -1)


@pytest.mark.parametrize("offset", [0.0, 1e4])
@pytest.mark.parametrize("jump", [0.0, 300.0])
def test_variance_wherever_the_mean_lies(offset: float, jump: float) -> None:
    x = torch.randn(3000, 500) + offset
    x[:7] += jump
    x[:, :7] += jump
    mine = taeda.asarray(x.numpy())
    for dim in (0, 1, (0, 1)):
        wanted = x.double().var(dim)
        got = torch.from_numpy(mine.var(dim).numpy()).double()
        # a float32 holds x itself to 1e-7 of its size only, which all share
        assert ((got - wanted).abs() / wanted).max() < 5e-6


@pytest.mark.filterwarnings("ignore:var")
def test_empty() -> None:
    x = torch.ones(0, 3)
    for name in ("sum", "mean", "prod", "any", "all", "var", "norm", "count_nonzero"):
        compare(name, x)
        compare(name, x, dim=0) if name != "norm" else compare(name, x, 2, 0)
    for name in ("max", "min", "argmax", "argmin", "amax", "amin"):
        compare_error(name, x)
        compare_error(name, x, 0)
        compare(name, x, 1)
    compare_error("aminmax", x)
    compare("logsumexp", x, 0)
    compare_error("norm", x, float("inf"))


def test_zero_dim() -> None:
    x = leaf()
    for name in ("sum", "mean", "prod", "amax", "max", "norm"):
        compare(name, x)
    compare("max", x, 0)
    compare("sum", x, 0)
    compare("argmax", x, -1)
    compare("var", x.detach(), correction=0)


def test_no_dimensions_named() -> None:
    x = torch.randn(3, 4)
    for name in ("sum", "mean", "amax", "var", "any", "all"):
        compare(name, x, dim=())


@pytest.mark.filterwarnings("ignore:var", "ignore:std")
@pytest.mark.parametrize("correction", [0, 1, 2, 20])
def test_variance(correction: int) -> None:
    x = leaf(4, 5)
    for name in ("var", "std", "var_mean", "std_mean"):
        if correction < 4:
            compare(name, x, dim=1, correction=correction)
        else:
            compare(name, x.detach(), dim=1, correction=correction)
        compare(
            name,
            leaf(3, 4, dtype=torch.complex128),
            dim=0,
            correction=min(correction, 2),
            second=False,
        )
    compare("var", x, False)
    compare("var", x, 0, False)
    compare("std", x, (0, 1), unbiased=False, keepdim=True)


@pytest.mark.parametrize("p", [0, 0.5, 1, 1.5, 2, 3, float("inf"), -float("inf"), -1])
def test_norms(p: float) -> None:
    def values(*shape: int, seed: int = 0, dtype: Any = torch.float64) -> Any:
        return leaf(*shape, seed=seed, dtype=dtype, grad=p != 0)

    compare("norm", values(3, 4), p)
    compare("norm", values(3, 4), p, 1, True)
    compare("norm", values(3, 4).t().detach(), p, 1)
    compare("norm", values(3, 4, dtype=torch.complex128), p, 0, second=False)
    compare("dist", values(3, 4), values(4, seed=2), p)


def test_norm_at_zero() -> None:
    for p in (1.0, 1.5, 2.0, 3.0, float("inf")):
        x = torch.zeros(3, dtype=torch.float64, requires_grad=True)
        compare("norm", x, p, second=False)


def test_ties() -> None:
    x = torch.tensor([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]], dtype=torch.float64, requires_grad=True)
    for name in ("amax", "amin", "max", "min"):
        compare(name, x)
    for name in ("amax", "amin", "max", "min"):
        compare(name, x, 1)
    compare("argmax", x, 1)
    compare("median", x)


@pytest.mark.parametrize("zeros", [0, 1, 2])
def test_prod_with_zeros(zeros: int) -> None:
    x = leaf(3, 4)
    with torch.no_grad():
        x[1, :zeros] = 0
    compare("prod", x)
    compare("prod", x, 1)
    compare("prod", x, 0, True)
    compare("prod", leaf(4, dtype=torch.complex128))


def test_comparisons() -> None:
    inf = float("inf")
    a = torch.tensor([1.0, NAN, inf, 1e-9, 2.0])
    b = torch.tensor([1.0 + 1e-7, NAN, inf, 0.0, 2.1])
    compare("isclose", a, b)
    compare("isclose", a, b, equal_nan=True)
    compare("isclose", torch.tensor([1, 5]), torch.tensor([1, 6]), rtol=0.5)
    compare_error("isclose", a, b.double())
    for x, y in ((a, b), (b, b), (torch.ones(2), torch.ones(2, 1)), (torch.ones(2), torch.ones(2))):
        assert taeda.equal(to_taeda(x), to_taeda(y)) is torch.equal(x, y)
    assert taeda.allclose(taeda.ones(3), taeda.ones(3) + 1e-9) is True
    assert taeda.allclose(taeda.ones(3), taeda.zeros(3)) is False


def test_counts() -> None:
    x = torch.tensor([1, 0, 3, 1, 1])
    compare("bincount", x)
    compare("bincount", x, torch.tensor([0.5, 1.0, 1.5, 2.0, 1.0]), 6)
    compare("bincount", x[:0])
    compare_error("bincount", torch.tensor([-1]))
    compare("histc", torch.randn(50), 7)
    compare("histc", torch.randn(50), 5, -1, 1)
    compare("trace", leaf(3, 4))


@pytest.mark.parametrize(
    "name", ["sum", "mean", "amax", "argmax", "var", "any", "norm", "logsumexp"]
)
def test_meta_and_out(name: str) -> None:
    x = taeda.randn(3, 4)
    f: Any = getattr(taeda, name)
    real = f(x, dim=1)
    meta = f(taeda.empty(3, 4, device="meta"), dim=1)
    assert meta.shape == real.shape
    assert meta.dtype == real.dtype
    out = taeda.empty(0, dtype=real.dtype)
    assert f(x, dim=1, out=out) is out
    assert out.tolist() == real.tolist()


def test_errors() -> None:
    x = torch.randn(3, 4)
    compare_error("sum", x, 2)
    compare_error("sum", x, (0, 0))
    compare_error("argmax", x > 0)
    compare_error("max", torch.ones(2, dtype=torch.complex64), 0)
    compare_error("amax", torch.ones(2, dtype=torch.complex64))
    with pytest.raises(RuntimeError, match="could not infer output dtype"):
        taeda.arange(3).mean()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_products_and_extremes_read_every_half(dtype: torch.dtype) -> None:
    every = torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16).view(dtype)
    for places in (1, 16, 35):
        x = torch.ones(every.numel(), places, dtype=dtype)
        x[:, places // 2] = every
        for a, dim in ((x, 1), (x.t().contiguous(), 0)):
            got = to_torch(taeda.prod(to_taeda(a), dim))
            assert torch.equal(got.isnan(), every.isnan())
            assert torch.equal(got.nan_to_num(0), every.nan_to_num(0))
            for name in ("amax", "amin"):
                want = getattr(torch, name)(a, dim)
                got = to_torch(getattr(taeda, name)(to_taeda(a), dim))
                assert torch.equal(got.isnan(), want.isnan())
                assert torch.equal(got.nan_to_num(0), want.nan_to_num(0))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("n", [255, 256, 300, 2048, 5000])
def test_products_of_long_lines(dtype: str, n: int) -> None:
    random = np.random.default_rng(n)
    big = 2.0**12 if dtype == "float16" else 2.0**60
    ones = np.where(random.random((6, n)) < 0.5, -1.0, 1.0)
    half = min(n // 2, 500)
    ones[1] *= np.exp2(random.integers(-1, 2, n))
    ones[2, :half], ones[2, half : 2 * half] = 2.0, 0.5
    ones[3, : n // 64 * 64 : 64], ones[3, 32 : n // 64 * 64 : 64] = big, 1 / big
    ones[4, n // 3] = 0
    ones[5, :], ones[5, n // 3] = 1.0, np.inf
    x = taeda.tensor(ones).to(getattr(taeda, dtype))
    with np.errstate(over="ignore"):
        expected = torch.from_numpy(ones.prod(-1)).to(getattr(torch, dtype))
    assert torch.equal(to_torch(x.prod(-1)), expected)
    x[5, 0] = 0
    x[4, 1] = -np.inf
    assert x.prod(-1)[4:].isnan().all()


def test_products_round_little() -> None:
    values = 1 + 0.01 * np.random.default_rng(0).standard_normal((3, 40_000)).astype("float32")
    got = taeda.tensor(values).prod(-1).numpy()
    np.testing.assert_allclose(got, values.astype("float64").prod(-1), rtol=2e-5)
    whole = taeda.tensor(values[0]).prod().item()
    assert abs(whole / values[0].astype("float64").prod() - 1) < 2e-5


@pytest.mark.parametrize("name", ["var", "std", "var_mean", "std_mean"])
def test_bool_after_dim_is_unbiased(name):
    """`x.std(1, False)` is std(dim=1, unbiased=False), not a list of two dimensions."""
    x = taeda.arange(12.0).view(3, 4)
    f = getattr(taeda, name)
    given, expected = f(x, 1, False), f(x, dim=1, correction=0)
    first = given[0] if isinstance(given, tuple) else given
    assert first.shape == (3,)
    assert taeda.equal(first, expected[0] if isinstance(expected, tuple) else expected)
    kept = f(x, 1, True, True)
    assert (kept[0] if isinstance(kept, tuple) else kept).shape == (3, 1)
    with pytest.raises(TypeError):
        f(x, 1, 0)
