"""softmax and log_softmax along every dimension, with the values that break careless versions."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="compares with PyTorch")

import taeda  # noqa: E402
from tests.conformance.bridge import to_taeda  # noqa: E402
from tests.ops.compare import compare, compare_error, leaf  # noqa: E402

NAMES = ["softmax", "log_softmax"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "shape", [(), (1,), (5,), (3, 1), (4, 33), (2, 3, 5), (0, 4), (3, 0), (2, 300, 4)], ids=str
)
def test_dims(name: str, shape: tuple) -> None:
    for dim in range(-max(len(shape), 1), max(len(shape), 1)):
        compare(name, leaf(*shape), dim)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dim", [0, 1])
def test_extreme_values(name: str, dim: int) -> None:
    inf, nan = float("inf"), float("nan")
    rows = [
        [1e4, 1e4, -1e4, 0.0],
        [-inf, 0.0, 1.0, -inf],
        [-inf, -inf, -inf, -inf],
        [inf, 0.0, 0.0, 0.0],
        [nan, 0.0, 0.0, 0.0],
        [0.0, 0.0, 0.0, nan],
        [700.0, -700.0, 0.0, 89.0],
    ]
    for dtype in (torch.float32, torch.float64):
        x = torch.tensor(rows, dtype=dtype)
        compare(name, x if dim else x.t().contiguous(), dim)
        wide = x.repeat_interleave(20, 1)  # long enough for the vector loops
        compare(name, wide if dim else wide.t().contiguous(), dim)


@pytest.mark.parametrize("name", NAMES)
def test_dtypes(name: str) -> None:
    x = leaf(4, 50, dtype=torch.float32, grad=False)
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        compare(name, x.to(dtype), 1)
    compare(name, x.half(), 1, dtype=torch.float32)
    compare(name, x, 1, dtype=torch.float64)
    compare(name, torch.arange(6).reshape(2, 3), 1, dtype=torch.float32)
    compare(name, leaf(4, 5, dtype=torch.float32), 1, dtype=torch.float64, second=False)


@pytest.mark.parametrize("hidden", [511, 512, 700, 2048])
@pytest.mark.parametrize("rows", [2, 4200])  # the latter are stored past the caches
def test_rows_that_begin_with_minus_infinity(hidden: int, rows: int) -> None:
    x = torch.randn(rows, 2112, generator=torch.Generator().manual_seed(1))
    x[0, :hidden] = -float("inf")
    x[-1, :hidden] = -float("inf")
    for name in NAMES:
        exact = getattr(torch, name)(x.double(), 1)
        ours = torch.from_dlpack(getattr(taeda, name)(to_taeda(x), 1)).double()
        torch.testing.assert_close(ours, exact, rtol=2e-6, atol=1e-9)
    x = x[:2]
    picked = taeda.nn.functional.cross_entropy(to_taeda(x), taeda.tensor([2100, 2101]))
    wanted = torch.nn.functional.cross_entropy(x, torch.tensor([2100, 2101]))
    assert picked.item() == pytest.approx(wanted.item(), rel=1e-5)


def test_accuracy_of_long_rows() -> None:
    x = torch.randn(3, 100_000, generator=torch.Generator().manual_seed(0)) * 4
    exact = torch.log_softmax(x.double(), 1)
    ours = torch.from_dlpack(taeda.log_softmax(to_taeda(x), 1)).double()
    assert ((ours - exact).abs() <= 4e-7 * exact.abs()).all()


@pytest.mark.parametrize("name", NAMES)
def test_layouts_and_threads(name: str) -> None:
    x = leaf(7, 6, 5, grad=False)
    compare(name, x.permute(2, 0, 1), 1)
    compare(name, x[:, ::2], 1)
    big = to_taeda(torch.randn(64, 1000))
    before = taeda.get_num_threads()
    results = []
    try:
        for threads in (1, 3):
            taeda.set_num_threads(threads)
            results.append([getattr(taeda, name)(big, d) for d in (0, 1)])
    finally:
        taeda.set_num_threads(before)
    assert all(taeda.equal(a, b) for a, b in zip(*results, strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_errors(name: str) -> None:
    compare_error(name, torch.ones(2, 3), 2)
    compare_error(name, torch.ones(2, 3, dtype=torch.int64), 1)
