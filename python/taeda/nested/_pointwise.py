"""Ops on nested tensors that compute each element by itself, and copies."""

from __future__ import annotations

from typing import Any

import taeda
from taeda import _C
from taeda._C import Tensor
from taeda.nested._ragged import Ragged
from taeda.nested._tensor import NestedTensor, answers, like, pack

_ops = _C.ops


def first_nested(*args: Any) -> NestedTensor:
    """The nested tensor of the most dimensions among arguments."""
    found = [x for x in args if isinstance(x, NestedTensor)]
    return max(found, key=NestedTensor.dim)


def same_sequences(a: NestedTensor, b: NestedTensor) -> bool:
    """Whether two tensors have the same sequences in the same dimension."""
    if a._dim_ != b._dim_ or a.dim() != b.dim():
        return False
    if a._ragged_ is b._ragged_:
        return True
    return a._strided_ and b._strided_ and a._ragged_.is_same(b._ragged_)


def refuse_shapes(name: str, *tensors: Any) -> RuntimeError:
    """The error for shapes that do not fit."""
    shapes = [tuple(t._size() if isinstance(t, NestedTensor) else t.shape) for t in tensors]
    text = " and ".join(map(str, shapes))
    return RuntimeError(
        f"cannot call pointwise function {name} with inputs of shapes {text}: nested tensors fit "
        "together where they have the same offsets, dense ones where they broadcast"
    )


# ---- dense tensors beside nested ones -----------------------------------------------------------


def from_padded(dense: Tensor, ragged: Ragged, dim: int) -> Tensor:
    """Of a padded tensor (batch, ...) the values of sequences, which lie in dimension ``dim``."""
    if ragged.is_regular and dense.size(dim) == ragged.longest:
        return dense.movedim(0, dim - 1).flatten(dim - 1, dim)
    rows = dense.movedim(dim, 1).flatten(0, 1)
    index = ragged.cells(dense.size(dim), dense.device)
    return rows.index_select(0, index).movedim(0, dim - 1)


def of_sequences(leader: NestedTensor, rows: Tensor) -> Tensor:
    """Of a tensor with one item for each sequence (batch, *rest), that of each element."""
    taken = rows.index_select(0, leader._ragged_.rows(rows.device))
    return taken.movedim(0, leader._dim_ - 1)


def needs_packing(leader: NestedTensor, x: Any) -> bool:
    """Whether holes must go: one tensor has none, or a dense one something for each sequence."""
    n = leader.dim()
    if isinstance(x, NestedTensor):
        return x._ragged_ is not leader._ragged_
    if not isinstance(x, Tensor) or x.dim() < n:
        return False
    return x.size(0) != 1 or x.size(leader._dim_) != 1


def spread(name: str, leader: NestedTensor, x: Tensor) -> Tensor:
    """A dense tensor such that it broadcasts with the values of a nested one."""
    n, d = leader.dim(), leader._dim_
    if x.dim() < n - d:
        return x
    if x.dim() > n:
        raise refuse_shapes(name, leader, x)
    shape = (1,) * (n - x.dim()) + tuple(x.shape)
    whole = x.reshape(shape)
    if shape[d] != 1:
        if shape[0] != len(leader) or shape[d] != leader._ragged_.longest:
            raise refuse_shapes(name, leader, x)
        return from_padded(whole, leader._ragged_, d)
    if shape[0] == 1:
        return whole.squeeze(0)
    if shape[0] != len(leader):
        raise refuse_shapes(name, leader, x)
    return of_sequences(leader, whole.squeeze(d))


def _dense(name: str, leader: NestedTensor, x: Any) -> Any:
    """An argument such that it goes with the leader's values."""
    if isinstance(x, NestedTensor):
        if not same_sequences(leader, x):
            raise refuse_shapes(name, leader, x)
        return x._values_
    if isinstance(x, Tensor) and x.dim():
        return spread(name, leader, x)
    return x


