"""unfold, fold and shuffles of pixels against PyTorch: gradients, vmap, what is refused."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="compares with PyTorch")

import taeda  # noqa: E402
from taeda.autograd import gradcheck, gradgradcheck  # noqa: E402
from tests.ops.compare import compare, compare_error  # noqa: E402

# kernel, dilation, padding, stride
WINDOWS: list[tuple[Any, ...]] = [
    (2, 1, 0, 1),
    (2, 1, 0, 2),
    (3, 1, 1, 1),
    ((3, 2), (1, 2), (2, 1), (2, 3)),
    ((1, 4), 2, 3, 1),
    ((5, 1), 1, (4, 0), 4),
    (1, 1, 2, 3),
]


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize("sizes", [(2, 3, 9, 8), (3, 7, 7), (0, 3, 9, 8), (1, 1, 40, 33)], ids=str)
def test_windows(window: tuple[Any, ...], sizes: tuple[int, ...]) -> None:
    x = torch.randn(sizes)
    compare("nn.functional.unfold", x.requires_grad_(), *window)
    turned = torch.randn(*sizes[:-2], sizes[-1], sizes[-2]).mT
    compare("nn.functional.unfold", turned, *window)
    columns = torch.nn.functional.unfold(x.detach(), *window)
    compare("nn.functional.fold", columns.requires_grad_(), sizes[-2:], *window)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.complex64, torch.bool])
def test_dtypes(dtype: torch.dtype) -> None:
    x = torch.randint(0, 2, (2, 3, 6, 5)).to(dtype)
    compare("nn.functional.unfold", x, 3, 1, 1, 2)
    compare("nn.functional.fold", torch.nn.functional.unfold(x, 2), (6, 5), 2)


def test_derivatives() -> None:
    f = taeda.nn.functional
    x = taeda.randn(2, 2, 5, 4, dtype=taeda.float64, requires_grad=True)
    shape = f.unfold(taeda.zeros(2, 2, 4, 2), 2, padding=1, stride=(2, 1)).shape
    columns = taeda.randn(*shape, dtype=taeda.float64, requires_grad=True)
    there = lambda t: f.unfold(t, 2, padding=1, stride=2)  # noqa: E731
    back = lambda t: f.fold(t, (4, 2), 2, padding=1, stride=(2, 1))  # noqa: E731
    for move, leaf in ((there, x), (back, columns)):
        assert gradcheck(move, (leaf,), check_forward_ad=True)
        assert gradgradcheck(move, (leaf,))
    many = taeda.randn(3, 2, 2, 5, 4)
    one_by_one = taeda.stack([taeda.nn.functional.unfold(m, 2) for m in many])
    columns = taeda.vmap(lambda m: taeda.nn.functional.unfold(m, 2))(many)
    assert taeda.equal(columns, one_by_one)
    put_back = taeda.vmap(lambda m: taeda.nn.functional.fold(m, (5, 4), 2))(columns)
    assert taeda.equal(put_back[1], taeda.nn.functional.fold(columns[1], (5, 4), 2))


def test_refused() -> None:
    x, columns = torch.randn(1, 2, 4, 4), torch.randn(1, 8, 9)
    for window in ((0,), (2, 0), (2, 1, -1), (2, 1, 0, 0), (5,), ((2, 2), 4)):
        compare_error("nn.functional.unfold", x, *window)
        compare_error("nn.functional.fold", columns, (4, 4), *window)
    compare_error("nn.functional.fold", columns, (5, 4), 2)
    compare_error("nn.functional.fold", columns[:, :7], (4, 4), 2)
    with pytest.raises(RuntimeError, match="expected a 3D or 4D input, got 2D"):
        taeda.nn.functional.unfold(taeda.zeros(4, 4), 2)
    with pytest.raises(RuntimeError, match="a window of 5 elements does not fit into 4"):
        taeda.nn.functional.unfold(taeda.zeros(1, 2, 4, 4), 5)


@pytest.mark.parametrize("sizes", [(8, 4, 6), (2, 4, 2, 4), (2, 3, 4, 4, 2)], ids=str)
def test_pixels(sizes: tuple[int, ...]) -> None:
    x = torch.randn(sizes, requires_grad=True)
    compare("nn.functional.pixel_shuffle", x, 2)
    compare("nn.functional.pixel_unshuffle", x, 2)
    compare("nn.functional.pixel_shuffle", x.detach().mT.contiguous().mT, 1)
    for factor in (0, -1, 3, 2**40):
        with pytest.raises(RuntimeError, match="divisible|positive"):
            taeda.nn.functional.pixel_shuffle(taeda.zeros(1, 4, 4, 4), factor)
        with pytest.raises(RuntimeError, match="divisible|positive"):
            taeda.nn.functional.pixel_unshuffle(taeda.zeros(1, 4, 4, 4), factor)
    with pytest.raises(RuntimeError, match="at least 3 dimensions"):
        taeda.nn.functional.pixel_shuffle(taeda.zeros(4, 4), 2)
