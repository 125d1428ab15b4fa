"""Convolution and transposed convolution, over shapes that take different paths inside."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="compares with PyTorch")

import taeda  # noqa: E402
from tests.conformance.bridge import to_taeda, to_torch  # noqa: E402
from tests.ops.compare import compare, compare_error, compare_to_double, leaf  # noqa: E402

# batch, groups, in and out channels, input, kernel, stride, padding, dilation
CASES = [
    (2, 1, 3, 5, (10,), (3,), 1, 1, 1),
    (2, 1, 3, 5, (11,), (4,), 3, 2, 2),
    (1, 2, 4, 6, (200,), (5,), 1, 0, 1),
    (3, 4, 4, 4, (9,), (3,), 2, 1, 1),
    (2, 1, 3, 4, (6, 7), (3, 3), 1, 1, 1),
    (2, 1, 3, 4, (6, 7), (3, 2), (2, 3), (1, 0), (2, 1)),
    (2, 1, 4, 3, (5, 5), (1, 1), 1, 0, 1),
    (2, 2, 4, 6, (5, 5), (1, 1), 2, 0, 1),
    (2, 6, 6, 6, (7, 6), (3, 3), 1, 1, 1),
    (2, 3, 3, 6, (7, 6), (3, 3), 2, 1, 1),
    (1, 1, 2, 2, (4, 4), (3, 3), 1, 4, 1),
    (3, 1, 1, 6, (9, 20), (5, 5), 1, 2, 1),
    (2, 2, 4, 18, (7, 9), (3, 3), (2, 1), 1, 2),
    (1, 1, 1, 4, (5, 31), (3, 3), (3, 1), 1, 1),
    (3, 1, 1, 1, (1, 1), (1, 1), 1, 0, 1),
    (2, 1, 2, 3, (4, 5, 4), (3, 2, 3), (1, 2, 1), (1, 1, 0), 1),
    (1, 2, 4, 4, (4, 4, 4), (2, 2, 2), 2, 0, 1),
    (0, 1, 3, 5, (8, 8), (3, 3), 1, 1, 1),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_conv(case: tuple) -> None:
    n, groups, ic, oc, size, kernel, stride, padding, dilation = case
    name = f"nn.functional.conv{len(size)}d"
    x, w = leaf(n, ic, *size), leaf(oc, ic // groups, *kernel, seed=1)
    compare(name, x, w, leaf(oc, seed=2), stride, padding, dilation, groups)
    compare(name, x, w, None, stride, padding, dilation, groups, second=False)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_conv_transpose(case: tuple) -> None:
    n, groups, ic, oc, size, kernel, stride, padding, dilation = case
    name = f"nn.functional.conv_transpose{len(size)}d"
    if n == 0 or padding == 4:
        pytest.skip("PyTorch has no such transposed convolution")
    x, w = leaf(n, ic, *size), leaf(ic, oc // groups, *kernel, seed=1)
    strides = (stride,) * len(size) if isinstance(stride, int) else stride
    extra = tuple(s - 1 for s in strides)
    compare(name, x, w, leaf(oc, seed=2), stride, padding, extra, groups, dilation)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_dtypes(dtype: torch.dtype) -> None:
    x, w = leaf(2, 3, 8, 8, dtype=dtype), leaf(4, 3, 3, 3, dtype=dtype, seed=1)
    compare("nn.functional.conv2d", x.detach(), w.detach(), leaf(4, dtype=dtype, grad=False), 1, 1)


def test_layers_as_large_as_real_ones() -> None:
    for n, ic, oc, size, kernel, stride in [
        (4, 64, 128, 14, 3, 1),
        (9, 200, 130, 7, 3, 1),
        (2, 3, 64, 64, 7, 2),
        (5, 6, 16, 14, 5, 1),
        (2, 300, 300, 30, 1, 1),
    ]:
        x = leaf(n, ic, size, size, dtype=torch.float64)
        w = leaf(oc, ic, kernel, kernel, dtype=torch.float64, seed=1)
        compare("nn.functional.conv2d", x, w, None, stride, kernel // 2, second=False)


@pytest.mark.parametrize(
    ("n", "groups", "ic", "oc", "size", "kernel", "stride"),
    [
        (5, 1, 64, 96, 8, 3, 2),
        (3, 2, 64, 64, 5, 3, 2),
        (4, 1, 32, 40, 30, 4, 2),
        (2, 1, 40, 32, 13, 3, (1, 2)),
        (5, 1, 20, 33, 14, 1, 2),
        (2, 1, 3, 4, 20, 1, 3),
    ],
)
def test_steps_over_small_images(n, groups, ic, oc, size, kernel, stride) -> None:
    x = leaf(n, ic, size, size, dtype=torch.float64)
    w = leaf(oc, ic // groups, kernel, kernel, dtype=torch.float64, seed=1)
    b = leaf(oc, dtype=torch.float64, seed=2)
    padding = kernel // 2
    compare("nn.functional.conv2d", x, w, b, stride, padding, 1, groups, second=False)


# Where images, or outputs, lie side by side, or windows do:
# batch, in and out channels, input, kernel, stride, padding, dilation
ACROSS = [
    (9, 32, 64, (8, 8), (5, 5), 1, 2, 1),
    (33, 6, 16, (12, 12), (5, 5), 1, 0, 1),
    (70, 20, 12, (7, 6), (5, 3), 1, (4, 1), (2, 1)),
    (6, 32, 32, (5, 9), (3, 3), 1, 3, 3),
    (10, 64, 40, (8, 7), (4, 3), 2, 1, 1),
    (17, 32, 48, (6, 6), (3, 4), (1, 3), (0, 2), (2, 1)),
    (5, 32, 64, (4, 5, 4), (3, 3, 2), 1, 1, 1),
    (8, 32, 32, (4, 6, 6), (3, 1, 3), (1, 2, 2), (2, 0, 1), 1),
    (12, 64, 64, (40,), (3,), 1, 4, 4),
    (34, 64, 64, (2, 2), (3, 3), 1, 1, 1),
    (3, 16, 12, (8, 7, 9), (3, 3, 2), 2, 1, 1),
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("case", ACROSS, ids=str)
def test_small_images(case: tuple, dtype: torch.dtype) -> None:
    n, ic, oc, size, kernel, stride, padding, dilation = case
    x = leaf(n, ic, *size, dtype=dtype)
    w, b = leaf(oc, ic, *kernel, dtype=dtype, seed=1), leaf(oc, dtype=dtype, seed=2)
    with torch.no_grad():  # so that long sums stay small
        x /= 32
        w /= 32
    name = f"nn.functional.conv{len(size)}d"
    compare(name, x, w, b, stride, padding, dilation, second=False)


# Where channels lie side by side: batch, groups, in and out channels, input, kernel, stride,
# padding, dilation. Some are so large that images are cut: along depth, rows or a single row.
LAST = [
    (2, 1, 16, 32, (9, 8, 7), (3, 3, 3), 2, 1, 1),
    (2, 1, 5, 40, (6, 7, 9), (3, 2, 3), (1, 2, 1), (1, 0, 2), (2, 1, 1)),
    (1, 1, 16, 48, (20, 20, 20), (3, 3, 3), 1, 1, 1),
    (2, 1, 8, 16, (40, 44), (5, 5), 3, (2, 4), 1),
    (1, 2, 32, 48, (61, 70), (2, 3), (2, 1), 1, (1, 3)),
    (3, 4, 32, 32, (15, 14), (3, 3), 2, 1, 1),
    (1, 3, 24, 27, (12, 13), (3, 3), (1, 2), 2, 1),
    (4, 1, 4, 32, (44, 44), (8, 8), 4, 0, 1),
    (1, 1, 64, 33, (2500,), (3,), 1, 2, 2),
    (2, 1, 20, 50, (701,), (5,), 3, 4, 7),
    (1, 1, 70, 80, (7, 7), (3, 3), 1, 1, 1),
    (5, 1, 40, 96, (9, 9), (1, 1), 2, 0, 1),
    (3, 1, 300, 72, (6, 6), (1, 1), 1, 0, 1),
    (1, 1, 16, 17, (5, 6), (3, 3), 4, 3, 1),
    (3, 2, 32, 40, (1, 3), (2, 4), 2, 3, 1),
    (2, 1, 6, 16, (12, 12), (5, 5), 1, 0, 1),
    (2, 1, 16, 32, (1, 1), (2, 2), 3, 1, 2),  # reads nothing but padding
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("case", LAST, ids=str)
def test_channels_side_by_side(case: tuple, dtype: torch.dtype) -> None:
    n, groups, ic, oc, size, kernel, stride, padding, dilation = case
    x = leaf(n, ic, *size, dtype=dtype)
    w, b = leaf(oc, ic // groups, *kernel, dtype=dtype, seed=1), leaf(oc, dtype=dtype, seed=2)
    with torch.no_grad():  # so that long sums stay small
        x /= 32
        w /= 32
    rest = (stride, padding, dilation, groups)
    compare(f"nn.functional.conv{len(size)}d", x, w, b, *rest, second=False)


# Kernels of four rows and more, a channel each: channels, input, kernel, padding, dilation.
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize(
    ("channels", "size", "kernel", "padding", "dilation"),
    [
        (5, (28, 28), (7, 7), 3, 1),
        (3, (9, 70), (5, 5), 2, 1),
        (3, (6, 33), (4, 3), 0, (1, 2)),
        (2, (4, 16), (9, 1), (4, 0), 1),
        (3, (13, 11), (7, 7), 5, 1),
        (2, (37, 5), (5, 4), 1, 1),
        (2, (7, 19), (5, 5), 4, (2, 1)),
        (2, (3, 40), (5, 5), 2, 1),
    ],
)
def test_tall_kernels_of_a_channel_each(channels, size, kernel, padding, dilation, dtype) -> None:
    x = leaf(2, channels, *size, dtype=dtype)
    w, b = leaf(channels, 1, *kernel, dtype=dtype, seed=1), leaf(channels, dtype=dtype, seed=2)
    rest = (1, padding, dilation, channels)
    compare_to_double("nn.functional.conv2d", x, w, b, *rest)


def test_one_window() -> None:
    x, w, b = leaf(5, 6, 4, 3), leaf(8, 3, 4, 3, seed=1), leaf(8, seed=2)
    compare("nn.functional.conv2d", x, w, b, 1, 0, 1, 2)
    compare("nn.functional.conv2d", x, w, None, 3, 0, 1, 2, second=False)
    x, w, b = leaf(3, 10, 1, 1), leaf(10, 7, 4, 5, seed=1), leaf(7, seed=2)
    compare("nn.functional.conv_transpose2d", x, w, b, second=False)


def test_not_a_number_stays_where_it_is_read() -> None:
    x = torch.ones(1, 16, 12, 12)
    x[0, 3, 5, 6] = torch.nan
    w = torch.full((32, 8, 3, 3), 1.0)
    y = taeda.nn.functional.conv2d(to_taeda(x), to_taeda(w), stride=2, padding=1, groups=2)
    want = torch.nn.functional.conv2d(x, w, stride=2, padding=1, groups=2)
    torch.testing.assert_close(to_torch(y), want, equal_nan=True)


def test_steps_far_past_the_input() -> None:
    far = 10**6
    x, w = leaf(1, 16, 2), leaf(32, 16, 3, seed=1)
    compare("nn.functional.conv1d", x, w, None, far, far, far, second=False)


def test_windows_side_by_side() -> None:
    x, w, b = leaf(5, 3, 33, 24), leaf(20, 3, 8, 8, seed=1), leaf(20, seed=2)
    compare("nn.functional.conv2d", x, w, b, 8, second=False)
    compare("nn.functional.conv2d", x, w, b, 9, 2, second=False)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("size", [(1, 1), (2, 3), (4, 5), (7, 7), (14, 9), (9, 16), (6, 31)])
def test_small_planes(size: tuple, dtype: torch.dtype) -> None:
    for kernel, dilation in [((3, 3), 1), ((5, 2), 1), ((3, 3), 2)]:
        padding = tuple(k // 2 * dilation for k in kernel)
        x = leaf(3, 20, *size, dtype=dtype)
        w, b = leaf(20, 1, *kernel, dtype=dtype, seed=1), leaf(20, dtype=dtype, seed=2)
        compare("nn.functional.conv2d", x, w, b, 1, padding, dilation, 20, second=False)


# A kernel for each channel: batch, channels, input, kernel, stride, padding, dilation
CHANNELS = [
    (3, 70, (7, 7), (7, 7), 1, 3, 1),
    (9, 33, (14, 13), (3, 3), 2, 1, 1),
    (2, 64, (9, 8), (3, 4), (1, 3), (0, 2), (2, 1)),
    (2, 40, (4, 5, 6), (3, 2, 3), (1, 2, 1), 1, 1),
    (4, 20, (30,), (5,), 2, 4, 2),
    (2, 130, (6, 6), (2, 2), 3, 0, 1),
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("case", CHANNELS, ids=str)
def test_a_kernel_for_each_channel(case: tuple, dtype: torch.dtype) -> None:
    n, channels, size, kernel, stride, padding, dilation = case
    x = leaf(n, channels, *size, dtype=dtype)
    w, b = leaf(channels, 1, *kernel, dtype=dtype, seed=1), leaf(channels, dtype=dtype, seed=2)
    with torch.no_grad():
        w /= 8
    name = f"nn.functional.conv{len(size)}d"
    compare(name, x, w, b, stride, padding, dilation, channels, second=False)


def test_rows_as_wide_as_a_run_of_tiles() -> None:
    """Where rows of the input's gradient are steps apart, nothing may reach into the next one."""
    for width in (30, 62, 126, 254):
        x, w = leaf(2, 1, 9, width, dtype=torch.float32), leaf(5, 1, 3, 3, dtype=torch.float32)
        compare_to_double("nn.functional.conv2d", x, w, None, (2, 1), 1)


