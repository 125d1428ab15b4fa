"""Places within views: few elements of them, triangles, windows that share elements."""

from __future__ import annotations

import itertools

import pytest

torch = pytest.importorskip("torch", reason="compares with PyTorch")

import taeda  # noqa: E402
from tests.conformance.bridge import to_taeda, to_torch  # noqa: E402


@pytest.mark.parametrize("view", ["turned", "stepped", "permuted"])
def test_few_elements_of_a_view_by_their_places(view: str) -> None:
    layout = {
        "turned": lambda t: t.transpose(0, 2),
        "stepped": lambda t: t[:, ::3],
        "permuted": lambda t: t.permute(1, 2, 0),
    }[view]
    base = torch.randn(40, 51, 30)
    count = layout(base).numel()
    index = torch.randint(-count, count, (7, 9))
    index[0, :2], index[1] = torch.tensor([-count, count - 1]), index[2]
    ours = layout(to_taeda(base))
    assert torch.equal(to_torch(taeda.take(ours, to_taeda(index))), torch.take(layout(base), index))
    for accumulate in (False, True):
        values, want, got = torch.randn(7, 9), base.clone(), to_taeda(base)
        layout(want).put_(index, values, accumulate)
        layout(got).put_(to_taeda(index), to_taeda(values), accumulate)
        assert torch.equal(to_torch(got), want)
    leaf = to_taeda(base).requires_grad_()
    taeda.take(layout(leaf), to_taeda(index)).sum().backward()
    assert to_torch(leaf.grad).sum() == 63
    for wrong in (count, -count - 1):
        with pytest.raises(IndexError, match="out of range"):
            taeda.take(ours, taeda.tensor([0, wrong]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.bool, torch.complex128])
@pytest.mark.parametrize("shape", [(5, 70), (70, 5), (3, 4, 65), (1, 300), (300, 1), (2, 0, 3)])
def test_triangles(shape: tuple, dtype: torch.dtype) -> None:
    x = (torch.randn(shape) * 4).to(dtype)
    for a, diagonal in itertools.product((x, x.transpose(-1, -2)), (-301, -60, -3, 0, 2, 64, 301)):
        for name in ("tril", "triu"):
            want = getattr(torch, name)(a, diagonal)
            assert torch.equal(to_torch(getattr(taeda, name)(to_taeda(a), diagonal)), want)
            assert torch.equal(to_torch(getattr(to_taeda(a), name + "_")(diagonal)), want)


def test_triangles_of_many_bytes() -> None:
    x = torch.randn(2100, 2050)
    for name, diagonal in itertools.product(("tril", "triu"), (-700, 0, 900)):
        got = getattr(taeda, name)(to_taeda(x), diagonal)
        assert torch.equal(to_torch(got), getattr(torch, name)(x, diagonal))


def test_gradients_of_windows_that_share_elements() -> None:
    random = torch.Generator().manual_seed(0)

    def draw(low: int, high: int) -> int:
        return int(torch.randint(low, high, (), generator=random))

    for _ in range(200):
        dims = draw(1, 4)
        size, stride = [draw(1, 7) for _ in range(dims)], [draw(0, 9) for _ in range(dims)]
        offset = draw(0, 5)
        reach = offset + sum((s - 1) * t for s, t in zip(size, stride, strict=True))
        x = torch.randn(reach + 1 + draw(0, 4), dtype=torch.float64, requires_grad=True)
        ours = to_taeda(x.detach()).requires_grad_()
        g = torch.randn(size, dtype=torch.float64)
        x.as_strided(size, stride, offset).backward(g)
        ours.as_strided(size, stride, offset).backward(to_taeda(g))
        torch.testing.assert_close(to_torch(ours.grad), x.grad)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.bfloat16, torch.float32, torch.float64])
def test_copies_of_rows_of_any_width(dtype: torch.dtype) -> None:
    x = (torch.rand(37, 3, 270) * 200).to(dtype)
    ours = to_taeda(x)
    for width in (*range(2, 40), 63, 64, 65, 100, 128, 200, 256, 257):
        got = ours[:, 1, 3 : 3 + width].contiguous()
        assert torch.equal(to_torch(got), x[:, 1, 3 : 3 + width])
        into = taeda.zeros(3, 40, width + 5, dtype=got.dtype)
        into[:, 2:39, 5:] = ours[:, :, :width].transpose(0, 1)
        assert torch.equal(to_torch(into)[:, 2:39, 5:], x[:, :, :width].transpose(0, 1))
        assert not to_torch(into)[:, :, :5].any()


@pytest.mark.parametrize("width", [31, 32, 33, 64, 1024, 1025])
def test_selected_rows(width: int) -> None:
    x, index = torch.randn(50, width), torch.randint(0, 50, (300,), dtype=torch.int32)
    for a in (x, x.t().contiguous().t(), x[3:], x.view(25, 2, width)):
        places = index % a.size(0)
        got = taeda.index_select(to_taeda(a), 0, to_taeda(places))
        assert torch.equal(to_torch(got), a.index_select(0, places))
        with pytest.raises(IndexError):
            taeda.index_select(to_taeda(a), 0, taeda.tensor([0, a.size(0)]))
