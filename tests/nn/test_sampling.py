"""Resizing and sampling: values and gradients beside PyTorch's, layouts, dtypes, vmap, edges."""

from __future__ import annotations

import math

import pytest

import taeda
import taeda.nn.functional as F

MODES = [
    ("nearest", 1), ("nearest", 2), ("nearest", 3), ("nearest-exact", 2), ("linear", 1),
    ("bilinear", 2), ("bicubic", 2), ("trilinear", 3), ("area", 2),
]  # fmt: skip
RESIZINGS = [
    {"scale_factor": 2},
    {"scale_factor": 0.6},
    {"size": 7},
    {"size": 1},
    {"scale_factor": 1.7, "recompute_scale_factor": True},
]


def image(rank, *lead, dtype=taeda.float32):
    taeda.manual_seed(3)
    return taeda.randn(*lead, *(5, 6, 4)[:rank]).to(dtype)


def both(torch, x, *more):
    """The same values as leaves of both libraries."""
    ours = [t.detach().clone().requires_grad_() for t in (x, *more)]
    theirs = [torch.from_numpy(t.numpy().copy()).requires_grad_() for t in (x, *more)]
    return ours, theirs


def check(torch, call, ours, theirs, tolerance=2e-5):
    a, b = call(F, *ours), call(torch.nn.functional, *theirs)
    assert tuple(a.shape) == tuple(b.shape)
    close = {"rtol": tolerance, "atol": tolerance}
    torch.testing.assert_close(torch.from_numpy(a.detach().numpy()), b.detach(), **close)
    taeda.manual_seed(5)
    g = taeda.randn(a.shape, dtype=a.dtype)
    a.backward(g)
    b.backward(torch.from_numpy(g.numpy()))
    for x, y in zip(ours, theirs, strict=True):
        torch.testing.assert_close(torch.from_numpy(x.grad.numpy()), y.grad, **close)


@pytest.mark.parametrize(("mode", "rank"), MODES)
@pytest.mark.parametrize("options", RESIZINGS)
def test_interpolate(torch, mode, rank, options):
    corners = [None, True, False] if "linear" in mode or mode == "bicubic" else [None]
    for align in corners:
        more = {} if align is None else {"align_corners": align}
        for lead in [(2, 3), (1, 17)]:
            x = image(rank, *lead)
            check(
                torch,
                lambda f, t, more=more: f.interpolate(t, mode=mode, **options, **more),
                *both(torch, x),
            )
    x = image(rank, 1, 2, dtype=taeda.float64).requires_grad_()
    call = lambda t: F.interpolate(t, mode=mode, **options)  # noqa: E731
    assert taeda.autograd.gradcheck(call, (x,)) and taeda.autograd.gradgradcheck(call, (x,))


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("size", [(3, 2), (9, 11), (5, 3), (1, 1)])
@pytest.mark.parametrize("align", [False, True])
def test_antialias(torch, mode, size, align):
    call = lambda f, t: f.interpolate(  # noqa: E731
        t, size, mode=mode, antialias=True, align_corners=align
    )
    check(torch, call, *both(torch, image(2, 2, 3)))


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
def test_interpolate_layouts_and_dtypes(mode):
    x = image(2, 2, 5)
    plain = F.interpolate(x, scale_factor=2, mode=mode)
    last = F.interpolate(x.to(memory_format=taeda.channels_last), scale_factor=2, mode=mode)
    assert last.is_contiguous(memory_format=taeda.channels_last) and plain.is_contiguous()
    taeda.testing.assert_close(last.contiguous(), plain)
    turned = F.interpolate(x.transpose(2, 3), scale_factor=2, mode=mode)
    taeda.testing.assert_close(turned.transpose(2, 3), plain)
    spread = F.interpolate(x[:1].expand(3, -1, -1, -1), scale_factor=2, mode=mode)
    assert taeda.equal(spread[2], plain[0])
    half = F.interpolate(x.half(), scale_factor=2, mode=mode)
    assert half.dtype == taeda.float16
    taeda.testing.assert_close(half.float(), plain, rtol=1e-2, atol=1e-2)
    bytes_ = (x.abs() * 60).clamp(0, 255).to(taeda.uint8)
    if mode == "nearest":
        exact = F.interpolate(bytes_.float(), scale_factor=2, mode=mode)
        assert taeda.equal(F.interpolate(bytes_, scale_factor=2, mode=mode).float(), exact)
    with pytest.raises(NotImplementedError, match="Long|int64"):
        F.interpolate(x.long(), scale_factor=2, mode=mode)
    assert F.interpolate(x.to("meta"), scale_factor=2, mode=mode).shape == plain.shape
    assert F.interpolate(x[:0], scale_factor=2, mode=mode).shape == (0, 5, 10, 12)
    many = taeda.stack([x, x * 2])
    slopes = taeda.vmap(taeda.func.grad(lambda t: (F.interpolate(t, size=3, mode=mode) ** 2).sum()))
    mapped = slopes(many)
    taeda.testing.assert_close(mapped[1], mapped[0] * 2)