def pointwise(name: str, *args: Any, **kwargs: Any) -> Any:
    """Call an op on values."""
    everything = (*args, *kwargs.values())
    leader = first_nested(*everything)
    changes = name.endswith("_") and not name.endswith("__")
    if changes and not isinstance(args[0], NestedTensor):
        raise RuntimeError(f"{name}(): a dense tensor cannot be changed in place by a nested one")
    if not changes and any(needs_packing(leader, x) for x in everything):
        args = tuple(pack(x) if isinstance(x, NestedTensor) else x for x in args)
        kwargs = {k: pack(x) if isinstance(x, NestedTensor) else x for k, x in kwargs.items()}
        leader = first_nested(*args, *kwargs.values())
    values = [_dense(name, leader, x) for x in args]
    named = {k: _dense(name, leader, x) for k, x in kwargs.items()}
    result = getattr(_ops, name)(*values, **named)
    return args[0] if changes else wrap(leader, result)


def wrap(x: NestedTensor, result: Any) -> Any:
    """Make nested tensors of results on the values of ``x``, which have its ragged dimension."""
    if isinstance(result, Tensor):
        return like(x, result)
    if isinstance(result, tuple):
        items = [wrap(x, item) for item in result]
        return tuple(items) if type(result) is tuple else type(result)(items)
    return result


_RULES = _C._op_traits("vmap").items()
answers(
    *_C._op_traits("elementwise"),
    *(name for name, rule in _RULES if rule[0] == "elementwise"),
    named=True,
)(pointwise)
# Copies, numbers drawn for each element, and what is composed of elementwise ops.
answers("alias", "conj", "cpu", "detach", "fill", "fill_", "zero_", named=True)(pointwise)
answers("imag", "real", "positive", "resolve_conj", "resolve_neg", named=True)(pointwise)
answers("float_power", "float_power_", "ldexp", "ldexp_", "polar", named=True)(pointwise)
answers("mvlgamma", "mvlgamma_", named=True)(pointwise)
answers("alpha_dropout", "dropout", "dropout_", "native_dropout", named=True)(pointwise)
answers("bernoulli", "bernoulli_", "poisson", "random_", "uniform_", named=True)(pointwise)
answers("cauchy_", "exponential_", "geometric_", "log_normal_", "normal_", named=True)(pointwise)


@answers("prelu", "_prelu")
def _prelu(input: Any, weight: Any) -> Any:
    if not isinstance(input, NestedTensor) or isinstance(weight, NestedTensor):
        raise NotImplementedError("prelu(): the weight of a nested tensor must be dense")
    if weight.numel() != 1:
        raise NotImplementedError(
            "prelu() of a nested tensor takes one weight, as its channels would be ragged"
        )
    return like(input, _ops.prelu(input._values_, weight))


# ---- copies -------------------------------------------------------------------------------------


@answers("clone")
def _clone(input: NestedTensor, *, memory_format: Any = taeda.preserve_format) -> NestedTensor:
    if memory_format is taeda.contiguous_format:
        input = pack(input)
    return like(input, input._values_.clone(memory_format=memory_format))


@answers("contiguous")
def _contiguous(input: NestedTensor, *, memory_format: Any = None) -> NestedTensor:
    if memory_format not in (None, taeda.contiguous_format):
        raise NotImplementedError(f"contiguous(): nested tensors are not in {memory_format}")
    if input.is_contiguous():
        return input
    packed = pack(input)
    return like(packed, packed._values_.contiguous())


@answers("to")
def _to(input: Any, *args: Any, **kwargs: Any) -> Any:
    if not isinstance(input, NestedTensor):
        other: Any = args[0]
        return input.to(other.device, other.dtype, *args[1:], **kwargs)
    if args and isinstance(args[0], Tensor):
        args = (args[0].device, args[0].dtype, *args[1:])
    values = input._values_.to(*args, **kwargs)
    return input if values is input._values_ else like(input, values)


@answers("type_as")
def _type_as(input: Any, other: Any) -> Any:
    return input.to(other.dtype)


