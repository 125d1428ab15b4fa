"""Sparse inputs of `gradcheck`: dense tensors of their elements stand for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import taeda
from taeda._C import Tensor, ops


def by_elements(
    func: Callable[..., Any], inputs: tuple[Any, ...], masked: bool
) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """A function of the elements of sparse inputs in place of those, and its inputs.

    Args:
        func: the function.
        inputs: its arguments.
        masked: of the elements that an input has; otherwise of all, the zeros too.
    """
    makers: dict[int, Callable[[Tensor], Tensor]] = {}
    given = list(inputs)
    for i, x in enumerate(inputs):
        if isinstance(x, Tensor) and x.requires_grad and x.layout is not taeda.strided:
            values, makers[i] = _elements(x.detach(), masked)
            given[i] = values.requires_grad_()
    if not makers:
        return func, inputs

    def of_elements(*args: Any) -> Any:
        made = [makers[i](arg) if i in makers else arg for i, arg in enumerate(args)]
        result = func(*made)
        for output in result if isinstance(result, tuple | list) else (result,):
            if isinstance(output, Tensor) and output.layout is not taeda.strided:
                raise ValueError(
                    "gradcheck: a result is sparse; call to_dense() of it in the function"
                )
        return result

    return of_elements, tuple(given)


def _elements(x: Any, masked: bool) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
    """The elements of a sparse tensor, and what makes one like it from others."""
    from taeda.sparse._compressed import block_of, from_dense
    from taeda.sparse._tensor import like, values_at

    if not masked:
        ones = ops.ones(x.shape)
        if x.is_sparse:
            pattern = ones.to_sparse(x.sparse_dim())
        else:
            pattern = from_dense(ones, x.layout, block_of(x), x.dense_dim())
        x = like(pattern, values_at(x.to_dense(), pattern))
    return x._values_.clone(), lambda values: like(x, values)
