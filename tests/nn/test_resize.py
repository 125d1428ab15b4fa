"""Resizing of what is not float32: bytes as images hold them, halves, and what is refused."""

from __future__ import annotations

import pytest

import taeda
from taeda.nn import functional as F

torch = pytest.importorskip("torch")


def both(x):
    return taeda.from_numpy(x.numpy()), x


@pytest.mark.parametrize("corners", [False, True])
@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize(
    ("old", "new"),
    [((24, 32), (16, 21)), ((7, 9), (7, 20)), ((90, 50), (3, 60)), ((1, 4), (3, 1)), ((5, 5), 5)],
)
def test_bytes_are_those_of_pytorch(mode, antialias, corners, old, new):
    torch.manual_seed(0)
    ours, theirs = both(torch.randint(0, 256, (2, 3, *old), dtype=torch.uint8))
    options = {"size": new, "mode": mode, "antialias": antialias, "align_corners": corners}
    expected = torch.nn.functional.interpolate(theirs, **options)
    assert F.interpolate(ours, **options).tolist() == expected.tolist()


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_halves_are_rounded_once(mode):
    torch.manual_seed(0)
    x = torch.rand(2, 3, 9, 11)
    for name in ("float16", "bfloat16"):
        ours = taeda.from_numpy(x.numpy()).to(getattr(taeda, name)).requires_grad_()
        theirs = x.to(getattr(torch, name)).float()
        result = F.interpolate(ours, size=(6, 17), mode=mode)
        expected = torch.nn.functional.interpolate(theirs, size=(6, 17), mode=mode)
        expected = expected.to(getattr(torch, name)).float()
        assert result.dtype is ours.dtype
        assert (taeda.from_numpy(expected.numpy()) - result.float()).abs().max().item() < 1e-2
        assert (taeda.from_numpy(expected.numpy()) != result.float()).float().mean().item() < 0.01
        result.sum().backward()
        assert ours.grad.dtype is ours.dtype


@pytest.mark.parametrize("dtype", ["int32", "int64", "bool", "int8"])
def test_other_whole_numbers_are_refused(dtype):
    x = taeda.ones(1, 1, 4, 4).to(getattr(taeda, dtype))
    with pytest.raises(NotImplementedError, match=dtype):
        F.interpolate(x, size=3, mode="bilinear")
    with pytest.raises(NotImplementedError):
        torch.nn.functional.interpolate(
            torch.ones(1, 1, 4, 4).to(getattr(torch, dtype)), size=3, mode="bilinear"
        )
