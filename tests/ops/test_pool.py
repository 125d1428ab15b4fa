"""Pooling against PyTorch: windows, padding, ceil mode, indices, NaN, gradients."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="compares with PyTorch")

from tests.ops.compare import compare, compare_error, leaf  # noqa: E402

SIZES = {1: (11,), 2: (9, 8), 3: (5, 6, 7)}
# kernel, stride, padding, dilation
WINDOWS = [(2, 2, 0, 1), (3, 2, 1, 1), (3, 1, 1, 1), (2, 3, 1, 1), (2, None, 0, 2), (3, 1, 0, 2)]


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize("ceil_mode", [False, True])
def test_max_pool(n: int, window: tuple, ceil_mode: bool) -> None:
    kernel, stride, padding, dilation = window
    for batch in ((2, 3), (3,)):
        x = leaf(*batch, *SIZES[n])
        name = f"nn.functional.max_pool{n}d"
        compare(name, x, kernel, stride, padding, dilation, ceil_mode)
        compare(name, x, kernel, stride, padding, dilation, ceil_mode, return_indices=True)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("window", [w[:3] for w in WINDOWS[:4]], ids=str)
@pytest.mark.parametrize("ceil_mode", [False, True])
@pytest.mark.parametrize("count", [False, True])
def test_avg_pool(n: int, window: tuple, ceil_mode: bool, count: bool) -> None:
    for batch in ((2, 3), (3,)):
        x = leaf(*batch, *SIZES[n])
        compare(f"nn.functional.avg_pool{n}d", x, *window, ceil_mode, count)
        if n > 1:
            compare(f"nn.functional.avg_pool{n}d", x, *window, ceil_mode, count, 5)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("out", [1, 3, 7, 13])
def test_adaptive(n: int, out: int) -> None:
    for batch in ((2, 3), (3,)):
        x = leaf(*batch, *SIZES[n])
        compare(f"nn.functional.adaptive_avg_pool{n}d", x, out)
        compare(f"nn.functional.adaptive_max_pool{n}d", x, out)
        compare(f"nn.functional.adaptive_max_pool{n}d", x, out, return_indices=True)


@pytest.mark.parametrize(
    "sizes", [(40,), (33,), (20, 41), (17, 16), (6, 5, 33), (4, 4, 16)], ids=str
)
@pytest.mark.parametrize("out", [1, 2, 3, 8, 16])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_wide_adaptive_windows(sizes: tuple[int, ...], out: int, dtype: torch.dtype) -> None:
    x = torch.randn(3, 2, *sizes, dtype=dtype)
    x[0, 0].round_()  # some are equal
    x[1, 1] = float("-inf")
    x[2, 0] = 7
    name = f"nn.functional.adaptive_max_pool{len(sizes)}d"
    compare(name, x.requires_grad_(), out, return_indices=True)
    compare(name.replace("max", "avg"), x.detach().clamp(-9, 9).requires_grad_(), out)
    broken = x.detach().clone()
    broken.view(-1)[::19] = float("nan")
    compare(name, broken, out, return_indices=True)


def test_windows_of_other_shapes() -> None:
    x = leaf(2, 3, 9, 8)
    compare("nn.functional.max_pool2d", x, (3, 2), (2, 1), (1, 0))
    compare("nn.functional.avg_pool2d", x, (3, 2), (2, 1), (1, 0))
    compare("nn.functional.adaptive_avg_pool2d", x, (None, 3))
    compare("nn.functional.adaptive_avg_pool2d", x, (4, None))


def test_ties_and_nan() -> None:
    nan, inf = float("nan"), float("inf")
    x = torch.tensor([[[1.0, nan, 2.0, nan, 3.0, 3.0, -inf, -inf]]])
    for kernel, stride in ((2, 2), (4, 1), (2, 1)):
        compare("nn.functional.max_pool1d", x, kernel, stride, return_indices=True)
        compare(
            "nn.functional.max_pool2d", x.unsqueeze(0), (1, kernel), stride, return_indices=True
        )
    compare("nn.functional.adaptive_max_pool1d", x, 3, return_indices=True)
    compare("nn.functional.avg_pool1d", x, 2, 2)
    planes = torch.randn(2, 3, 21, 37).round()
    for value in (0.0, nan, inf, -inf):
        planes[:, :, ::3, 1::4] = value
        for stride, padding in ((1, 1), (2, 1), (2, (0, 1)), (3, 0)):
            compare("nn.functional.max_pool2d", planes, 3, stride, padding, return_indices=True)
    compare("nn.functional.max_pool2d", planes, (5, 3), 2, (2, 1), (3, 1), True, True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_dtypes(dtype: torch.dtype) -> None:
    x = leaf(2, 3, 9, 8, dtype=dtype, grad=False)
    compare("nn.functional.max_pool2d", x, 3, 2, 1)
    compare("nn.functional.avg_pool2d", x, 3, 2, 1)
    compare("nn.functional.adaptive_avg_pool2d", x, 1)


def test_layouts_and_empty_batches() -> None:
    x = leaf(2, 3, 9, 8, grad=False)
    compare("nn.functional.max_pool2d", x.transpose(2, 3), 3, 2, 1)
    compare("nn.functional.avg_pool2d", x[:, ::2, 1:], 3, 2, 1)
    compare("nn.functional.max_pool2d", x[:0], 2)
    compare("nn.functional.avg_pool2d", x[:0], 2)
    compare("nn.functional.adaptive_avg_pool2d", x[:0], 2)


def test_errors() -> None:
    x = torch.ones(1, 2, 5, 5)
    for name in ("nn.functional.max_pool2d", "nn.functional.avg_pool2d"):
        compare_error(name, x, 9)
        compare_error(name, x, 2, 0)
        compare_error(name, x, 2, 1, 2)
        compare_error(name, x, (2, 2, 2))
        compare_error(name, torch.ones(1, 0, 5, 5), 2)
    compare_error("nn.functional.max_pool2d", torch.ones(5, 5), 2)
    compare_error("nn.functional.avg_pool2d", x, 2, divisor_override=0)
    compare_error("nn.functional.adaptive_avg_pool2d", torch.ones(5, 5), 2)
