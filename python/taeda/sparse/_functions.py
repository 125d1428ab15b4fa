"""Implementations of ops for sparse tensors: one function for each op, by the op's name.

``SparseTensor.__torch_function__`` finds the functions by the names given to ``answers``.
They compute with the values by differentiable dense ops, so gradients need no more than that.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from typing import Any

import taeda
from taeda import _C
from taeda._C import Tensor
from taeda.sparse import _structure
from taeda.sparse._compressed import as_before, compressed_rows
from taeda.sparse._shapes import _transpose
from taeda.sparse._tensor import (
    FUNCTIONS,
    SparseTensor,
    add_up,
    answers,
    coo,
    like,
    need_matrix,
    values_at,
)

__all__ = ["addmm", "log_softmax", "mm", "softmax", "sum"]

_ops = _C.ops
_sum = builtins.sum


def _is_number(x: Any) -> bool:
    return isinstance(x, (int, float, complex)) or (isinstance(x, Tensor) and x.dim() == 0)


# ---- products -----------------------------------------------------------------------------------


def _check_shapes(a: Tensor, b: Tensor) -> None:
    if a.dim() != 2 or b.dim() != 2 or a.size(1) != b.size(0):
        raise RuntimeError(
            f"mm(): shapes {list(a.shape)} and {list(b.shape)} cannot be multiplied as matrices"
        )


def _sparse_times_dense(a: SparseTensor, b: Tensor) -> Tensor:
    crow, col, values = compressed_rows(a)
    return _ops._csr_mm(crow, col, values, b)


def _sparse_times_sparse(a: SparseTensor, b: SparseTensor) -> SparseTensor:
    """Multiply each element (i, j) of ``a`` with all of row j of ``b``, and add up."""
    left = a.to_sparse_coo()
    crow, col, values = compressed_rows(b)
    positions, owner = _structure.gather_rows(crow.long(), left._indices_[1])
    indices = _ops.stack([left._indices_[0][owner], col[positions].long()])
    product = coo(indices, left._values_[owner] * values[positions], (a.size(0), b.size(1)))
    return product.coalesce() if a.is_sparse else product.to_sparse_csr()


@answers("mm")
def mm(mat1: Tensor, mat2: Tensor) -> Tensor:
    """Multiply two matrices, of which either or both are sparse.

    Args:
        mat1: (m, k).
        mat2: (k, n), of the same dtype.

    Returns:
        a dense matrix; of two sparse ones a sparse matrix of the first one's layout.

    Raises:
        RuntimeError: the shapes or dtypes do not fit.

    The product with a dense matrix runs over the rows in parallel, and gives the same result for
    any number of threads.

    >>> eye = taeda.eye(2).to_sparse()
    >>> taeda.sparse.mm(2 * eye, taeda.tensor([[1.0], [3.0]]))
    tensor([[2.],
            [6.]])
    """
    _check_shapes(mat1, mat2)
    for x in (mat1, mat2):
        need_matrix("mm", x)
    if mat1.dtype != mat2.dtype:
        raise RuntimeError(f"mm(): expected scalar type {mat1.dtype} but found {mat2.dtype}")
    if isinstance(mat1, SparseTensor):
        if isinstance(mat2, SparseTensor):
            return _sparse_times_sparse(mat1, mat2)
        return _sparse_times_dense(mat1, mat2)
    if isinstance(mat2, SparseTensor):
        return _sparse_times_dense(_transpose(mat2, 0, 1), mat1.t()).t()
    return _ops.mm(mat1, mat2)


@answers("mv")
def _mv(input: Any, vec: Any) -> Tensor:
    if isinstance(vec, SparseTensor):
        raise NotImplementedError("mv(): the vector must be dense")
    if input.dim() != 2 or vec.dim() != 1 or input.size(1) != vec.size(0):
        raise RuntimeError(
            f"mv(): expected self.size(-1) == vec.size(-1), got shapes {list(input.shape)} and "
            f"{list(vec.shape)}"
        )
    return mm(input, vec.unsqueeze(1)).squeeze(1)


@answers("matmul")
def _matmul(input: Any, other: Any) -> Any:
    if other.dim() == 1:
        return _mv(input, other)
    if input.dim() == 1 and other.dim() == 2 and not isinstance(input, SparseTensor):
        return _mv(_transpose(other, 0, 1), input)
    return mm(input, other)


@answers("linear")
def _linear(input: Any, weight: Any, bias: Any = None) -> Any:
    if isinstance(input, SparseTensor) or not isinstance(weight, SparseTensor):
        product = mm(input, weight.t())
    else:
        product = mm(weight, input.reshape(math.prod(input.shape[:-1]), input.size(-1)).t()).t()
        product = product.reshape(*input.shape[:-1], weight.size(0))
    return product if bias is None else product + bias


@answers("addmm")
def addmm(mat: Any, mat1: Any, mat2: Any, *, beta: float = 1.0, alpha: float = 1.0) -> Tensor:
    """Return ``beta * mat + alpha * mat1 @ mat2`` with a sparse ``mat1``.

    Args:
        mat: dense, of the product's shape or broadcast to it.
        mat1: (m, k), sparse.
        mat2: (k, n), dense.
        beta, alpha: factors.
    """
    if isinstance(mat, SparseTensor) or isinstance(mat2, SparseTensor):
        raise NotImplementedError("addmm(): only mat1 may be sparse")
    product = mm(mat1, mat2)
    return mat * beta + (product if alpha == 1 else product * alpha)


# ---- sums ---------------------------------------------------------------------------------------


def _same_shape(a: Tensor, b: Tensor) -> None:
    if a.shape != b.shape:
        raise RuntimeError(
            "add: expected sizes of 'self' and 'other' to match, but "
            f"{list(a.shape)} != {list(b.shape)}; sparse tensors do not broadcast"
        )


@answers("add")
def _add(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    if not isinstance(other, SparseTensor):
        if not isinstance(other, Tensor) or input.is_sparse:
            raise RuntimeError(
                "add(sparse, dense) is not supported. Use add(dense, sparse) instead."
            )
        return _add_to_dense(other * alpha, input, 1)
    if not isinstance(input, Tensor):
        raise RuntimeError("add(number, sparse) is not supported: the result would be dense")
    if not isinstance(input, SparseTensor):
        return _add_to_dense(input, other, alpha)
    _same_shape(input, other)
    if input.layout != other.layout:
        raise RuntimeError(
            f"add(): expected one layout, got {input.layout} and {other.layout}; convert one"
        )
    a, b = input.to_sparse_coo(), other.to_sparse_coo()
    if a.sparse_dim() != b.sparse_dim():
        raise RuntimeError(
            f"add(): expected tensors of one sparse_dim, got {a.sparse_dim()} and {b.sparse_dim()}"
        )
    values = b._values_ if alpha == 1 else b._values_ * alpha
    dtype = taeda.result_type(a._values_, values)
    result = coo(
        _ops.cat([a._indices_, b._indices_], 1),
        _ops.cat([a._values_.to(dtype), values.to(dtype)]),
        tuple(input.shape),
    )
    if not input.is_sparse:
        return as_before(input, result)
    return result.coalesce() if a._coalesced and b._coalesced else result


def _add_to_dense(dense: Tensor, other: SparseTensor, alpha: Any) -> Tensor:
    _same_shape(dense, other)
    positions, values = other._elements()
    values = values if alpha == 1 else values * alpha
    dtype = taeda.result_type(dense, values)
    if not positions:
        return dense + values.sum(0)
    if len(positions) == 1:
        return dense.to(dtype).index_add(0, positions[0], values.to(dtype))
    return dense.to(dtype).index_put(positions, values.to(dtype), accumulate=True)


@answers("sub")
def _sub(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    return _add(input, other, alpha=-alpha)


@answers("sum")
def _sum_of(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    if keepdim:
        raise NotImplementedError("sum(): keepdim=True is not supported for sparse tensors")
    return sum(input, dim, dtype)


def sum(input: Any, dim: Any = None, dtype: Any = None) -> Any:
    """Sum over all elements, or over dimensions.

    Args:
        input: a sparse tensor.
        dim: the dimension or dimensions; by default all.
        dtype: of the result; by default that of the input, and int64 for integers.

    Returns:
        a sparse tensor; a dense one where no dimension with indices is left.

    >>> taeda.sparse.sum(taeda.eye(3).to_sparse())
    tensor(3.)
    """
    if not isinstance(input, SparseTensor):
        raise RuntimeError("sum(): expected a sparse tensor, got a strided one")
    if dim is None:
        return _ops.sum(input._values_, dtype=dtype)
    given = (dim,) if isinstance(dim, int) else dim
    dims = {_structure.dim_in(d, input.dim()) for d in given}
    x = input.to_sparse_coo()
    count = x.sparse_dim()
    dense = [d - count + 1 for d in dims if d >= count]
    values = _ops.sum(x._values_, dense, dtype=dtype) if dense else x._values_
    kept = [d for d in range(count) if d not in dims]
    if not kept:
        return _ops.sum(values, 0, dtype=dtype)
    size = tuple(n for d, n in enumerate(input.shape) if d not in dims)
    if not dense:
        values = values.to(_ops.sum(values[:0], dtype=dtype).dtype)
    return coo(x._indices_[kept], values, size).coalesce()


def _along(input: Any, dim: int, dtype: Any, log: bool) -> SparseTensor:
    """Exponentials of the stored elements, divided by their sum along ``dim``."""
    if not isinstance(input, SparseTensor):
        raise RuntimeError("softmax(): expected a sparse tensor, got a strided one")
    d = _structure.dim_in(dim, input.dim())
    x = (input.to_sparse_coo() if dtype is None else input.to_sparse_coo().to(dtype)).coalesce()
    values, count = x._values_, x.sparse_dim()
    if not (values.is_floating_point()):
        raise NotImplementedError(f"softmax(): not implemented for {values.dtype}")
    if d >= count:
        along = d - count + 1
        done = values.log_softmax(along) if log else values.softmax(along)
        return like(x, done)
    others = x._indices_[[i for i in range(count) if i != d]]
    order = _structure.order_of(others, tuple(n for i, n in enumerate(x.shape[:count]) if i != d))
    group = _ops.empty_like(order)
    group[order] = _structure.is_first(others[:, order]).cumsum(0) - 1
    groups = int(group.max()) + 1 if group.numel() else 0
    at = group.reshape((-1,) + (1,) * (values.dim() - 1)).expand(values.shape)
    most = values.new_full((groups, *values.shape[1:]), -taeda.inf)
    most = most.scatter_reduce(0, at, values.detach(), "amax")
    shifted = values - most[group]
    total = add_up(shifted.exp(), group, groups)
    return like(x, shifted - total.log()[group] if log else shifted.exp() / total[group])


def softmax(input: Any, dim: int, *, dtype: Any = None) -> SparseTensor:
    """Softmax along a dimension over the stored elements: missing elements count as -inf.

    Args:
        input: of layout ``taeda.sparse_coo``.
        dim: the dimension.
        dtype: convert to it first.
    """
    return _along(input, dim, dtype, False)


def log_softmax(input: Any, dim: int, *, dtype: Any = None) -> SparseTensor:
    """Return the logarithm of ``softmax``."""
    return _along(input, dim, dtype, True)


@answers("softmax")
def _softmax(input: Any, dim: int, *, dtype: Any = None) -> SparseTensor:
    return _along(input, dim, dtype, False)


@answers("log_softmax")
def _log_softmax(input: Any, dim: int, *, dtype: Any = None) -> SparseTensor:
    return _along(input, dim, dtype, True)


# ---- element by element -------------------------------------------------------------------------


@answers("mul")
def _mul(input: Any, other: Any) -> SparseTensor:
    if not isinstance(input, SparseTensor):
        input, other = other, input
    if _is_number(other):
        return like(input, input._values_ * other)
    if isinstance(other, SparseTensor):
        _same_shape(input, other)
        return _mul_sparse(input, other)
    return like(input, input._values_ * values_at(other.expand(input.shape), input))


def _mul_sparse(input: SparseTensor, other: SparseTensor) -> SparseTensor:
    """Multiply elements that both have. Sorted together, they are neighbours."""
    a, b = (x.to_sparse_coo().coalesce() for x in (input, other))
    if a.sparse_dim() != b.sparse_dim():
        raise NotImplementedError("mul(): both tensors must have the same sparse_dim")
    indices = _ops.cat([a._indices_, b._indices_], 1)
    order = _structure.order_of(indices, tuple(input.shape[: a.sparse_dim()]))
    second = _ops.nonzero(~_structure.is_first(indices[:, order])).squeeze(1)
    left, right = order[second - 1], order[second] - a._nnz()
    values = a._values_[left] * b._values_[right]
    result = coo(a._indices_[:, left], values, tuple(input.shape), True)
    return as_before(input, result)


@answers("div")
def _div(input: Any, other: Any, *, rounding_mode: str | None = None) -> SparseTensor:
    if not isinstance(input, SparseTensor) or not _is_number(other):
        raise NotImplementedError("div(): a sparse tensor can only be divided by a number")
    if rounding_mode is not None:
        input = input.coalesce() if input.is_sparse else input
    return like(input, _ops.div(input._values_, other, rounding_mode=rounding_mode))


@answers("floor_divide")
def _floor_divide(input: Any, other: Any) -> SparseTensor:
    return _div(input, other, rounding_mode="floor")


@answers("pow")
def _pow(input: Any, exponent: Any) -> SparseTensor:
    if not isinstance(exponent, (int, float)) or exponent <= 0:
        raise NotImplementedError("pow(): the exponent must be a number above 0: 0 must stay 0")
    return _on_values("pow", input, exponent)


@answers("neg", "negative")
def _neg(input: SparseTensor) -> SparseTensor:
    return like(input, -input._values_)


def _on_values(name: str, input: SparseTensor, *args: Any) -> SparseTensor:
    x = input.coalesce() if input.is_sparse else input
    return like(x, getattr(_ops, name)(x._values_, *args))


def _keeps_zero(name: str) -> Callable[[SparseTensor], SparseTensor]:
    return lambda input: _on_values(name, input)


for _name in _C._op_traits("keeps_zero"):
    if not _name.endswith("_"):
        FUNCTIONS.setdefault(_name, _keeps_zero(_name))


@answers("norm")
def _norm(input: SparseTensor, p: Any = "fro", dim: Any = None, keepdim: bool = False) -> Tensor:
    if dim is not None or keepdim:
        raise NotImplementedError("norm(): a sparse tensor has the norm of all elements only")
    x = input.coalesce() if input.is_sparse else input
    return _ops.norm(x._values_.flatten(), 2 if p == "fro" else p)
