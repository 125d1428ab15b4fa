"""Convolutions and group norm of channels_last tensors, which are computed where they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="compares with PyTorch")

import taeda  # noqa: E402
from tests.conformance.bridge import to_taeda, to_torch  # noqa: E402

# batch, in and out channels, groups, input, kernel, stride, padding, dilation
CONVOLUTIONS = [
    # pointwise
    (3, 16, 24, 1, (9, 13), 1, 1, 0, 1),
    (2, 7, 5, 1, (9, 13), 1, 1, 0, 1),
    (2, 40, 33, 1, (9, 13), 1, 2, 0, 1),
    (2, 24, 24, 2, (6, 5), 1, 1, 1, 1),
    (1, 8, 8, 1, (1, 1), 1, 1, 0, 1),
    # windows
    (2, 3, 32, 1, (21, 30), 7, 2, 3, 1),
    (2, 3, 8, 1, (9, 13), 3, 1, 1, 1),
    (2, 48, 33, 1, (9, 13), 3, 1, 0, 1),
    (2, 64, 64, 1, (14, 15), 3, 1, 1, 1),
    (1, 40, 48, 4, (9, 13), 3, 2, 1, 1),
    (1, 16, 20, 1, (9, 13), 3, 1, 6, 6),
    (1, 40, 70, 1, (5, 300), 3, 1, 1, 1),
    # a kernel for each channel
    (2, 64, 64, 64, (9, 13), 3, 1, 1, 1),
    (2, 70, 70, 70, (9, 13), 3, 2, 1, 1),
    (1, 130, 130, 130, (9, 13), 5, (2, 3), 2, 1),
    (1, 33, 33, 33, (9, 13), 3, 1, (0, 4), (2, 3)),
    (2, 64, 64, 64, (2, 1), 3, 2, 1, 1),
    (2, 20, 20, 20, (9, 13), 3, 1, 1, 1),
    (2, 64, 128, 64, (9, 13), 3, 1, 1, 1),
    (1, 32, 32, 32, (60, 61), 3, 1, 1, 1),
    # volumes
    (2, 16, 24, 1, (4, 7, 6), 1, 1, 0, 1),
    (2, 16, 24, 1, (4, 7, 6), 3, 1, 1, 1),
    (2, 40, 40, 40, (4, 7, 6), 3, 2, 1, 1),
    # nothing
    (0, 64, 64, 64, (9, 13), 3, 1, 1, 1),
    (0, 16, 24, 1, (9, 13), 1, 1, 0, 1),
]
TOLERANCES = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 2e-2, torch.float16: 3e-3}


def last_of(sizes: tuple[int, ...], lib: Any) -> Any:
    """channels_last of tensors with as many dimensions, PyTorch's or taeda's."""
    return getattr(lib, "channels_last" if len(sizes) == 4 else "channels_last_3d")


def is_last(t: taeda.Tensor) -> bool:
    return t.numel() == 0 or t.is_contiguous(memory_format=last_of(t.shape, taeda))


def operands(case: tuple, dtype: torch.dtype) -> list[torch.Tensor]:
    """The input, the weight and the bias of a convolution, in channels_last."""
    n, channels, outputs, groups, size, kernel, *_ = case
    generator = torch.Generator().manual_seed(0)
    shapes = [
        (n, channels, *size),
        (outputs, channels // groups, *[kernel] * len(size)),
        (outputs,),
    ]
    made = [torch.randn(s, generator=generator).to(dtype) for s in shapes]
    made[1] /= max(1, made[1][0].numel()) ** 0.5
    return [t.contiguous(memory_format=last_of(t.shape, torch)) if t.dim() > 1 else t for t in made]


def results(tensors: list[taeda.Tensor], call: Callable[..., taeda.Tensor]) -> list[taeda.Tensor]:
    """What the call gives, and its gradients, for a gradient in channels_last."""
    tensors = [t.detach().requires_grad_() for t in tensors]
    y = call(*tensors)
    g = taeda.randn(y.shape, generator=taeda.Generator().manual_seed(1)).to(y.dtype)
    y.backward(g.contiguous(memory_format=last_of(y.shape, taeda)))
    return [y.detach(), *(t.grad for t in tensors)]


def check(got: list[taeda.Tensor], expected: list[taeda.Tensor], tolerance: float) -> None:
    for a, b in zip(got, expected, strict=True):
        a = a.to(taeda.float64)
        most = b.abs().max().item() if b.numel() else 0
        taeda.testing.assert_close(a, b, atol=tolerance * (1 + most), rtol=tolerance)


def convolution(case: tuple) -> Callable[..., taeda.Tensor]:
    _, _, _, groups, size, _, *rest = case
    conv = getattr(taeda.nn.functional, f"conv{len(size)}d")
    return lambda x, w, b: conv(x, w, b, *rest, groups)


@pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
@pytest.mark.parametrize("case", CONVOLUTIONS, ids=str)
def test_convolution(case: tuple, dtype: torch.dtype) -> None:
    given = operands(case, dtype)
    got = results([to_taeda(t) for t in given], convolution(case))
    assert all(is_last(t) for t in got[:2])
    plain = [to_taeda(t.double().contiguous()) for t in given]
    check(got, results(plain, convolution(case)), TOLERANCES[dtype])


@pytest.mark.parametrize("case", [c for c in CONVOLUTIONS if c[0] > 1], ids=str)
def test_convolution_of_views(case: tuple) -> None:
    x, w, b = (to_taeda(t) for t in operands(case, torch.float32))
    call = convolution(case)
    wide = taeda.cat([x, x], 1).contiguous(memory_format=last_of(x.shape, taeda))
    channels = case[1]
    for view in (wide[:, 1 : channels + 1], x[:1].expand(x.shape), x.flip(-1), x[..., ::2]):
        expected = call(view.double().contiguous(), w.double().contiguous(), b.double())
        check([call(view, w, b), call(view, w.contiguous(), b)], [expected] * 2, 1e-5)


@pytest.mark.parametrize("case", CONVOLUTIONS, ids=str)
def test_threads_do_not_change_the_bits_of_convolutions(case: tuple) -> None:
    ours = [to_taeda(t) for t in operands(case, torch.float32)]
    unchanged_by_threads(lambda: results(ours, convolution(case)))


def unchanged_by_threads(call: Callable[[], list[taeda.Tensor]]) -> None:
    before = taeda.get_num_threads()
    try:
        taeda.set_num_threads(1)
        first = call()
        for threads in (2, 3):
            taeda.set_num_threads(threads)
            assert all(taeda.equal(a, b) for a, b in zip(first, call(), strict=True))
    finally:
        taeda.set_num_threads(before)


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("channels", [1, 64])
def test_what_a_convolution_does_not_read_stays_out(channels: int, stride: int) -> None:
    x = taeda.randn(2, 64, 9, 11)
    x[0, 3, 4, 10] = taeda.inf
    x[1, 5, 8, 2] = taeda.nan
    w, g = taeda.randn(64, channels, 3, 3), 64 // channels
    plain, last = (
        taeda.nn.functional.conv2d(t, w, None, stride, 1, 1, g)
        for t in (x, x.contiguous(memory_format=taeda.channels_last))
    )
    assert taeda.equal(plain.isfinite(), last.isfinite())
    assert taeda.equal(plain.isnan(), last.isnan())


# sizes and groups
NORMS = [
    ((3, 64, 7, 9), 32),
    ((2, 33, 11, 5), 11),
    ((1, 320, 16, 16), 32),
    ((2, 300, 40, 41), 4),
    ((4, 48, 9, 9), 48),
    ((4, 48, 9, 9), 1),
    ((2, 16, 3, 4, 5), 4),
    ((0, 8, 3, 3), 2),
    ((2, 8, 1, 3), 2),
]


def norm(groups: int) -> Callable[..., taeda.Tensor]:
    return lambda x, *parameters: taeda.nn.functional.group_norm(x, groups, *parameters)


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
@pytest.mark.parametrize(("sizes", "groups"), NORMS, ids=str)
def test_group_norm(sizes: tuple, groups: int, dtype: torch.dtype, affine: bool) -> None:
    shapes = [sizes, sizes[1:2], sizes[1:2]] if affine else [sizes]
    given = [(torch.randn(s) + 2).to(dtype) for s in shapes]
    theirs = [t.double().requires_grad_() for t in given]
    y = torch.nn.functional.group_norm(theirs[0], groups, *theirs[1:])
    g = to_torch(taeda.randn(sizes, generator=taeda.Generator().manual_seed(1))).to(dtype)
    y.backward(g.double())
    expected = [to_taeda(t.detach()) for t in (y, *(t.grad for t in theirs))]
    ours = [to_taeda(t) for t in given]
    ours[0] = ours[0].contiguous(memory_format=last_of(sizes, taeda))
    got = results(ours, norm(groups))
    assert all(is_last(t) for t in got[:2])
    check(got, expected, TOLERANCES[dtype])
    wide = taeda.cat([ours[0], ours[0]], 1)[:, 1 : sizes[1] + 1]  # not dense
    wide.copy_(ours[0])
    check([norm(groups)(wide, *ours[1:])], expected[:1], TOLERANCES[dtype])


def test_group_norm_far_from_zero() -> None:
    x = torch.randn(1, 64, 40, 40) + 1000
    expected = to_taeda(torch.nn.functional.group_norm(x.double(), 8))
    ours = to_taeda(x.contiguous(memory_format=torch.channels_last))
    taeda.testing.assert_close(norm(8)(ours).double(), expected, atol=2e-4, rtol=0)
    ours[0, 3, 2, 2] = taeda.nan
    spoiled = norm(8)(ours).isnan()
    assert spoiled[:, :8].all() and not spoiled[:, 8:].any()


@pytest.mark.parametrize(("sizes", "groups"), NORMS, ids=str)
def test_threads_do_not_change_the_bits_of_group_norm(sizes: tuple, groups: int) -> None:
    x = taeda.randn(sizes).contiguous(memory_format=last_of(sizes, taeda))
    parameters = [taeda.randn(sizes[1]) for _ in range(2)]
    unchanged_by_threads(lambda: results([x, *parameters], norm(groups)))
