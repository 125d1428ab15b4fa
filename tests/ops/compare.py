"""Runs one call in PyTorch and in taeda; compares values, dtypes, first and second gradients."""

from __future__ import annotations

import functools
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="compares with PyTorch")

import taeda  # noqa: E402
from tests.conformance.bridge import to_taeda, to_torch  # noqa: E402

TOLERANCE = {
    torch.float64: 1e-10,
    torch.complex128: 1e-10,
    torch.float32: 2e-5,
    torch.complex64: 2e-5,
    torch.float16: 2e-3,
    torch.bfloat16: 1.6e-2,
}


def find(module: Any, name: str) -> Any:
    return functools.reduce(getattr, name.split("."), module)


def tensors(value: Any) -> list:
    if isinstance(value, (torch.Tensor, taeda.Tensor)):
        return [value]
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in tensors(v)]
    if isinstance(value, dict):
        return tensors(list(value.values()))
    return []


def assert_close(ours: Any, theirs: Any, where: str = "") -> None:
    ours, theirs = tensors(ours), tensors(theirs)
    assert len(ours) == len(theirs), where
    for a, b in zip(ours, theirs, strict=True):
        tolerance = TOLERANCE.get(b.dtype, 0)
        torch.testing.assert_close(
            to_torch(a),
            b.detach().resolve_conj(),
            rtol=tolerance,
            atol=tolerance,
            equal_nan=True,
            msg=lambda m: f"{where}: {m}",
        )


def compare_to_double(name: str, *args: Any) -> None:
    """As compare, once differentiated, with what PyTorch computes of the same numbers in float64.

    PyTorch's own long sums in float32 may be further from it than the tolerance.
    """
    doubles = [
        a.detach().double().requires_grad_(a.requires_grad) if isinstance(a, torch.Tensor) else a
        for a in args
    ]
    ours_args = to_taeda(list(args))
    theirs, ours = find(torch, name)(*doubles), find(taeda, name)(*ours_args)
    dtype = to_torch(ours).dtype
    assert_close(ours, theirs.detach().to(dtype), name)
    w = torch.randn(theirs.shape, generator=torch.Generator().manual_seed(0), dtype=dtype)
    leaves = [t for t in tensors(doubles) if t.requires_grad]
    first = torch.autograd.grad(theirs, leaves, w.double())
    our_leaves = [t for t in tensors(ours_args) if t.requires_grad]
    our_first = taeda.autograd.grad(ours, our_leaves, to_taeda(w))
    assert_close(list(our_first), [g.to(dtype) for g in first], f"{name} gradient")


def compare(name: str, *args: Any, second: bool = True, **kwargs: Any) -> Any:
    """Calls `name` in both libraries; leaves that require grad are differentiated twice."""
    ours_args, ours_kwargs = to_taeda(list(args)), to_taeda(kwargs)
    theirs = find(torch, name)(*args, **kwargs)
    ours = find(taeda, name)(*ours_args, **ours_kwargs)
    assert_close(ours, theirs, name)
    leaves = [t for t in tensors([args, kwargs]) if t.requires_grad]
    our_leaves = [t for t in tensors([ours_args, ours_kwargs]) if t.requires_grad]
    outs = [t for t in tensors(theirs) if t.requires_grad]
    our_outs = [t for t in tensors(ours) if t.requires_grad]
    assert len(outs) == len(our_outs), f"{name}: which results require grad"
    if not leaves or not outs:
        return ours
    generator = torch.Generator().manual_seed(0)

    def weights(like: list) -> list:
        return [torch.randn(t.shape, generator=generator, dtype=t.dtype) for t in like]

    w = weights(outs)
    first = torch.autograd.grad(outs, leaves, w, create_graph=second)
    our_first = taeda.autograd.grad(our_outs, our_leaves, to_taeda(w), create_graph=second)
    assert_close(list(our_first), list(first), f"{name} gradient")
    kept = [(a, b) for a, b in zip(our_first, first, strict=True) if b.requires_grad]
    if not second or not kept:
        return ours
    w = weights([b for _, b in kept])
    theirs2 = torch.autograd.grad([b for _, b in kept], leaves, w, allow_unused=True)
    # A first gradient that depends on no leaf need not say that it requires grad.
    mine = [(a, to_taeda(v)) for (a, _), v in zip(kept, w, strict=True) if a.requires_grad]
    ours2 = [None] * len(leaves)
    if mine:
        ours2 = taeda.autograd.grad(
            [a for a, _ in mine], our_leaves, [v for _, v in mine], allow_unused=True
        )
    for a, b, leaf in zip(ours2, theirs2, leaves, strict=True):
        zeros = torch.zeros_like(leaf).detach()
        assert_close(
            to_taeda(zeros) if a is None else a, zeros if b is None else b, f"{name} second"
        )
    return ours


def compare_error(name: str, *args: Any, **kwargs: Any) -> None:
    """Both must refuse the call, with the same type of exception."""
    with pytest.raises(Exception) as theirs:
        find(torch, name)(*args, **kwargs)
    kind = theirs.type
    if issubclass(kind, torch.OutOfMemoryError):
        kind = MemoryError
    with pytest.raises(kind):
        find(taeda, name)(*to_taeda(list(args)), **to_taeda(kwargs))


def leaf(*shape: int, dtype: Any = torch.float64, seed: int = 0, grad: bool = True) -> Any:
    t = torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)
    return t.requires_grad_(grad)