@answers("_to_copy")
def _to_copy(input: NestedTensor, *args: Any, **kwargs: Any) -> NestedTensor:
    return like(input, _ops._to_copy(input._values_, *args, **kwargs))


@answers("copy_")
def _copy_(input: Any, other: Any, non_blocking: bool = False) -> Any:
    if not isinstance(input, NestedTensor) or not isinstance(other, NestedTensor):
        raise RuntimeError("copy_(): both tensors must be nested, or both dense")
    fits = same_sequences(input, other) or (
        input.dim() == other.dim()
        and input._dim_ == other._dim_
        and input._ragged_.is_same(other._ragged_)
    )
    if not fits:
        raise refuse_shapes("copy_", input, other)
    input._values_.copy_(other._values_, non_blocking)
    return input


@answers("empty_like", "full_like", "ones_like", "zeros_like", named=True)
@answers("rand_like", "randint_like", "randn_like", named=True)
def _like(name: str, input: Any, *args: Any, layout: Any = None, **kwargs: Any) -> Any:
    if layout not in (None, input.layout):
        raise NotImplementedError(
            f"{name}(): the result for a nested tensor of {input.layout} has its layout, not "
            f"{layout}"
        )
    return like(input, getattr(_ops, name)(input._values_, *args, **kwargs))


@answers("new_empty", "new_full", "new_ones", "new_zeros", named=True)
def _new(name: str, input: Any, *args: Any, **kwargs: Any) -> Any:
    return getattr(input._values_, name)(*args, **kwargs)


@answers("result_type")
def _result_type(tensor: Any, other: Any) -> Any:
    dense = [x._values_ if isinstance(x, NestedTensor) else x for x in (tensor, other)]
    return _ops.result_type(*dense)


# ---- comparisons that give one answer -----------------------------------------------------------


@answers("equal")
def _equal(input: Any, other: Any) -> bool:
    if not isinstance(input, NestedTensor) or not isinstance(other, NestedTensor):
        raise RuntimeError("equal(): both tensors must be nested, or both dense")
    if input.dim() != other.dim() or input._dim_ != other._dim_:
        return False
    a, b = pack(input), pack(other)
    return a._ragged_.is_same(b._ragged_) and _ops.equal(a._values_, b._values_)


@answers("allclose")
def _allclose(input: Any, other: Any, *args: Any, **kwargs: Any) -> bool:
    return bool(pointwise("isclose", input, other, *args, **kwargs).all())


# ---- losses -------------------------------------------------------------------------------------


@answers(*(name for name, rule in _RULES if rule[0] == "loss"), named=True)
def _loss(name: str, input: Any, target: Any, *args: Any, **kwargs: Any) -> Any:
    """A loss of pairs of elements: the reduction is over the elements of all sequences."""
    leader = pack(first_nested(input, target))
    pair = [_dense(name, leader, pack(x) if isinstance(x, NestedTensor) else x)
            for x in (input, target)]  # fmt: skip
    given = (*args, *kwargs.values())
    if any(isinstance(x, NestedTensor) for x in given):
        raise NotImplementedError(f"{name}(): weights of nested tensors must be dense numbers")
    result = getattr(_ops, name)(*pair, *args, **kwargs)
    return like(leader, result) if result.dim() else result


@answers("embedding")
def _embedding(weight: Any, indices: Any, *args: Any, **kwargs: Any) -> Any:
    if isinstance(weight, NestedTensor):
        raise NotImplementedError("embedding(): the weight must be dense")
    return like(indices, _ops.embedding(weight, indices._values_, *args, **kwargs))


@answers("one_hot")
def _one_hot(input: Any, num_classes: int = -1) -> Any:
    return like(input, _ops.one_hot(input._values_, num_classes))


@answers("bucketize")
def _bucketize(input: Any, boundaries: Any, **kwargs: Any) -> Any:
    if not isinstance(input, NestedTensor) or isinstance(boundaries, NestedTensor):
        raise NotImplementedError("bucketize(): the boundaries must be dense")
    return like(input, _ops.bucketize(input._values_, boundaries, **kwargs))