def test_padding_by_name_and_unbatched() -> None:
    x, w = leaf(3, 9, 9), leaf(5, 3, 3, 4, seed=1)
    compare("nn.functional.conv2d", x, w, padding="valid")
    compare("nn.functional.conv2d", x.unsqueeze(0), w, padding="valid")
    odd = leaf(5, 3, 3, 3, seed=1)
    compare("nn.functional.conv2d", leaf(2, 3, 9, 9), odd, padding="same", dilation=2)
    compare("nn.functional.conv1d", leaf(3, 9), leaf(5, 3, 3, seed=1), leaf(5, seed=2))
    compare("nn.functional.conv_transpose2d", leaf(3, 5, 5), leaf(3, 2, 3, 3, seed=1))


def test_layouts() -> None:
    x, w = leaf(2, 3, 6, 6, grad=False), leaf(4, 3, 3, 3, seed=1, grad=False)
    compare("nn.functional.conv2d", x.transpose(2, 3), w.transpose(2, 3))
    compare("nn.functional.conv2d", x[:, :, ::2, 1:], w[::2], second=False)
    ours = taeda.nn.functional.conv2d(
        to_taeda(x.contiguous(memory_format=torch.channels_last)), to_taeda(w)
    )
    assert taeda.allclose(ours, taeda.nn.functional.conv2d(to_taeda(x), to_taeda(w)))


