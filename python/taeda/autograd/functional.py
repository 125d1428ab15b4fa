"""Jacobians, Hessians and their products with vectors, of functions of tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from taeda import _C
from taeda._C import Tensor
from taeda.autograd._run import grad
from taeda.autograd.grad_mode import enable_grad

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

ops = _C.ops
Tensors = Tensor | tuple[Tensor, ...]


def _tuple_of(value: Any, what: str) -> tuple[tuple[Tensor, ...], bool]:
    """`value` as a tuple, and whether it was one."""
    was_tuple = isinstance(value, tuple)
    items = value if was_tuple else (value,)
    for item in items:
        if not isinstance(item, Tensor):
            raise TypeError(
                f"{what} should be a Tensor or a tuple of Tensors, but has a {type(item).__name__}"
            )
    return items, was_tuple


def _plain(items: tuple[Any, ...], as_tuple: bool) -> Any:
    return items if as_tuple else items[0]


def _prepared(inputs: Sequence[Tensor], create_graph: bool) -> tuple[Tensor, ...]:
    """Inputs as new nodes of the graph, connected to the caller's graph on demand."""
    if create_graph:
        return tuple(x.view_as(x) if x.requires_grad else _leaf(x) for x in inputs)
    return tuple(_leaf(x) for x in inputs)


def _leaf(x: Tensor) -> Tensor:
    return x.detach().requires_grad_()


def _outputs(func: Callable[..., Any], inputs: Sequence[Tensor]) -> tuple[tuple[Tensor, ...], bool]:
    return _tuple_of(func(*inputs), "the output of the function given")


def _vectors(v: Any, like: Sequence[Tensor], what: str) -> tuple[Tensor, ...]:
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise RuntimeError(
                f"The vector v can only be None if the {what} of the user-provided function is a "
                "single Tensor with a single element."
            )
        return (ops.ones_like(like[0]).detach(),)
    vectors, _ = _tuple_of(v, "v")
    if len(vectors) != len(like):
        raise RuntimeError(f"v is of invalid length: should be {len(like)} but got {len(vectors)}.")
    for i, (a, b) in enumerate(zip(vectors, like, strict=True)):
        if a.shape != b.shape:
            raise RuntimeError(
                f"v has invalid size: entry {i} should be {tuple(b.shape)} but got "
                f"{tuple(a.shape)}."
            )
    return vectors


def _gradients(
    outputs: Sequence[Tensor],
    inputs: Sequence[Tensor],
    weights: Sequence[Tensor] | None,
    create_graph: bool,
    strict: bool,
    what: str,
    *,
    retain_graph: bool | None = None,
) -> tuple[Tensor, ...]:
    """The gradients of the outputs that have a history; zeros where there is nothing."""
    kept = [i for i, o in enumerate(outputs) if o.requires_grad]
    if strict and len(kept) < len(outputs):
        missing = next(i for i in range(len(outputs)) if i not in kept)
        raise RuntimeError(
            f"Output {missing} of the {what} is independent of the inputs. This is not allowed in "
            "strict mode."
        )
    found: tuple[Tensor | None, ...] = (None,) * len(inputs)
    if kept:
        found = grad(
            [outputs[i] for i in kept],
            inputs,
            None if weights is None else [weights[i] for i in kept],
            retain_graph=retain_graph,
            create_graph=create_graph,
            allow_unused=True,
        )
    if strict and any(g is None for g in found):
        i = next(i for i, g in enumerate(found) if g is None)
        raise RuntimeError(
            f"The {what} is independent of input {i}. This is not allowed in strict mode."
        )
    return tuple(
        ops.zeros_like(x).detach() if g is None else g for g, x in zip(found, inputs, strict=True)
    )


def _finished(items: tuple[Tensor, ...], create_graph: bool) -> tuple[Tensor, ...]:
    return items if create_graph else tuple(t.detach() for t in items)


