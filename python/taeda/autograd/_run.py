"""`backward` and `grad`."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from taeda import _C
from taeda._C import Tensor

__all__ = ["backward", "grad"]

TensorOrTensors = Tensor | Sequence[Tensor]

# taeda._batching.gradients, once vmap has been used.
batching: Any = None
# The class of nested tensors, whose history is that of their values, once taeda.nested is loaded.
nested: Any = None


def with_history(tensors: tuple[Any, ...]) -> tuple[Any, ...]:
    """Tensors, and the values of those that are nested."""
    if nested is None:
        return tensors
    return tuple(t._values_ if isinstance(t, nested) else t for t in tensors)


def _as_tuple(value: Any, what: str) -> tuple[Any, ...]:
    if isinstance(value, Tensor) or hasattr(value, "output_nr"):
        return (value,)
    if value is None or not hasattr(value, "__iter__"):
        raise TypeError(
            f"{what} must be a Tensor or a sequence of them, not {type(value).__name__}"
        )
    return tuple(value)


def _gradients(given: Any, count: int, name: str) -> tuple[Tensor | None, ...]:
    if given is None:
        return (None,) * count
    grads = (given,) if isinstance(given, Tensor) else tuple(given)
    if len(grads) != count:
        raise RuntimeError(f"got {count} tensors and {len(grads)} gradients ({name})")
    return grads


def backward(
    tensors: TensorOrTensors,
    grad_tensors: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    *,
    inputs: TensorOrTensors | None = None,
) -> None:
    """Add the gradients of the sum of `tensors` to the `grad` of the leaves behind them.

    Args:
        tensors: one tensor or several. Each must require a gradient.
        grad_tensors: the gradient of each, of its shape: what it is weighted with. None, for a
            tensor with a single real element, stands for 1.
        retain_graph: keep what the graph has saved, so that it can be run backward again.
            Default: as `create_graph`.
        create_graph: record the derivative itself, so that it can be differentiated.
        inputs: accumulate into these tensors alone, leaves or not; all leaves by default.

    Raises:
        RuntimeError: a tensor does not require a gradient, has several elements and no gradient
            given, or what the graph had saved is gone or was changed in place.

    >>> import taeda
    >>> x = taeda.tensor([1.0, 2.0], requires_grad=True)
    >>> taeda.autograd.backward((x * x).sum())
    >>> x.grad
    tensor([2., 4.])
    """
    roots = _as_tuple(tensors, "backward(): argument 'tensors'")
    grads = _gradients(grad_tensors, len(roots), "grad_tensors")
    if inputs is not None:
        inputs = _as_tuple(inputs, "backward(): argument 'inputs'")
    keep = create_graph if retain_graph is None else retain_graph
    roots, grads = with_history(roots), with_history(grads)
    inputs = None if inputs is None else with_history(inputs)
    if batching is not None and batching.is_concerned(roots, grads):
        raise RuntimeError(
            "backward() called inside of vmap. This is not supported, please use func.grad or "
            "func.vjp instead or call backward() outside of it."
        )
    _C._run_backward(roots, grads, keep, create_graph, inputs)


def gradients_of(
    output: Tensor, inputs: tuple[Tensor, ...], retain_graph: bool, create_graph: bool
) -> list[Tensor | None]:
    """What `grad` does for one output, with less to decide; None where it depends on no input."""
    run = _C._run_grad if batching is None else batching.run_grad
    return run((output,), (None,), retain_graph, create_graph, inputs)


def grad(
    outputs: TensorOrTensors,
    inputs: Any,
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor, ...]:
    """Return the gradients of the sum of `outputs` with respect to `inputs`.

    Nothing is accumulated.

    Args:
        outputs: one tensor or several, as in `backward`.
        inputs: the tensors (or `graph.GradientEdge`s) whose gradients are wanted.
        grad_outputs: the gradient of each output; None stands for 1.
        retain_graph: keep what the graph has saved. Default: as `create_graph`.
        create_graph: record the derivative itself.
        only_inputs: deprecated; gradients are those of the inputs alone. False is warned of.
        allow_unused: give None for an input that the outputs do not depend on, rather than raise
            an error. Default: as `materialize_grads`.
        is_grads_batched: each of grad_outputs has one more dimension in front, a batch, and so has
            each gradient. They are computed together, as by `vmap`.
        materialize_grads: give zeros instead of None for such an input.

    Returns:
        One gradient per input, each of its input's shape.

    Raises:
        RuntimeError: an input does not require a gradient or was not used; or as in `backward`.

    >>> import taeda
    >>> x = taeda.tensor(3.0, requires_grad=True)
    >>> (first,) = taeda.autograd.grad(x**3, x, create_graph=True)
    >>> taeda.autograd.grad(first, x)
    (tensor(18.),)
    """
    if not only_inputs:
        warnings.warn(
            "grad(): only_inputs=False is deprecated and changes nothing; to accumulate gradients "
            "of other tensors, call autograd.backward()",
            FutureWarning,
            stacklevel=2,
        )
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "grad(): expected allow_unused to be True or not passed when materialize_grads=True, "
            "but got allow_unused=False"
        )
    if allow_unused is None:
        allow_unused = materialize_grads
    roots = _as_tuple(outputs, "grad(): argument 'outputs'")
    wanted = _as_tuple(inputs, "grad(): argument 'inputs'")
    if not wanted:
        raise ValueError("grad(): argument 'inputs' is empty")
    grads = _gradients(grad_outputs, len(roots), "grad_outputs")
    keep = create_graph if retain_graph is None else retain_graph
    if is_grads_batched:
        from taeda._batching.gradients import run_batch as run
    else:
        run = _C._run_grad if batching is None else batching.run_grad
    roots, grads = with_history(roots), with_history(grads)
    found: list[Any] = run(roots, grads, keep, create_graph, with_history(wanted))
    for i, (gradient, of) in enumerate(zip(found, wanted, strict=True)):
        if gradient is not None:
            if nested is not None and isinstance(of, nested):
                found[i] = of._with(gradient)
            continue
        if not allow_unused:
            raise RuntimeError(
                f"The differentiated Tensor at index {i} appears to not have been used in the "
                "graph. Set allow_unused=True if this is the desired behavior."
            )
        if materialize_grads:
            if not isinstance(of, Tensor):
                raise RuntimeError("materialize_grads needs Tensors as inputs, not GradientEdges")
            found[i] = _C.ops.zeros_like(of.detach()).requires_grad_(create_graph)
    return tuple(found)
