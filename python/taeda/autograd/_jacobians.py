"""Jacobians by finite differences and by backward, for `gradcheck`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from taeda import _C
from taeda._C import Tensor
from taeda.autograd._run import grad
from taeda.autograd.grad_mode import no_grad

ops = _C.ops


class GradcheckError(RuntimeError):
    """A derivative disagrees with finite differences."""


def differentiable(values: Sequence[Any]) -> list[Tensor]:
    return [v for v in values if isinstance(v, Tensor) and v.requires_grad]


def as_tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def outputs_of(func: Callable[..., Any], inputs: Sequence[Any]) -> list[Tensor]:
    outputs = [o for o in as_tuple(func(*inputs)) if isinstance(o, Tensor)]
    return [o for o in outputs if o.is_floating_point() or o.is_complex()]


def reals(t: Tensor) -> Tensor:
    """All real numbers in `t`, in a row: a complex element gives two."""
    t = t.detach().contiguous()
    return (ops.view_as_real(t) if t.is_complex() else t).reshape(-1)


def with_value(t: Tensor, place: int, delta: float) -> Any:
    """Add `delta` to one real number of `t`, counted as `reals` counts them. Returns the old."""
    index, part = divmod(place, 2) if t.is_complex() else (place, 0)
    flat = []
    for size in reversed(t.shape):
        flat.append(index % size)
        index //= size
    where = tuple(reversed(flat))
    with no_grad():
        old = t[where].clone()
        t.data[where] = old + (delta * 1j if part else delta)
    return where, old


def numerical_jacobian(
    func: Callable[..., Any], inputs: Sequence[Any], x: Tensor, eps: float, count: int
) -> list[list[Tensor]]:
    """For each output the list of its changes, one per real number of `x`."""
    columns: list[list[Tensor]] = [[] for _ in range(count)]
    steps = x.numel() * (2 if x.is_complex() else 1)
    for place in range(steps):
        ends = []
        for sign in (eps, -eps):
            where, old = with_value(x, place, sign)
            try:
                with no_grad():
                    ends.append([reals(o).clone() for o in outputs_of(func, inputs)])
            finally:
                with no_grad():
                    x.data[where] = old
        for k in range(count):
            columns[k].append((ends[0][k] - ends[1][k]) / (2 * eps))
    return columns


def one_hot(like: Tensor, place: int) -> Tensor:
    v = ops.zeros(list(like.shape), dtype=like.dtype, device=like.device)
    index, part = divmod(place, 2) if like.is_complex() else (place, 0)
    v.reshape(-1)[index] = 1j if part else 1
    return v


def analytical_jacobian(output: Tensor, wanted: Sequence[Tensor]) -> list[list[Tensor]]:
    """For each wanted input the list of gradients, one per real number of `output`."""
    rows: list[list[Tensor]] = [[] for _ in wanted]
    for place in range(output.numel() * (2 if output.is_complex() else 1)):
        weights = one_hot(output, place)
        found = grad(output, wanted, weights, retain_graph=True, allow_unused=True)
        for row, g, x in zip(rows, found, wanted, strict=True):
            if g is not None and g.shape != x.shape:
                raise GradcheckError(
                    f"Gradient has incorrect size: {tuple(g.shape)} for an input of size "
                    f"{tuple(x.shape)}"
                )
            row.append(reals(ops.zeros_like(x) if g is None else g))
    return rows


def matrix(lines: list[Tensor], rows: int, columns: int, like: Tensor) -> Tensor:
    if not lines or rows * columns == 0:
        return ops.zeros([rows, columns], dtype=reals(like).dtype)
    return ops.stack(lines)


def random_direction(like: Tensor, generator: _C.Generator) -> Tensor:
    """A direction: a tensor of the same kind whose real numbers are a vector of length 1."""
    v = ops.randn(list(like.shape), dtype=like.dtype, device=like.device, generator=generator)
    length = float(reals(v).square().sum().sqrt())
    return v / length if length else v


def numerical_along(
    func: Callable[..., Any], inputs: Sequence[Any], x: Tensor, direction: Tensor, eps: float
) -> list[Tensor]:
    """The change of each output's real numbers as `x` moves along `direction`."""
    before, ends = x.detach().clone(), []
    for sign in (eps, -eps):
        try:
            with no_grad():
                x.data.copy_(before + sign * direction)
                ends.append([reals(o).clone() for o in outputs_of(func, inputs)])
        finally:
            with no_grad():
                x.data.copy_(before)
    return [(up - down) / (2 * eps) for up, down in zip(*ends, strict=True)]
