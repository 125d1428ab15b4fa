"""Order against PyTorch: sort, topk, kthvalue, median, searchsorted, unique."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="compares with PyTorch")

import taeda  # noqa: E402
from tests.conformance.bridge import to_taeda, to_torch  # noqa: E402
from tests.ops.compare import assert_close, compare, compare_error, leaf  # noqa: E402

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("descending", [False, True])
def test_sort(dim: int, descending: bool) -> None:
    compare("sort", leaf(4, 5, 3), dim, descending)
    compare("sort", leaf(3, 4, 5).detach().permute(1, 2, 0), dim, descending)
    compare("argsort", leaf(4, 5, 3).detach(), dim, descending)


@pytest.mark.parametrize("n", [1, 7, 300, 5000])
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize(
    "name",
    [
        "bool",
        "uint8",
        "int8",
        "int16",
        "int32",
        "int64",
        "float16",
        "bfloat16",
        "float32",
        "float64",
    ],
)
def test_stable_sort_of_every_dtype(name: str, n: int, descending: bool) -> None:
    g = torch.Generator().manual_seed(n)
    dtype = getattr(torch, name)
    x = torch.randn(n, generator=g).mul(20)
    x = (x > 0) if name == "bool" else x.abs().to(dtype) if name == "uint8" else x.to(dtype)
    compare("sort", x, stable=True, descending=descending)


def test_special_values() -> None:
    x = torch.tensor([1.0, NAN, -INF, 0.0, -0.0, INF, NAN, -1.0])
    for descending in (False, True):
        compare("sort", x, stable=True, descending=descending)
    wide = x.repeat(300)
    compare("sort", wide.double(), stable=True)
    compare("sort", torch.tensor([2**62, -(2**62), 0, -1, 1]))
    compare("sort", leaf())
    compare("sort", torch.ones(0, 3), 0)


def test_msort() -> None:
    compare("msort", leaf(4, 3))


@pytest.mark.parametrize("k", [0, 1, 3, 40])
@pytest.mark.parametrize("largest", [False, True])
def test_topk(k: int, largest: bool) -> None:
    compare("topk", leaf(40, 3), k, 0, largest)
    compare("topk", leaf(3, 40), k, 1, largest)
    x = torch.randperm(3000).float()
    compare("topk", x, k, largest=largest)
    values, indices = taeda.topk(to_taeda(x), k, sorted=False)
    assert sorted(values.tolist()) == sorted(torch.topk(x, k)[0].tolist())
    assert to_taeda(x)[indices].tolist() == values.tolist()


def test_topk_with_nan() -> None:
    x = torch.tensor([1.0, NAN, 3.0, 2.0])
    compare("topk", x, 2)
    compare("topk", x, 2, largest=False)


@pytest.mark.parametrize("k", [1, 2, 5])
def test_kthvalue(k: int) -> None:
    compare("kthvalue", leaf(5, 6), k, 0)
    compare("kthvalue", leaf(6, 5), k, 1, True)
    compare("kthvalue", leaf(), 1)


def test_median() -> None:
    for n in (1, 2, 5, 6):
        compare("median", leaf(n))
        compare("median", leaf(n, 3), 0)
        compare("nanmedian", leaf(n, 3), 0, True)
    x = torch.tensor([[1.0, NAN, 3.0], [NAN, NAN, NAN], [5.0, 4.0, 6.0]])
    compare("median", x, 1)
    compare("nanmedian", x, 0)
    compare("nanmedian", x)
    compare("median", torch.ones(0))


@pytest.mark.parametrize("right", [False, True])
def test_searchsorted(right: bool) -> None:
    s = torch.tensor([1.0, 2.0, 2.0, 3.0])
    v = torch.tensor([[0.0, 2.0], [2.5, NAN]])
    compare("searchsorted", s, v, right=right)
    compare("searchsorted", s, 2, right=right)
    compare("searchsorted", s, v.nan_to_num().long(), right=right, out_int32=True)
    rows = torch.arange(12.0).view(3, 4)
    compare("searchsorted", rows, torch.tensor([[0.5], [6.0], [99.0]]), right=right)
    compare("searchsorted", s.flip(0), v, right=right, sorter=torch.tensor([3, 2, 1, 0]))
    compare("bucketize", v, s, right=right)
    compare("bucketize", 2.0, s, right=right)
    compare("searchsorted", s, v, side="right" if right else "left")


def test_errors() -> None:
    x = torch.randn(3, 4)
    compare_error("sort", x, 2)
    compare_error("sort", torch.ones(2, dtype=torch.complex64))
    compare_error("topk", x, 9)
    compare_error("topk", x, -1)
    compare_error("topk", x > 0, 1)
    compare_error("kthvalue", x, 0)
    compare_error("kthvalue", torch.ones(0), 1)
    compare_error("median", torch.ones(0, 2), 0)
    compare_error("searchsorted", x, torch.ones(2))
    compare_error("searchsorted", x[0], torch.ones(2), side="middle")
    compare_error("bucketize", x, x)


def test_unique() -> None:
    x = torch.tensor([[3, 1, 3], [2, 1, 3], [3, 1, 3]])
    for dim in (None, 0, 1):
        theirs = torch.unique(x, return_inverse=True, return_counts=True, dim=dim)
        assert_close(taeda._C.ops._unique(to_taeda(x), dim), theirs)
        runs = torch.unique_consecutive(x, return_inverse=True, return_counts=True, dim=dim)
        assert_close(taeda._C.ops._unique_consecutive(to_taeda(x), dim), runs)
    y = torch.tensor([1.0, NAN, -0.0, 0.0, NAN])
    assert_close(
        taeda._C.ops._unique(to_taeda(y)), torch.unique(y, return_inverse=True, return_counts=True)
    )
    big = torch.randint(0, 50, (5000,))
    assert_close(
        taeda._C.ops._unique(to_taeda(big)),
        torch.unique(big, return_inverse=True, return_counts=True),
    )


def test_meta_and_named_tuples() -> None:
    x = taeda.empty(3, 4, device="meta")
    assert x.sort().values.shape == (3, 4)
    assert x.topk(2).indices.shape == (3, 2)
    assert x.median(1).values.shape == (3,)
    result = taeda.randn(3).sort()
    assert result.indices.dtype == taeda.int64
    values = taeda.empty(0)
    indices = taeda.empty(0, dtype=taeda.int64)
    taeda.sort(taeda.tensor([2.0, 1.0]), out=(values, indices))
    assert values.tolist() == [1.0, 2.0]
    assert indices.tolist() == [1, 0]


@pytest.mark.parametrize("kind", ["any", "ties", "ascending", "constant", "infinite", "nan"])
def test_topk_of_long_lines(kind: str) -> None:
    taeda.manual_seed(0)
    for n in (512, 1023, 2048, 4095, 4096, 6143, 50_001):
        x = taeda.randn(3, n)
        if kind == "ties":
            x = x.round()
        elif kind == "ascending":
            x = x.sort(1).values
        elif kind == "constant":
            x.fill_(-1)
        elif kind == "infinite":
            x[:, ::7], x[:, 5] = -INF, INF
        elif kind == "nan":
            x[1, 77] = NAN
        for largest in (False, True):
            values, places = x.sort(dim=1, descending=largest, stable=True)
            for k in (1, 3, 32):
                got = x.topk(k, largest=largest)
                assert taeda.equal(got.indices, places[:, :k])
                assert got.values.view(taeda.int32).equal(values[:, :k].view(taeda.int32))


@pytest.mark.parametrize("n", [1023, 1024, 131_072, 200_003])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int64", "uint8"])
def test_long_lines(n: int, dtype: str) -> None:
    g = torch.Generator().manual_seed(n)
    x = (torch.randn(n, 2, generator=g) * 100).to(getattr(torch, dtype))
    if x.is_floating_point():
        x[::97, 0] = 0.0
        x[1::97, 0] = -0.0
        x[5::1009, 0] = float("nan")
        x[7::1009, 0] = float("-inf")
    for column in (x[:, 0], x[:, 1].contiguous()):
        for descending in (False, True):
            values, places = column.sort(stable=True, descending=descending)
            ours = to_taeda(column).sort(descending=descending)
            torch.testing.assert_close(
                to_torch(ours.values), values, rtol=0, atol=0, equal_nan=True
            )
            assert torch.equal(to_torch(ours.indices), places)
            if x.is_floating_point():
                assert torch.equal(to_torch(ours.values).signbit(), column[places].signbit())
