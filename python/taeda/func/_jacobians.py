"""`jacrev`, `jacfwd` and `hessian`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from taeda import _C
from taeda._C import Tensor
from taeda.func._gradients import jvp, vjp
from taeda.func._record import chosen, zeros
from taeda.func._vmap import one_of_batch, vmap
from taeda.utils._pytree import tree_flatten

__all__ = ["hessian", "jacfwd", "jacrev"]

ops = _C.ops


def _partial(
    func: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], numbers: Sequence[int]
) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """`func` as one of some of its arguments, and these."""

    def inner(*values: Any) -> Any:
        given = list(args)
        for n, value in zip(numbers, values, strict=True):
            given[n] = value
        return func(*given, **kwargs)

    return inner, tuple(args[n] for n in numbers)


def _check_real(tensors: Sequence[Any], name: str, what: str) -> None:
    for i, t in enumerate(tensors):
        if isinstance(t, Tensor) and t.is_complex():
            raise RuntimeError(
                f"{name}: Expected all {what}s to be real but received complex tensor at flattened "
                f"{what} idx: {i}"
            )


def jacrev(
    func: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """Return a function that computes the Jacobian of `func`, backwards, with `vmap` over its rows.

    Args:
        func: returns a tensor, or a tuple, list or dictionary of them.
        argnums: by which positional argument, or by which ones.
        has_aux: `func` returns `(output, aux)`, and the new function `(jacobian, aux)`.
        chunk_size: compute this many rows at a time, to save memory; 1 means a loop without vmap.
            Default: all rows of an output.

    Raises:
        ValueError: chunk_size is not above 0.

    For one tensor by another, the Jacobian has the sizes of the output, followed by those of the
    argument. Otherwise it has the structure of the output, and in each place of it that of the
    argument; a tuple, where argnums is one.

    >>> import taeda
    >>> taeda.func.jacrev(lambda x: x**2)(taeda.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        numbers = chosen(argnums, len(args))
        inner, values = _partial(func, args, kwargs, numbers)
        flat, tree = tree_flatten(values)
        _check_real(flat, "jacrev", "input")
        output, vjp_fn, *aux = vjp(inner, *values, has_aux=has_aux)
        outputs, structure = tree_flatten(output)
        _check_real(outputs, "jacrev", "output")
        for o in outputs:
            if not o.is_floating_point():
                raise RuntimeError(
                    "vjp(f, ...): All outputs of f must be floating-point or complex Tensors, got "
                    f"Tensor with dtype {o.dtype}"
                )
        weights = [zeros(o) for o in outputs]
        found = []
        for i, o in enumerate(outputs):

            def row(seed: Tensor, i: int = i) -> tuple[Tensor, ...]:
                seeds = [*weights[:i], seed, *weights[i + 1 :]]
                return tuple(tree_flatten(vjp_fn(structure.unflatten(seeds)))[0])

            lines = _rows(row, o, len(flat), chunk_size)
            built = tree.unflatten(_blocks(o, flat, lines))
            found.append(built[0] if isinstance(argnums, int) else built)
        jacobian = structure.unflatten(found)
        return (jacobian, aux[0]) if has_aux else jacobian

    return wrapper


def _basis(like: Tensor) -> Tensor:
    """A tensor of these sizes for each element of it, which is one there and zero elsewhere."""
    n = like.numel()
    return ops.eye(n, dtype=like.dtype, device=like.device).reshape(n, *like.shape)


def _rows(
    row: Callable[[Tensor], tuple[Tensor, ...]], output: Tensor, count: int, chunk_size: int | None
) -> Sequence[Tensor | None]:
    """What `row` gives for each element of the output, stacked; None where there is no element."""
    basis = _basis(output)
    if not len(basis):
        return [None] * count
    if len(basis) == 1 or chunk_size == 1:
        columns = zip(*map(row, basis), strict=True)
        return [ops.stack(column) for column in columns]
    return vmap(row, chunk_size=chunk_size)(basis)


def _blocks(output: Tensor, inputs: Sequence[Any], lines: Sequence[Tensor | None]) -> list[Tensor]:
    """The Jacobians of an output by each input, of the output's sizes and then the input's."""
    blocks = []
    for x, line in zip(inputs, lines, strict=True):
        sizes = [*output.shape, *x.shape]
        blocks.append(
            ops.zeros(sizes, dtype=x.dtype, device=x.device)
            if line is None
            else line.reshape(sizes)
        )
    return blocks


def jacfwd(
    func: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    has_aux: bool = False,
    *,
    randomness: str = "error",
) -> Callable[..., Any]:
    """Return a function that computes the Jacobian of `func` in forward mode, all columns at once.

    Args:
        func, argnums, has_aux: as for `jacrev`. `func` runs under `vmap`.
        randomness: as for `vmap`.

    >>> import taeda
    >>> taeda.func.jacfwd(lambda x: x.sum() * x[0])(taeda.tensor([1.0, 2.0]))
    tensor([4., 1.])
    """

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        numbers = chosen(argnums, len(args))
        inner, values = _partial(func, args, kwargs, numbers)
        flat, tree = tree_flatten(values)
        _check_real(flat, "jacfwd", "input")
        for x in flat:
            if not isinstance(x, Tensor):
                raise ValueError(f"Thing passed to transform API must be Tensor, got {type(x)}")
        columns: list[Sequence[Tensor]] = []  # by input, by output
        weights = [zeros(x) for x in flat]
        result: Any = None
        for k, x in enumerate(flat):

            def column(seed: Tensor, k: int = k) -> tuple[Tensor, ...]:
                nonlocal result
                seeds = [*weights[:k], seed, *weights[k + 1 :]]
                result = jvp(inner, values, tree.unflatten(seeds), has_aux=has_aux)
                return tuple(tree_flatten(result[1])[0])

            columns.append(_columns(column, x, randomness))
        if result is None:  # no elements
            result = jvp(inner, values, tree.unflatten(weights), has_aux=has_aux)
        result = one_of_batch(result)
        outputs, structure = tree_flatten(result[0])
        _check_real(outputs, "jacfwd", "output")
        found = []
        for i, o in enumerate(outputs):
            lines = [of_input[i] if of_input else None for of_input in columns]
            built = tree.unflatten(_blocks(o, flat, lines))
            found.append(built[0] if isinstance(argnums, int) else built)
        jacobian = structure.unflatten(found)
        return (jacobian, result[2]) if has_aux else jacobian

    return wrapper


def _columns(
    column: Callable[[Tensor], tuple[Tensor, ...]], x: Tensor, randomness: str
) -> Sequence[Tensor]:
    """What `column` gives for each element of the input, stacked along a last dimension."""
    basis = _basis(x)
    if len(basis) < 2:
        return [t.unsqueeze(-1) for seed in basis for t in column(seed)]
    return vmap(column, out_dims=-1, randomness=randomness)(basis)


def hessian(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Callable[..., Any]:
    """Return a function that computes the second derivatives of `func`: `jacfwd(jacrev(func))`.

    >>> import taeda
    >>> taeda.func.hessian(lambda x: (x**3).sum())(taeda.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)
