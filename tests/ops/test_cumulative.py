"""Running sums, products and extremes against PyTorch."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="compares with PyTorch")

import taeda  # noqa: E402
from tests.conformance.bridge import to_taeda, to_torch  # noqa: E402
from tests.ops.compare import assert_close, compare, compare_error, leaf  # noqa: E402

NAMES = ["cumsum", "cumprod", "logcumsumexp", "cummax", "cummin"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dim", [0, 1, 2, -1])
def test_dimensions(name: str, dim: int) -> None:
    compare(name, leaf(3, 4, 5), dim)
    compare(name, leaf(5, 3, 4).detach().permute(1, 2, 0), dim)
    compare(name, torch.randn(2, 150, 3), dim)


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin"])
def test_dtypes(name: str) -> None:
    for dtype in (torch.bool, torch.uint8, torch.int32, torch.int64, torch.float16, torch.bfloat16):
        compare(name, torch.randint(0, 3, (6,)).to(dtype), 0)
    if name in ("cumsum", "cumprod"):
        compare(name, leaf(4, dtype=torch.complex128), 0)
        compare(name, torch.arange(4), 0, dtype=torch.float32)


@pytest.mark.parametrize("name", NAMES)
def test_zero_dim_and_empty(name: str) -> None:
    compare(name, leaf(), 0)
    compare(name, torch.ones(0, 3), 0)
    compare(name, torch.ones(0, 3), 1)
    compare_error(name, torch.ones(3), 1)


@pytest.mark.parametrize("zeros", [(1,), (0, 2), (0, 1, 2, 3)])
def test_cumprod_with_zeros(zeros: tuple) -> None:
    x = leaf(4, 2)
    with torch.no_grad():
        x[list(zeros)] = 0
    compare("cumprod", x, 0)
    compare("cumprod", x, 1)


def test_extremes_with_ties_and_nan() -> None:
    x = torch.tensor([1.0, 3.0, 3.0, float("nan"), 2.0, float("nan")])
    for name in ("cummax", "cummin"):
        compare(name, x, 0)
        compare(name, x.flip(0), 0)


def test_logcumsumexp_of_large_and_infinite() -> None:
    inf = float("inf")
    compare("logcumsumexp", torch.tensor([-inf, 1000.0, 1000.0, -1000.0]), 0)
    compare("logcumsumexp", torch.tensor([0.0, inf, 1.0]), 0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("special", [None, float("inf"), -float("inf"), float("nan"), 1e4, -1e4])
@pytest.mark.parametrize("at", [0, 1, 64, 65, 150])
def test_logcumsumexp_along_rows(dtype, special, at) -> None:
    """Rows are scanned in blocks, where what stands out takes another way."""
    for slope in (0.0, 0.2, 30.0, -30.0):  # of rows that rise or fall
        x = torch.randn(3, 200, dtype=dtype) * 3 + slope * torch.arange(200, dtype=dtype)
        if special is not None:
            x[1, at] = special
        want = x.logcumsumexp(1)
        got = taeda.from_numpy(x.numpy()).logcumsumexp(1)
        torch.testing.assert_close(torch.from_numpy(got.numpy()), want, equal_nan=True)
        assert got[:, 0].tolist() == x[:, 0].tolist() or special != special


def test_logcumsumexp_of_nothing_but_minus_infinity() -> None:
    inf = float("inf")
    x = taeda.full((100,), -inf)
    assert x.logcumsumexp(0).tolist() == [-inf] * 100
    x[70] = 2.0
    assert x.logcumsumexp(0).tolist() == [-inf] * 70 + [2.0] * 30


def test_in_place() -> None:
    x = taeda.arange(4.0)
    assert x.cumsum_(0) is x
    assert x.tolist() == [0.0, 1.0, 3.0, 6.0]
    x.cumprod_(0)
    assert x.tolist() == [0.0, 0.0, 0.0, 0.0]


def test_diff() -> None:
    x = leaf(4, 5)
    compare("diff", x)
    compare("diff", x, 2, 0)
    compare("diff", x, 1, 1, leaf(4, 1, seed=1), leaf(4, 2, seed=2))
    compare("diff", x, 9)
    compare("diff", torch.tensor([True, False, False]))
    compare_error("diff", torch.tensor(1.0))


@pytest.mark.parametrize("n", [1, 7, 8, 9, 1000, 100_003])
def test_long_sums(n: int) -> None:
    x = torch.randn(n, generator=torch.Generator().manual_seed(n))
    got = taeda.tensor(x.tolist()).cumsum(0).tolist()
    want = x.double().cumsum(0)
    assert (torch.tensor(got, dtype=torch.float64) - want).abs().max() <= 6e-8 * want.abs().max()


def test_sums_of_special_values() -> None:
    inf = float("inf")
    for at in range(12):
        x = torch.ones(20)
        x[at] = inf
        compare("cumsum", x, 0)
        x[at + 5] = -inf
        compare("cumsum", x, 0)


@pytest.mark.parametrize("n", [1, 31, 33, 1000, 131_071, 131_072, 200_003])
def test_sums_of_lines_in_pieces(n: int) -> None:
    x = torch.randn(3, n, generator=torch.Generator().manual_seed(n))
    x[1, n // 2] = float("inf")
    expected = x.double().cumsum(1).float()
    ours = to_torch(to_taeda(x).cumsum(1))
    torch.testing.assert_close(ours, expected, rtol=2e-7, atol=0)


KINDS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
KINDS += [torch.float16, torch.bfloat16, torch.float32, torch.float64]


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("name", ["cummax", "cummin", "cumsum", "cumprod"])
def test_long_lines_and_columns(name: str, dtype: torch.dtype) -> None:
    """Several blocks of every loop, whose ends carry on; with ties, where the last one counts."""
    torch.manual_seed(3)
    for shape in [(4500,), (3, 133), (2, 37, 71), (2, 1, 5)]:
        x = torch.randint(-3 if dtype.is_signed else 0, 4, shape).to(dtype)
        if dtype.is_floating_point and name != "cumprod":
            x = torch.cat([x, torch.randn(shape).to(dtype)], -1)
        for dim in range(x.dim()):
            ours, theirs = [getattr(m, name)(a, dim) for m, a in ((taeda, to_taeda(x)), (torch, x))]
            if name in ("cummax", "cummin"):
                assert torch.equal(to_torch(ours[0]), theirs[0])
                assert torch.equal(to_torch(ours[1]), theirs[1])
            elif not dtype.is_floating_point:
                assert torch.equal(to_torch(ours), theirs)
            elif name == "cumprod":
                assert_close(ours, theirs, name)
            else:  # ours are summed up in float64
                want = x.double().cumsum(dim)
                error = {torch.float16: 1e-3, torch.bfloat16: 8e-3}.get(dtype, 1e-6)
                assert ((to_torch(ours).double() - want).abs() <= error * (want.abs() + 1e-2)).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_extremes_past_nan_and_infinities(dtype: torch.dtype) -> None:
    for place in (0, 3, 63, 64, 150, 199):
        x = torch.randn(200, 3).to(dtype)
        x[place, 0] = float("nan")
        x[(place + 70) % 200, 0] = float("nan")
        x[place, 1] = float("inf")
        x[:, 2] = -float("inf")
        for name in ("cummax", "cummin"):
            for a, dim in ((x, 0), (x.t().contiguous(), 1)):
                ours, theirs = getattr(taeda, name)(to_taeda(a), dim), getattr(torch, name)(a, dim)
                assert torch.equal(to_torch(ours[1]), theirs[1])
                assert torch.equal(to_torch(ours[0]).isnan(), theirs[0].isnan())
                assert torch.equal(to_torch(ours[0]).nan_to_num(), theirs[0].nan_to_num())


def test_the_same_bits_on_any_number_of_threads() -> None:
    before = taeda.get_num_threads()
    results = []
    try:
        for threads in (1, 2, 3):
            taeda.set_num_threads(threads)
            taeda.manual_seed(0)
            x = taeda.randn(300_017)
            y = taeda.randn(3, 40_000)
            results.append([taeda.cumsum(x, 0), taeda.cumsum(y.to(taeda.float16), 1)])
            results[-1] += [*taeda.cummax(y, 1), taeda.cumsum((y * 9).to(taeda.int64), 1)]
    finally:
        taeda.set_num_threads(before)
    for other in results[1:]:
        assert all(taeda.equal(a, b) for a, b in zip(results[0], other, strict=True))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64, torch.int32])
@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 9, 17, 255, 300])
def test_short_lines_and_narrow_rows(dtype: torch.dtype, n: int) -> None:
    x = (torch.rand(700, n) * 2 + 0.5).to(dtype)
    for a, dim in ((x, 1), (x[:9].t().contiguous(), 1), (x, 0), (x.reshape(7, 100, n), 1)):
        compare("cumsum", a, dim)
        compare("cumsum", a.to(torch.int64) if dtype == torch.int32 else a, dim)
    few = x[:, :12]
    compare("cumprod", few, 1)
    if dtype.is_floating_point:
        compare("logcumsumexp", x[:50], 1)
        compare("logcumsumexp", x[:50], 0)
