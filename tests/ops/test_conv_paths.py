"""Convolutions over shapes that are worked on in ways of their own."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="compares with PyTorch")

import taeda  # noqa: E402
from tests.conformance.bridge import to_taeda, to_torch  # noqa: E402
from tests.ops.compare import compare_to_double, leaf  # noqa: E402

# batch, groups, in and out channels, input, kernel, stride, padding, dilation
CASES = [
    # single elements of small images
    (3, 1, 37, 70, (7, 7), (1, 1), 1, 0, 1),
    (30, 1, 40, 33, (5, 4), (1, 1), 1, 0, 1),
    (6, 1, 26, 65, (3, 9, 4), (1, 1, 1), 1, 0, 1),
    (2, 2, 60, 34, (50,), (1,), 1, 0, 1),
    (6, 1, 30, 41, (1, 1), (1, 1), 1, 0, 1),
    (6, 1, 30, 41, (3, 3), (1, 1), 4, 0, 1),
    (0, 1, 30, 41, (3, 3), (1, 1), 1, 0, 1),
    # ... and of larger ones
    (2, 1, 27, 66, (13, 21), (1, 1), 1, 0, 1),
    (1, 1, 600, 70, (9, 17), (1, 1), 1, 0, 1),
    # many weights and few places
    (1, 1, 200, 190, (4, 3), (3, 3), 1, 1, 1),
    (5, 1, 190, 130, (2, 2), (3, 3), 1, 1, 1),
    (1, 1, 130, 140, (15, 9), (4, 3), 2, (1, 0), (1, 2)),
    (3, 1, 130, 140, (13, 18), (3, 3), 2, 1, 1),
    (2, 1, 130, 140, (31,), (5,), 1, 4, 2),
    (1, 1, 70, 66, (3, 4, 5), (3, 2, 3), (1, 2, 1), 1, 1),
    # taps far apart, and rows of them, that fall beside the input
    (1, 1, 40, 70, (9, 17), (3, 3), 1, 6, 6),
    (1, 2, 160, 128, (19, 30), (5, 3), 1, (8, 9), (4, 9)),
    (2, 1, 24, 36, (9, 31), (3, 3), (1, 2), 5, 5),
    (1, 1, 33, 40, (7, 8, 9), (3, 3, 3), 1, 4, 4),
    (1, 1, 30, 40, (90,), (7,), 1, 30, 20),
    (1, 1, 40, 48, (6, 7), (3, 3), 1, 9, 9),
    (1, 1, 100, 140, (7, 7), (5, 5), 1, 2, 1),
    # gradients of inputs with few channels
    (2, 1, 1, 40, (301,), (10,), 5, 2, 1),
    (3, 1, 3, 48, (37, 30), (4, 3), 2, 1, (1, 2)),
    (2, 2, 4, 80, (20, 27), (3, 3), 1, 1, 1),
    # steps of four
    (2, 1, 3, 40, (12, 67), (4, 4), 4, 0, 1),
    (2, 1, 3, 20, (9, 140), (3, 5), (1, 4), (0, 2), 1),
    (1, 3, 3, 3, (9, 131), (3, 3), 4, 1, 1),
    # a kernel for each channel, in steps of two
    (2, 3, 3, 3, (31, 40), (3, 3), 2, 1, 1),
    (2, 3, 3, 3, (40, 71), (5, 5), 2, 2, 1),
    (2, 2, 2, 4, (33, 34), (3, 2), 2, (0, 1), (1, 3)),
    (1, 3, 3, 3, (17, 50), (4, 3), (3, 2), (2, 0), (2, 2)),
    (1, 3, 3, 3, (17, 50), (4, 3), (1, 2), (7, 9), 1),
    (1, 3, 3, 3, (17, 50), (1, 1), 2, 0, 1),
    (1, 3, 3, 3, (17, 50), (3, 3), (2, 1), 1, 1),
    (1, 2, 2, 2, (3, 1), (3, 3), 2, 1, 1),
    (1, 2, 2, 2, (1, 2), (1, 2), 2, 0, 1),
    (1, 2, 2, 2, (1, 1), (1, 1), 2, 4, 1),
    (1, 3, 3, 3, (5, 9, 36), (3, 3, 3), 2, 1, 1),
    (1, 3, 3, 3, (6, 7, 36), (2, 3, 5), (1, 3, 2), (0, 1, 3), (2, 1, 1)),
    (3, 3, 3, 3, (101,), (5,), 2, 3, 1),
    (0, 3, 3, 3, (40, 40), (3, 3), 2, 1, 1),
    # ... and in strips
    (2, 3, 3, 3, (14, 14), (7, 7), 1, 3, 1),
    (2, 3, 3, 3, (4, 8), (3, 3), 1, 1, 1),
    (2, 3, 3, 3, (18, 11), (5, 3), 1, 0, 1),
    (1, 3, 3, 6, (28, 29), (9, 5), 1, 4, 1),
    (1, 2, 2, 2, (33, 40), (31, 31), 1, 15, 1),
    (1, 2, 2, 2, (40, 21), (6, 2), 1, (3, 5), (1, 2)),
    (1, 2, 2, 2, (37, 33), (3, 3), 1, 4, 4),
    (1, 2, 2, 2, (37, 33), (3, 5), 1, (1, 2), (2, 1)),
    (2, 3, 3, 3, (30, 16), (5, 5), 2, 2, 1),
    (1, 3, 3, 3, (47, 70), (7, 6), 2, (2, 3), 1),
    (1, 3, 3, 3, (47, 70), (8, 7), (2, 1), 2, 1),
    (1, 3, 3, 3, (47, 70), (3, 7), (1, 2), (1, 0), 1),
    (1, 2, 2, 2, (65, 66), (2, 2), 2, 0, 1),
    (3, 2, 2, 2, (19, 35), (3, 3), 1, 0, 1),
    (2, 2, 2, 2, (36, 34), (3, 3), 2, 0, 1),
    (2, 2, 2, 2, (31, 18), (5, 4), 1, (1, 2), (1, 3)),
    (2, 2, 2, 2, (61, 47), (7, 7), 2, 3, 1),
    (2, 2, 2, 2, (61, 47), (3, 5), 2, (2, 0), 1),
    (1, 2, 2, 2, (65, 66), (1, 1), 2, 0, 1),
]

# The weights' gradient is summed in parts.
PARTS = [
    (32, 1, 1, 16, (8, 8), (3, 3), 1, 1, 1),
    (19, 1, 6, 7, (21, 20), (5, 4), 1, 0, 1),
    (33, 1, 16, 40, (8, 8), (3, 3), 1, 1, 1),
    (16, 1, 32, 33, (30, 32), (3, 3), 1, 1, 1),
    (9, 1, 48, 64, (33, 31), (3, 3), 2, 1, 1),
    (17, 1, 70, 30, (15, 17), (1, 1), 1, 0, 1),
    (9, 2, 60, 40, (33, 30), (2, 2), 2, 0, 1),
    (25, 5, 5, 5, (18, 17), (3, 5), 1, (1, 2), 1),
    (25, 20, 20, 20, (8, 7), (3, 3), 1, 1, 1),
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_conv(case: tuple, dtype: torch.dtype) -> None:
    n, groups, ic, oc, size, kernel, stride, padding, dilation = case
    x = leaf(n, ic, *size, dtype=dtype)
    w = leaf(oc, ic // groups, *kernel, dtype=dtype, seed=1)
    with torch.no_grad():
        w /= w[0].numel() ** 0.5
    name, rest = f"nn.functional.conv{len(size)}d", (stride, padding, dilation, groups)
    compare_to_double(name, x, w, leaf(oc, dtype=dtype, seed=2), *rest)
    compare_to_double(name, x, w, None, *rest)


@pytest.mark.parametrize("case", PARTS, ids=str)
def test_sums_in_parts(case: tuple) -> None:
    n, groups, ic, oc, size, kernel, *rest = case
    x, w = torch.randn(n, ic, *size), torch.randn(oc, ic // groups, *kernel)
    weight = w.double().requires_grad_()
    result = torch.nn.functional.conv2d(x.double(), weight, None, *rest, groups)
    g = torch.randn_like(result, dtype=torch.float32)
    result.backward(g.double())
    ours = to_taeda(w).requires_grad_()
    taeda.nn.functional.conv2d(to_taeda(x), ours, None, *rest, groups).backward(to_taeda(g))
    difference = to_torch(ours.grad).double() - weight.grad
    assert difference.norm() < 1e-5 * weight.grad.norm()


@pytest.mark.parametrize("case", CASES + PARTS, ids=str)
def test_threads_do_not_change_the_bits(case: tuple) -> None:
    n, groups, ic, oc, size, kernel, stride, padding, dilation = case
    x, w = to_taeda(torch.randn(n, ic, *size)), to_taeda(torch.randn(oc, ic // groups, *kernel))
    b = to_taeda(torch.randn(oc))
    x.requires_grad_()
    w.requires_grad_()
    conv = getattr(taeda.nn.functional, f"conv{len(size)}d")
    before = taeda.get_num_threads()
    results = []
    try:
        for threads in (1, 2, 3):
            taeda.set_num_threads(threads)
            y = conv(x, w, b, stride, padding, dilation, groups)
            results.append([y.detach(), *taeda.autograd.grad((y * y).sum(), (x, w))])
    finally:
        taeda.set_num_threads(before)
    for other in results[1:]:
        assert all(taeda.equal(a, b) for a, b in zip(results[0], other, strict=True))


def test_what_depthwise_kernels_do_not_read_stays_out() -> None:
    for size, stride in [((14, 14), 1), ((18, 45), 1), ((20, 38), 2)]:
        x = torch.randn(2, 64, *size)
        x[0, 3, 4, 13] = torch.inf
        x[1, 5, 19 % size[0], size[1] - 1] = -torch.inf
        w = torch.randn(64, 1, 3, 3)
        ours, theirs = to_taeda(w).requires_grad_(), w.clone().requires_grad_()
        for padding in (0, 1):
            y = taeda.nn.functional.conv2d(to_taeda(x), ours, None, stride, padding, 1, 64)
            expected = torch.nn.functional.conv2d(x, theirs, None, stride, padding, 1, 64)
            g = torch.randn(expected.shape)
            (got,) = taeda.autograd.grad(y, ours, to_taeda(g))
            (want,) = torch.autograd.grad(expected, theirs, g)
            for a, b in [(to_torch(y).detach(), expected), (to_torch(got), want)]:
                assert torch.equal(a.isfinite(), b.isfinite())
                assert torch.equal(a.isnan(), b.isnan())


def test_what_dilated_kernels_do_not_read_stays_out() -> None:
    x, w = torch.randn(2, 64, 33, 34), torch.randn(64, 64, 3, 3) / 24
    g = torch.randn(2, 64, 33, 34)
    g[1, 7] = 0
    for at in [(0, 3, 32, 33), (0, 4, 31, 5), (1, 5, 0, 7), (1, 9, 32, 10)]:
        seen = x.clone()
        seen[at] = torch.inf
        ours, theirs = to_taeda(w).requires_grad_(), w.clone().requires_grad_()
        y = taeda.nn.functional.conv2d(to_taeda(seen), ours, None, 1, 2, 2)
        expected = torch.nn.functional.conv2d(seen, theirs, None, 1, 2, 2)
        (got,) = taeda.autograd.grad(y, ours, to_taeda(g))
        (want,) = torch.autograd.grad(expected, theirs, g)
        for a, b in [(to_torch(y).detach(), expected), (to_torch(got), want)]:
            assert torch.equal(a.isfinite(), b.isfinite())
            assert torch.equal(a.isnan(), b.isnan())


@pytest.mark.parametrize(
    "call",
    [
        (3, 1, 1, 1, 1, [(5, 3, 3, 1, 0, 1)]),
        (0, 1, 0, 1, 1, [(5, 3, 3, 1, 0, 1)]),
        (0, 1, 2, 3, 2, [(5, 3, 3, 1, 0, 1)]),
        (0, -1, 1, 1, 1, [(5, 3, 3, 1, 0, 1)]),
        (0, 1, 1, 1, 1, []),
        (0, 1, 1, 1, 1, [(5, 3, 3, 0, 0, 1)]),
        (0, 1, 1, 1, 1, [(5, 3, 3, 1, -1, 1)]),
        (0, 1, 1, 1, 1, [(5, 2**62, 3, 1, 0, 1)]),
    ],
)
def test_candidates_refuse_what_is_no_convolution(call):
    with pytest.raises(RuntimeError, match="_conv_candidates"):
        taeda._C._conv_candidates(*call)
    names = [c[0] for c in taeda._C._conv_candidates(0, 1, 1, 1, 1, [(5, 3, 3, 1, 0, 1)])]
    assert "im2col" in names
    with pytest.raises(RuntimeError, match="no convolution algorithm"):
        taeda._C._force_conv("none of them")