def grids(rank, n=2):
    taeda.manual_seed(4)
    return taeda.rand(n, *(3, 4, 2)[:rank], rank) * 3.2 - 1.6


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("rank", [2, 3])
def test_grid_sample(torch, mode, padding, align, rank):
    if rank == 3 and mode == "bicubic":
        with pytest.raises(RuntimeError, match="bicubic interpolation only supports 4D"):
            F.grid_sample(image(3, 2, 1), grids(3), mode, padding, align)
        return
    for channels in (1, 19):
        x = image(rank, 2, channels)
        call = lambda f, t, g: f.grid_sample(t, g, mode, padding, align)  # noqa: E731
        check(torch, call, *both(torch, x, grids(rank)), tolerance=1e-4)
    x = image(rank, 1, 2, dtype=taeda.float64).requires_grad_()
    grid = grids(rank, 1).double().requires_grad_(mode != "nearest")
    ours = lambda t, g: F.grid_sample(t, g, mode, padding, align)  # noqa: E731
    assert taeda.autograd.gradcheck(ours, (x, grid))
    assert taeda.autograd.gradgradcheck(ours, (x, grid))
    # The derivative in ops is the one that the kernels compute.
    leaves = [x, grid] if grid.requires_grad else [x]
    direct = taeda.autograd.grad(ours(x, grid).sin().sum(), leaves)
    in_ops = taeda.autograd.grad(ours(x, grid).sin().sum(), leaves, create_graph=True)
    for a, b in zip(direct, in_ops, strict=True):
        taeda.testing.assert_close(a, b.detach())


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("channels", [1, 3, 4, 18])
@pytest.mark.parametrize("dtype", [taeda.float32, taeda.float64])
def test_grid_sample_many_points(mode, padding, channels, dtype):
    """Small images go a way of their own, unless their channels lie side by side already."""
    taeda.manual_seed(5)
    for sizes in ((7, 9), (1, 5), (3, 5, 4)):
        rank = len(sizes)
        if rank == 3 and mode == "bicubic":
            continue
        x = taeda.randn(3, channels, *sizes, dtype=dtype)
        grid = taeda.rand(3, *(29, 19, 2)[:rank], rank, dtype=dtype) * 4 - 2
        grid[0, 0, 0] = math.nan
        last = x.to(memory_format=taeda.channels_last if rank == 2 else taeda.channels_last_3d)
        for align in (False, True):
            near = F.grid_sample(x, grid, mode, padding, align)
            far = F.grid_sample(last, grid, mode, padding, align)
            taeda.testing.assert_close(near, far, rtol=1e-4, atol=1e-5)


def test_grid_sample_edges():
    x, grid = image(2, 2, 3), grids(2)
    plain = F.grid_sample(x, grid, align_corners=False)
    last = F.grid_sample(x.to(memory_format=taeda.channels_last), grid, align_corners=False)
    assert plain.is_contiguous() and last.shape == plain.shape
    taeda.testing.assert_close(last, plain)
    half = F.grid_sample(x.half(), grid.half(), align_corners=False)
    taeda.testing.assert_close(half.float(), plain, rtol=2e-2, atol=2e-2)
    # What is not read does not matter, and a place that is no number reads nothing.
    broken = x.clone()
    broken[:, :, 0, 0] = math.nan
    far = taeda.full((2, 1, 3, 2), 9.0)
    far[:, :, 1], far[:, :, 2] = math.nan, 1e30
    assert taeda.equal(F.grid_sample(broken, far, align_corners=False), taeda.zeros(2, 3, 1, 3))
    inside = taeda.full((2, 1, 1, 2), 0.5)
    assert F.grid_sample(broken, inside, align_corners=False).isfinite().all()
    for how in ("bilinear", "nearest", "bicubic"):
        for padding in ("border", "reflection"):
            assert F.grid_sample(x, far, how, padding, False).shape == (2, 3, 1, 3)
    assert F.grid_sample(x[:0], grid[:0], align_corners=False).shape == (0, 3, 3, 4)
    assert F.grid_sample(x[:, :0], grid, align_corners=False).shape == (2, 0, 3, 4)
    assert F.grid_sample(x, grid[:, :0], align_corners=False).shape == (2, 3, 0, 4)
    assert F.grid_sample(x.to("meta"), grid.to("meta"), align_corners=False).shape == plain.shape
    empty = x[:, :0].detach().requires_grad_(), grid.detach().requires_grad_()
    F.grid_sample(*empty, align_corners=False).sum().backward()
    assert taeda.equal(empty[1].grad, taeda.zeros_like(grid))
    with pytest.raises(RuntimeError, match="same batch size"):
        F.grid_sample(x, grid[:1], align_corners=False)
    with pytest.raises(RuntimeError, match="non-empty spatial dimensions"):
        F.grid_sample(x[:, :, :0], grid, align_corners=False)
    with pytest.raises(RuntimeError, match="same dtype"):
        F.grid_sample(x, grid.double(), align_corners=False)
    with pytest.raises(NotImplementedError, match="not implemented for 'Long'"):
        F.grid_sample(x.long(), grid, align_corners=False)


def test_grid_sample_in_vmap():
    x, grid = image(2, 4, 2, 3), taeda.stack([grids(2), grids(2) / 2, -grids(2), grids(2)])
    call = lambda t, g: F.grid_sample(t, g, align_corners=False)  # noqa: E731
    mapped = taeda.vmap(call)(x, grid)
    assert taeda.equal(mapped, taeda.stack([call(*one) for one in zip(x, grid, strict=True)]))
    slope = taeda.func.grad(lambda t, g: (call(t, g) ** 2).sum(), (0, 1))
    mapped = taeda.vmap(slope)(x, grid)
    single = slope(x[1], grid[1])
    taeda.testing.assert_close(mapped[0][1], single[0])
    taeda.testing.assert_close(mapped[1][1], single[1])
    shared = taeda.vmap(call, (None, 0))(x[0], grid)
    taeda.testing.assert_close(shared[2], call(x[0], grid[2]))
