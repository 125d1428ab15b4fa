"""Gradients and tangents of batched tensors: those of their values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from taeda import _C
from taeda._batching.tensor import (
    BatchedTensor,
    Level,
    front,
    innermost_value,
    inside,
    level_of,
    separate,
    state,
    wrap,
)
from taeda._C import Tensor

ops = _C.ops


def run_grad(
    outputs: Sequence[Tensor],
    grads: Sequence[Tensor | None],
    keep: bool,
    create: bool,
    inputs: Sequence[Any],
) -> list[Tensor | None]:
    """As `_C._run_grad`, of tensors that may be batched."""
    level = level_of((*outputs, *inputs))
    if level is None:
        if level_of(tuple(grads)) is None:
            return _C._run_grad(tuple(outputs), tuple(grads), keep, create, tuple(inputs))
        # Derivative kernels read memory directly; derivatives composed of operations have rules.
        found = _C._run_grad(tuple(outputs), tuple(grads), keep, True, tuple(inputs))
        return found if create else [None if g is None else g.detach() for g in found]
    roots, weights = [], []
    for output, grad in zip(outputs, grads, strict=True):
        value, hidden = separate(output, level)
        if not hidden:
            # It does not depend on any batched tensor.
            if all(separate(x, level)[1] for x in inputs):
                continue
            grad = _only_unbatched(grad, level)
        elif grad is not None:
            grad = front(grad, level)
        elif output.dim():
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        else:
            grad = ops.ones_like(value).detach()
        roots.append(value)
        weights.append(grad)
    if not roots:
        return [None] * len(inputs)
    given = [separate(x, level) for x in inputs]
    found = run_grad(roots, weights, keep, create, [value for value, _ in given])
    return [
        wrap(g, level) if hidden and g is not None else g
        for g, (_, hidden) in zip(found, given, strict=True)
    ]


def run_batch(
    outputs: Sequence[Tensor],
    grads: Sequence[Tensor | None],
    keep: bool,
    create: bool,
    inputs: Sequence[Any],
) -> list[Tensor | None]:
    """As `run_grad`, where each gradient has one more dimension in front; so have the results."""
    for output, grad in zip(outputs, grads, strict=True):
        if grad is not None and (not grad.dim() or grad.shape[1:] != output.shape):
            raise RuntimeError(
                "grad(): with is_grads_batched=True the first dimension of each grad_output is "
                "that of the batch, and the others are the output's, but got grad_output of shape "
                f"{list(grad.shape)} for an output of shape {list(output.shape)}"
            )
    sizes = {len(grad) for grad in grads if grad is not None}
    if len(sizes) != 1:
        raise ValueError(
            "grad(): is_grads_batched=True needs grad_outputs whose first dimensions are of one "
            f"size, got {sorted(sizes)}"
        )
    with inside(sizes.pop(), "error") as level:
        given = [None if g is None else wrap(g, level) for g in grads]
        found = run_grad(outputs, given, keep, create, inputs)
    return [None if g is None else front(g, level) for g in found]


def _only_unbatched(grad: Any, level: Level) -> Any:
    if separate(grad, level)[1]:
        raise RuntimeError(
            "vmap: the gradient of a tensor that is not vmapped over is vmapped over, while "
            "another one of the outputs or inputs is; ask for them one by one"
        )
    return grad


def is_concerned(*values: Any) -> bool:
    """Whether one of the values, tensors or sequences of them, is batched."""
    return any(level_of(tuple(v) if isinstance(v, list) else v) is not None for v in values)


def fresh(x: Tensor) -> Tensor:
    """A tensor to differentiate by, within the vmaps that this thread is in.

    Each element of their batches has its own gradient, so it is batched at every level, where it
    was the same for all elements as a view of equal ones.
    """
    return _fresh(x, state.levels)


def _fresh(x: Tensor, levels: tuple[Level, ...]) -> Tensor:
    if levels:
        return wrap(_fresh(front(x, levels[-1]), levels[:-1]), levels[-1])
    view = x.view_as(x)
    return view if view.requires_grad else view.requires_grad_()


def make_dual(primal: Tensor, tangent: Tensor) -> Tensor:
    """As `_C._make_dual`."""
    level = level_of((primal, tangent))
    if level is None:
        return _C._make_dual(primal, tangent)
    if primal.shape != tangent.shape:
        raise RuntimeError(
            f"make_dual(): expected a tangent of shape {list(primal.shape)}, got "
            f"{list(tangent.shape)}"
        )
    return wrap(make_dual(front(primal, level), front(tangent, level)), level)


def unpack_dual(x: Tensor) -> tuple[Tensor, Tensor | None]:
    """As `_C._unpack_dual`."""
    if type(x) is not BatchedTensor:
        return _C._unpack_dual(x)
    value, tangent = unpack_dual(x._value)
    if tangent is None:
        return x, None
    return wrap(value, x._level), wrap(tangent, x._level)


__all__ = [
    "fresh",
    "innermost_value",
    "is_concerned",
    "make_dual",
    "run_batch",
    "run_grad",
    "unpack_dual",
]
