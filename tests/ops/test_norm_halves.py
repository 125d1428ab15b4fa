"""Normalised rows of float16 and bfloat16, forward and backward, against float64."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="compares with PyTorch")

import taeda  # noqa: E402
from tests.conformance.bridge import to_taeda, to_torch  # noqa: E402

HALVES = [torch.float16, torch.bfloat16]


def outcome(module, norm: str, x, w, b, g, groups: int):
    F = module.nn.functional
    n = tuple(x.shape[1:])
    inputs = [t.requires_grad_() for t in (x, w, b) if t is not None]
    if norm == "layer":
        y = F.layer_norm(x, n, w, b)
    elif norm == "rms":
        y = F.rms_norm(x, n, w, eps=1e-5)
        inputs = [t for t in inputs if t is not b]
    else:
        y = F.group_norm(x, groups, w, b)
    return [y, *module.autograd.grad(y, inputs, g)]


def check(norm: str, dtype, shape: tuple, affine: bool, groups: int = 1) -> None:
    gen = torch.Generator().manual_seed(1)
    x, g = (torch.randn(shape, generator=gen).to(dtype) for _ in range(2))
    sizes = (shape[1],) if norm == "group" else shape[1:]
    w, b = (torch.randn(sizes, generator=gen).to(dtype) if affine else None for _ in range(2))
    ours = outcome(taeda, norm, *(None if t is None else to_taeda(t) for t in (x, w, b, g)), groups)
    wide = [None if t is None else t.double() for t in (x, w, b, g)]
    theirs = outcome(torch, norm, *wide, groups)
    step = 2.0**-8 if dtype == torch.bfloat16 else 2.0**-11
    for i, (a, e) in enumerate(zip(ours, theirs, strict=True)):
        assert to_torch(a).dtype == dtype
        scale = e.abs().max().item() * 1e-5
        torch.testing.assert_close(
            to_torch(a).double(), e, rtol=step, atol=scale + 1e-6, msg=f"{norm} {i}"
        )


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("norm", ["layer", "rms"])
@pytest.mark.parametrize("shape", [(3, 5), (31, 700), (32, 9), (100, 257), (70, 5000), (40, 2, 33)])
def test_rows(norm: str, shape: tuple, affine: bool, dtype) -> None:
    check(norm, dtype, shape, affine)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize(("shape", "groups"), [((4, 6, 5, 7), 3), ((3, 8), 2), ((5, 6, 900), 1)])
def test_groups(shape: tuple, groups: int, affine: bool, dtype) -> None:
    check("group", dtype, shape, affine, groups)


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_empty(name: str) -> None:
    x = taeda.zeros(0, 5, dtype=getattr(taeda, name), requires_grad=True)
    y = taeda.nn.functional.layer_norm(x, (5,))
    y.sum().backward()
    assert y.shape == (0, 5)
    assert x.grad.shape == (0, 5)


def test_frozen_parameters() -> None:
    for dtype in ("float32", "bfloat16"):
        x = taeda.randn(50, 20).to(getattr(taeda, dtype)).requires_grad_()
        w = taeda.randn(20).to(getattr(taeda, dtype))
        y = taeda.nn.functional.layer_norm(x, (20,), w)
        (alone,) = taeda.autograd.grad(y, x, taeda.ones_like(y))
        w.requires_grad_()
        y = taeda.nn.functional.layer_norm(x, (20,), w)
        both, _ = taeda.autograd.grad(y, (x, w), taeda.ones_like(y))
        taeda.testing.assert_close(alone, both)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_threads(dtype) -> None:
    x, w, g = torch.randn(900, 300).to(dtype), torch.randn(300).to(dtype), torch.randn(900, 300)
    before = taeda.get_num_threads()
    results = []
    try:
        for threads in (1, 2, 3):
            taeda.set_num_threads(threads)
            args = (to_taeda(x), to_taeda(w), to_taeda(w), to_taeda(g.to(dtype)))
            results.append(outcome(taeda, "layer", *args, 1))
    finally:
        taeda.set_num_threads(before)
    for other in results[1:]:
        assert all(taeda.equal(a, b) for a, b in zip(results[0], other, strict=True))
