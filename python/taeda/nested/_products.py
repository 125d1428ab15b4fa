"""Products of nested tensors with matrices, and of two of them."""

from __future__ import annotations

from typing import Any

from taeda import _C
from taeda._C import Tensor
from taeda.nested._padded import from_dense, to_padded
from taeda.nested._pointwise import same_sequences
from taeda.nested._tensor import NestedTensor, answers, like, pack

_ops = _C.ops


def _refuse(name: str, *tensors: Any) -> RuntimeError:
    shapes = [tuple(t._size() if isinstance(t, NestedTensor) else t.shape) for t in tensors]
    return RuntimeError(
        f"{name}(): not supported between inputs of shapes {' and '.join(map(str, shapes))}"
    )


@answers("linear")
def _linear(input: Any, weight: Any, bias: Any = None) -> NestedTensor:
    if not isinstance(input, NestedTensor) or any(
        isinstance(x, NestedTensor) for x in (weight, bias)
    ):
        raise RuntimeError("linear(): weight and bias must be dense")
    if input._dim_ == input.dim() - 1:
        raise RuntimeError("linear(): not supported for NestedTensor on ragged dim")
    return like(input, _ops.linear(input._values_, weight, bias))


@answers("matmul", "linalg_matmul")
def matmul(input: Any, other: Any) -> Any:
    """Multiply nested tensors with dense ones; two nested ones along the ragged dimension."""
    if isinstance(input, NestedTensor):
        if isinstance(other, NestedTensor):
            return _nested_times_nested(input, other)
        return _nested_times_dense(input, other)
    return _dense_times_nested(input, other)


def _nested_times_dense(x: NestedTensor, dense: Tensor) -> NestedTensor:
    n, d = x.dim(), x._dim_
    if d == n - 1 or not 2 <= dense.dim() <= n:
        raise _refuse("matmul", x, dense)
    lead = (1,) * (n - dense.dim()) + tuple(dense.shape[:-2])
    if d < n - 2 and lead[d] != 1:
        raise _refuse("matmul", x, dense)
    if lead[0] == 1:
        small = dense.squeeze(0) if dense.dim() == n else dense
        return like(x, _ops.matmul(x._values_, small))
    if lead[0] != len(x):
        raise _refuse("matmul", x, dense)
    x = pack(x)
    product = _ops.matmul(to_padded(x, 0), dense)
    return from_dense(product, x._ragged_, d, x._strided_)


def _dense_times_nested(dense: Tensor, x: NestedTensor) -> NestedTensor:
    n, d = x.dim(), x._dim_
    if d == n - 2 or not 2 <= dense.dim() <= n or (dense.dim() == n and dense.size(0) != 1):
        raise _refuse("matmul", dense, x)
    small = dense.squeeze(0) if dense.dim() == n else dense
    if d < n - 2 and small.dim() > 2:
        raise _refuse("matmul", dense, x)
    return like(x, _ops.matmul(small, x._values_))


def _nested_times_nested(a: NestedTensor, b: NestedTensor) -> Any:
    """Contract the ragged dimension, or multiply matrices that are whole within a sequence."""
    n = a.dim()
    if n != b.dim():
        raise _refuse("matmul", a, b)
    if a._dim_ == b._dim_ < n - 2 and same_sequences(a, b):
        return like(a, _ops.matmul(a._values_, b._values_))
    if a._strided_ and b._strided_ and a._dim_ == n - 2 and b._dim_ == n - 1:
        return _outer(a, b)
    same = a._ragged_ is b._ragged_ or (
        a._strided_ and b._strided_ and a._ragged_.is_same(b._ragged_)
    )
    if a._dim_ != n - 1 or b._dim_ != n - 2 or not same:
        raise _refuse("matmul", a, b)
    product = _ops.matmul(to_padded(a, 0), to_padded(b, 0))
    if not a._strided_:
        return product
    from taeda.nested._make import nested_tensor_of

    return nested_tensor_of(list(product.unbind()), True)


def _outer(a: NestedTensor, b: NestedTensor) -> Any:
    """Matrices that are ragged in both dimensions, which strided layout has."""
    from taeda.nested._strided import stack_up

    return stack_up([_ops.matmul(x, y) for x, y in zip(a.unbind(), b.unbind(), strict=True)])


@answers("bmm")
def _bmm(input: Any, mat2: Any) -> Any:
    if input.dim() != 3 or mat2.dim() != 3:
        raise _refuse("bmm", input, mat2)
    return matmul(input, mat2)