def vjp(
    func: Callable[..., Any],
    inputs: Tensors,
    v: Tensors | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """The outputs of `func` at `inputs`, and `v` times its Jacobian.

    Args:
        func: takes the inputs and returns a tensor or a tuple of them.
        inputs: one tensor or a tuple.
        v: of the shapes of the outputs; None where there is one output of one element.
        create_graph: record the computation, so that it can be differentiated.
        strict: an input or output without influence is an error rather than zeros.

    >>> import taeda
    >>> taeda.autograd.functional.vjp(lambda x: x * x, taeda.tensor([3.0]))
    (tensor([9.]), tensor([6.]))
    """
    with enable_grad():
        items, was_tuple = _tuple_of(inputs, "inputs")
        items = _prepared(items, create_graph)
        outputs, many = _outputs(func, items)
        weights = _vectors(v, outputs, "output")
        found = _gradients(outputs, items, weights, create_graph, strict, "user-provided function")
    return (
        _plain(_finished(outputs, create_graph), many),
        _plain(_finished(found, create_graph), was_tuple),
    )


def jvp(
    func: Callable[..., Any],
    inputs: Tensors,
    v: Tensors | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """The outputs of `func` at `inputs`, and its Jacobian times `v`.

    It runs backward twice: `u -> u J` is linear in `u`, and its derivative is `J`. Arguments as in
    `vjp`, with `v` of the shapes of the inputs.

    >>> import taeda
    >>> taeda.autograd.functional.jvp(lambda x: x * x, taeda.tensor([3.0]), taeda.tensor([2.0]))
    (tensor([9.]), tensor([12.]))
    """
    with enable_grad():
        items, _ = _tuple_of(inputs, "inputs")
        items = _prepared(items, create_graph)
        vectors = _vectors(v, items, "input")
        outputs, many = _outputs(func, items)
        ones = tuple(ops.zeros_like(o).detach().requires_grad_() for o in outputs)
        found = _gradients(outputs, items, ones, True, strict, "user-provided function")
        product = _gradients(found, ones, vectors, create_graph, False, "gradient")
    return (
        _plain(_finished(outputs, create_graph), many),
        _plain(_finished(product, create_graph), many),
    )


def _rows(
    output: Tensor, inputs: tuple[Tensor, ...], create_graph: bool, strict: bool
) -> tuple[Tensor, ...]:
    """The Jacobian of one output: for each input a tensor of output's sizes, then input's."""
    if not output.requires_grad:
        _gradients((output,), inputs, None, create_graph, strict, "user-provided function")
    rows: list[list[Tensor]] = [[] for _ in inputs]
    flat = output.reshape(-1)
    for place in range(flat.numel()):
        found = _gradients(
            (flat[place],),
            inputs,
            (ops.ones_like(flat[place]).detach(),),
            create_graph,
            strict,
            "user-provided function",
            retain_graph=True,
        )
        for row, g in zip(rows, found, strict=True):
            row.append(g)
    return tuple(
        ops.stack(row).reshape([*output.shape, *x.shape])
        if row
        else ops.zeros([*output.shape, *x.shape], dtype=x.dtype)
        for row, x in zip(rows, inputs, strict=True)
    )


def _rows_at_once(
    output: Tensor, inputs: tuple[Tensor, ...], create_graph: bool
) -> tuple[Tensor, ...]:
    """The same, by one backward over a batch."""
    n = output.numel()
    found: tuple[Tensor | None, ...] = (None,) * len(inputs)
    if n and output.requires_grad:
        basis = ops.eye(n, dtype=output.dtype, device=output.device)
        found = grad(
            output,
            inputs,
            basis.reshape(n, *output.shape),
            retain_graph=True,
            create_graph=create_graph,
            allow_unused=True,
            is_grads_batched=True,
        )
    return tuple(
        ops.zeros([*output.shape, *x.shape], dtype=x.dtype)
        if g is None
        else g.reshape([*output.shape, *x.shape])
        for g, x in zip(found, inputs, strict=True)
    )


def _forward_jacobian(func: Callable[..., Any], inputs: Tensors) -> Any:
    from taeda.func import jacfwd

    items, was_tuple = _tuple_of(inputs, "inputs")
    result = jacfwd(func, tuple(range(len(items))))(*items)
    if was_tuple:
        return result
    return tuple(row[0] for row in result) if isinstance(result[0], tuple) else result[0]


def _check_ways(create_graph: bool, strict: bool, vectorize: bool, strategy: str) -> None:
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: a function '
            'with more outputs than inputs is best differentiated in "forward-mode".'
        )
    if vectorize and strict:
        raise RuntimeError(
            "jacobian: `strict=True` and `vectorized=True` are not supported together."
        )
    if strategy == "reverse-mode":
        return
    if create_graph:
        raise NotImplementedError(
            'jacobian: `create_graph=True` and `strategy="forward-mode"` are not supported together'
        )
    if not vectorize:
        raise NotImplementedError("jacobian: forward mode needs `vectorize=True`")


def jacobian(
    func: Callable[..., Any],
    inputs: Tensors,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The Jacobian of `func` at `inputs`, one backward per output element.

    For one input and one output a tensor of the output's sizes followed by the input's; for
    several of either, nested tuples, outputs first. Arguments as in `vjp`, and:

    Args:
        vectorize: one backward for all elements of an output, as by `vmap`.
        strategy: "reverse-mode", or with vectorize "forward-mode".

    >>> import taeda
    >>> taeda.autograd.functional.jacobian(lambda x: x * x, taeda.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    _check_ways(create_graph, strict, vectorize, strategy)
    if strategy == "forward-mode":
        return _forward_jacobian(func, inputs)
    with enable_grad():
        items, was_tuple = _tuple_of(inputs, "inputs")
        items = _prepared(items, create_graph)
        outputs, many = _outputs(func, items)
        parts = [
            _rows_at_once(o, items, create_graph)
            if vectorize
            else _rows(o, items, create_graph, strict)
            for o in outputs
        ]
        result = tuple(_plain(_finished(p, create_graph), was_tuple) for p in parts)
    return _plain(result, many)


def _check_scalar(outputs: tuple[Tensor, ...], many: bool) -> Tensor:
    if many or outputs[0].numel() != 1:
        raise RuntimeError(
            "The function given should return a single Tensor with a single element."
        )
    return outputs[0].reshape([])


def hessian(
    func: Callable[..., Any],
    inputs: Tensors,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The matrix of second derivatives of a function with one output element.

    For one input a tensor of its sizes twice over; for several, a tuple of tuples. Arguments as in
    `jacobian`, which the gradient is differentiated by in the way of outer_jacobian_strategy.

    >>> import taeda
    >>> taeda.autograd.functional.hessian(lambda x: (x**3).sum(), taeda.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    _check_ways(create_graph, strict, vectorize, outer_jacobian_strategy)
    items, was_tuple = _tuple_of(inputs, "inputs")

    def gradient(*args: Tensor) -> tuple[Tensor, ...]:
        output = _check_scalar(*_outputs(func, args))
        return _gradients((output,), args, None, True, strict, "user-provided function")

    if outer_jacobian_strategy == "forward-mode":
        from taeda.func import grad as gradient_of

        scalar = lambda *args: _check_scalar(*_outputs(func, args))  # noqa: E731
        result = _forward_jacobian(gradient_of(scalar, tuple(range(len(items)))), items)
        return result if was_tuple else result[0][0]
    with enable_grad():
        args = _prepared(items, create_graph)
        result = jacobian(gradient, args, create_graph, strict, vectorize)
    return result if was_tuple else result[0][0]


def _second(
    func: Callable[..., Any], inputs: Any, v: Any, create_graph: bool, strict: bool, forward: bool
) -> tuple[Any, Any]:
    with enable_grad():
        items, was_tuple = _tuple_of(inputs, "inputs")
        items = _prepared(items, create_graph)
        vectors = _vectors(v, items, "input")
        output = _check_scalar(*_outputs(func, items))
        first = _gradients((output,), items, None, True, strict, "user-provided function")
        if forward:
            # H is symmetric where it is continuous, but in general H v needs the derivative by v.
            ones = tuple(ops.zeros_like(g).detach().requires_grad_() for g in first)
            second = _gradients(first, items, ones, True, strict, "gradient")
            product = _gradients(second, ones, vectors, create_graph, False, "gradient")
        else:
            product = _gradients(first, items, vectors, create_graph, strict, "gradient")
    return (
        _finished((output,), create_graph)[0],
        _plain(_finished(product, create_graph), was_tuple),
    )


def vhp(
    func: Callable[..., Any],
    inputs: Tensors,
    v: Tensors | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """The one-element output of `func`, and `v` times its Hessian. Arguments as in `jvp`.

    >>> import taeda
    >>> taeda.autograd.functional.vhp(lambda x: x**3, taeda.tensor(2.0))
    (tensor(8.), tensor(12.))
    """
    return _second(func, inputs, v, create_graph, strict, forward=False)


def hvp(
    func: Callable[..., Any],
    inputs: Tensors,
    v: Tensors | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """The one-element output of `func`, and its Hessian times `v`. `vhp` is faster and equal to it.

    Arguments as in `jvp`.

    >>> import taeda
    >>> taeda.autograd.functional.hvp(lambda x: x**3, taeda.tensor(2.0))
    (tensor(8.), tensor(12.))
    """
    return _second(func, inputs, v, create_graph, strict, forward=True)