@pytest.mark.parametrize(
    ("channels", "stride", "size", "kernel", "groups"),
    [
        (8, 1, 30, 3, 1),
        (48, 1, 30, 3, 1),
        (64, 2, 30, 3, 1),
        (32, 1, 8, 5, 1),
        (32, 2, 8, 4, 1),
        (64, 1, 8, 5, 64),
    ],
)
def test_threads_do_not_change_the_bits(
    channels: int, stride: int, size: int, kernel: int, groups: int
) -> None:
    x = to_taeda(torch.randn(5, channels, size, size))
    w = to_taeda(torch.randn(64, channels // groups, kernel, kernel))
    x.requires_grad_()
    w.requires_grad_()
    before = taeda.get_num_threads()
    results = []
    try:
        for threads in (1, 2, 3):
            taeda.set_num_threads(threads)
            y = taeda.nn.functional.conv2d(x, w, None, stride, 1, 1, groups)
            results.append([y.detach(), *taeda.autograd.grad((y * y).sum(), (x, w))])
    finally:
        taeda.set_num_threads(before)
    for other in results[1:]:
        assert all(taeda.equal(a, b) for a, b in zip(results[0], other, strict=True))


def test_gradcheck() -> None:
    x, w, b = (to_taeda(t) for t in (leaf(2, 4, 5, 5), leaf(4, 2, 3, 3, seed=1), leaf(4, seed=2)))

    def f(x, w, b):
        return taeda.nn.functional.conv2d(x, w, b, stride=2, padding=1, groups=2)

    assert taeda.autograd.gradcheck(f, (x, w, b))
    assert taeda.autograd.gradgradcheck(f, (x, w, b))


def test_errors() -> None:
    x, w = torch.ones(1, 3, 5, 5), torch.ones(4, 3, 3, 3)
    conv = "nn.functional.conv2d"
    compare_error(conv, torch.ones(1, 2, 5, 5), w)
    compare_error(conv, torch.ones(5, 5), w)
    compare_error(conv, x, torch.ones(4, 3, 7, 7))
    compare_error(conv, x, w, torch.ones(3))
    compare_error(conv, x, w, None, 0)
    compare_error(conv, x, w, None, 1, -1)
    compare_error(conv, x, w, None, 1, 0, 0)
    compare_error(conv, x, w, None, 1, 0, 1, 2)
    compare_error(conv, x, w.double())
    compare_error(conv, x, w, None, 2, "same")


# What Winograd's way covers: batch, groups, in and out channels, input, padding, stride.
SMALL_TILES = [
    (2, 1, 16, 16, (8, 8), 1, 1),
    (1, 1, 32, 48, (13, 18), 0, 1),
    (3, 1, 50, 35, (9, 30), 2, 1),
    (2, 2, 64, 96, (7, 7), (0, 3), 1),
    (16, 1, 96, 64, (4, 4), 1, 1),
    (1, 1, 17, 33, (3, 150), (1, 0), 1),
    (9, 1, 64, 64, (5, 6), 1, 1),
    (4, 1, 64, 64, (24, 24), 1, 2),
    (16, 1, 64, 96, (33, 17), (1, 0), 2),
    (8, 2, 128, 128, (31, 15), 1, 2),
    (8, 1, 64, 64, (29, 27), 2, 2),
    (3, 1, 150, 130, (9, 14), 1, 1),
    (4, 1, 130, 101, (25, 21), 1, 2),
]


# Dilated, as images of their own: the same, with the dilation for the stride
DILATED = [
    (2, 1, 64, 64, (28, 20), 2, 2),
    (3, 2, 128, 64, (24, 24), (0, 3), (2, 3)),
    (1, 1, 96, 64, (40, 30), (4, 1), (4, 1)),
    (2, 1, 64, 72, (33, 34), 2, 2),
    (1, 1, 64, 65, (25, 31), (0, 6), (2, 3)),
    (2, 2, 130, 128, (37, 29), (3, 1), (3, 1)),
    (2, 1, 40, 70, (20, 17), 6, 6),
    (1, 1, 130, 96, (33, 33), 12, 12),
]


def errors(case: tuple, dilated: bool = False) -> list[tuple[float, float]]:
    """Of a convolution in float32 and its gradients: the largest errors, ours and PyTorch's."""
    n, groups, ic, oc, size, padding, stride = case
    stride, dilation = (1, stride) if dilated else (stride, 1)
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(n, ic, *size, generator=generator).requires_grad_()
    w = torch.randn(oc, ic // groups, 3, 3, generator=generator) / (3 * (ic / groups) ** 0.5)
    b = torch.randn(oc, generator=generator)
    w.requires_grad_()

    def results(library, cast) -> list:
        a, v = (cast(t) for t in (x, w))
        y = library.nn.functional.conv2d(a, v, cast(b), stride, padding, dilation, groups)
        g = torch.randn(*y.shape, generator=torch.Generator().manual_seed(1))
        return [y, *library.autograd.grad(y, (a, v), cast(g))]

    exact = results(torch, lambda t: t.double())
    ours = [to_torch(t) for t in results(taeda, to_taeda)]
    theirs = results(torch, lambda t: t)
    return [
        (float((a - e).detach().abs().max()), float((b - e).detach().abs().max()))
        for a, b, e in zip(ours, theirs, exact, strict=True)
    ]


@pytest.mark.parametrize("case", SMALL_TILES, ids=str)
def test_accuracy_of_float32(case: tuple) -> None:
    for ours, theirs in errors(case):
        assert ours < max(1e-5, 20 * theirs)


@pytest.mark.parametrize("case", DILATED, ids=str)
def test_accuracy_of_dilated_kernels(case: tuple) -> None:
    for ours, theirs in errors(case, dilated=True):
        assert ours < max(1e-5, 20 * theirs)


@pytest.mark.parametrize(
    ("stride", "shape"), [(1, (2, 32, 12, 12)), (1, (2, 130, 11, 12)), (2, (2, 64, 40, 40))]
)
def test_values_that_are_not_finite_stay_where_they_are_read(stride: int, shape: tuple) -> None:
    channels = shape[1]
    for value in (float("inf"), float("-inf"), float("nan")):
        x, w = torch.randn(shape), torch.randn(channels, channels, 3, 3) / 17
        x[0, 3, 5, 5] = value
        compare("nn.functional.conv2d", x, w, None, stride, 1, second=False)
        w[1, 2, 1, 1] = value
        ours = [to_taeda(t).requires_grad_() for t in (torch.randn(shape), w)]
        theirs = [to_torch(t).detach().requires_grad_() for t in ours]
        y = taeda.nn.functional.conv2d(*ours, stride=stride, padding=1)
        expected = torch.nn.functional.conv2d(*theirs, stride=stride, padding=1)
        g = torch.randn(expected.shape)
        g[1, 1, 5, 5] = value
        pairs = zip(
            [y, *taeda.autograd.grad(y, ours, to_taeda(g))],
            [expected, *torch.autograd.grad(expected, theirs, g)],
            strict=True,
        )
        for a, b in pairs:
            a = to_torch(a).detach()
            assert torch.equal(a.isfinite(), b.isfinite())
            assert torch.equal(a.isnan(), b.isnan())
