"""Reductions of nested tensors, and ops along one of their dimensions."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Sequence
from typing import Any

import taeda
from taeda import _C
from taeda._C import Tensor
from taeda.nested._padded import to_padded
from taeda.nested._pointwise import same_sequences, wrap
from taeda.nested._shape import dense_dim
from taeda.nested._tensor import FUNCTIONS, NestedTensor, answers, dim_in, like, pack

_ops = _C.ops
_RULES = _C._op_traits("vmap").items()


@functools.cache
def _parameters(name: str) -> list[list[tuple[str, str, bool]]]:
    """Of each form of an op, the parameters: name, type, and whether by keyword only."""
    forms = []
    for form in getattr(_ops, name)._forms:
        text = re.match(r"[\w.]+\((.*)\) ->", form["schema"])
        assert text is not None
        found, keyword = [], False
        for part in re.split(r", (?![^\[(]*[\])])", text[1]):
            if part == "*":
                keyword = True
            elif part:
                label, _, kind = part.partition(": ")
                found.append((label, kind.partition(" =")[0], keyword))
        forms.append(found)
    return forms


def _is_of(kind: str, value: Any) -> bool:
    """Whether a value may be for a parameter of a type: enough to tell forms apart."""
    if value is None:
        return "?" in kind
    if kind.startswith("Tensor"):
        return isinstance(value, Tensor)
    if kind.startswith("bool"):
        return isinstance(value, bool)
    return not isinstance(value, (Tensor, bool))


def bind(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments behind the first by name, of the form of the op that they fit.

    Raises:
        TypeError: they fit none.
    """
    for form in _parameters(name):
        places = [label for label, _, keyword in form[1:] if not keyword]
        kinds = {label: kind for label, kind, _ in form[1:]}
        if len(args) > len(places) or not kwargs.keys() <= kinds.keys():
            continue
        found = dict(zip(places, args, strict=False))
        if found.keys() & kwargs.keys():
            continue
        found.update(kwargs)
        if all(_is_of(kinds[label], value) for label, value in found.items()):
            return found
    raise TypeError(f"{name}(): a nested tensor is not taken with these arguments")


# ---- over dimensions ----------------------------------------------------------------------------


def _dims(name: str, x: NestedTensor, given: Any) -> set[int]:
    """The dimensions that are asked for; empty: all."""
    if given is None:
        return set()
    return {dim_in(d, x.dim()) for d in (given if isinstance(given, Sequence) else [given])}


def _check_dims(name: str, x: NestedTensor, dims: set[int]) -> None:
    if 0 in dims and x._dim_ not in dims:
        raise RuntimeError(
            f"{name}(): reducing along the batch dimension but not the ragged dimension is not "
            "supported for nested tensors"
        )
    if x._dim_ in dims and 0 not in dims and len(dims) > 1:
        raise RuntimeError(
            f"{name}(): reducing along a ragged and non-batch dimension is not supported for "
            "nested tensors"
        )


@answers(*(name for name, rule in _RULES if rule[0] == "reduction"), named=True)
@answers("aminmax", "nanmean", "norm", "std", "std_mean", "var", "var_mean", named=True)
def _reduction(name: str, input: Any, *args: Any, **kwargs: Any) -> Any:
    """Reduce nested tensors: to nested ones where the ragged dimension stays."""
    given = bind(name, (input, *args)[1:], kwargs)
    if "other" in given:
        return FUNCTIONS["maximum" if name == "max" else "minimum"](input, given["other"])
    dims = _dims(name, input, given.get("dim"))
    op = getattr(_ops, name)
    if not dims or len(dims) == input.dim():
        keep = given.pop("keepdim", False)
        given.pop("dim", None)
        result = op(pack(input)._values_, **given)
        return result.reshape((1,) * input.dim()) if keep and dims else result
    _check_dims(name, input, dims)
    if 0 in dims:
        values = pack(input)._values_
        inner = sorted(d - 1 for d in dims if d)
        given["dim"] = inner if isinstance(given["dim"], Sequence) else inner[0]
        result = op(values, **given)
        return result.unsqueeze(0) if given.get("keepdim") else result
    if input._dim_ in dims:
        del given["dim"]
        return _over_sequences(name, pack(input), given)
    inner = sorted(d - 1 for d in dims)
    given["dim"] = inner if isinstance(given["dim"], Sequence) else inner[0]
    result = op(input._values_, **given)
    gone = 0 if given.get("keepdim") else sum(d < input._dim_ for d in dims)
    return _renested(input, result, input._dim_ - gone)


def _renested(x: NestedTensor, result: Any, dim: int) -> Any:
    if isinstance(result, Tensor):
        return like(x, result, dim)
    items = [like(x, item, dim) for item in result]
    return tuple(items) if type(result) is tuple else type(result)(items)


def _over_sequences(name: str, x: NestedTensor, given: dict[str, Any]) -> Any:
    """Reduce each sequence: (batch, *rest), with a 1 for the ragged dimension if it is kept."""
    keep = given.pop("keepdim", False)
    if name in ("sum", "mean"):
        result = _sums(x, given.get("dtype"), name == "mean")
        return result.unsqueeze(x._dim_) if keep else result
    padding = _neutral(name, x._values_.dtype)
    padded = to_padded(x, padding)
    if keep:
        given["keepdim"] = True
    return getattr(_ops, name)(padded, dim=x._dim_, **given)


def _sums(x: NestedTensor, dtype: Any, mean: bool) -> Tensor:
    """The sum of each sequence, or its mean, with the ragged dimension gone."""
    values = x._values_.movedim(x._dim_ - 1, 0)
    if mean and not (dtype or values.dtype).is_floating_point and not values.is_complex():
        raise RuntimeError(
            f"mean(): could not infer output dtype. Input dtype must be either a floating point "
            f"or complex dtype. Got: {values.dtype}"
        )
    kind = dtype or _ops.sum(values[:0]).dtype
    sums = _ops.zeros((len(x), *values.shape[1:]), dtype=kind, device=values.device)
    sums = sums.index_add(0, x._ragged_.rows(values.device), values.to(kind))
    if not mean:
        return sums
    counts = _C.tensor(x._ragged_.counts, dtype=kind, device=values.device)
    return sums / counts.reshape(-1, *[1] * (sums.dim() - 1))


def _neutral(name: str, dtype: Any) -> Any:
    """The padding that changes no result of a reduction."""
    if name in ("any", "count_nonzero", "nansum"):
        return 0
    if name in ("all", "prod"):
        return 1
    least = name == "logsumexp" or name.endswith("max")
    if not least and not name.endswith("min"):
        raise RuntimeError(
            f"{name}(): reducing along the ragged dimension is not supported for nested tensors"
        )
    if dtype == taeda.bool:
        return not least
    if dtype.is_floating_point:
        return -math.inf if least else math.inf
    info = taeda.iinfo(dtype)
    return info.min if least else info.max


# ---- along one dimension ------------------------------------------------------------------------


@answers("softmax", "log_softmax", named=True)
def _softmax(name: str, input: Any, dim: int, dtype: Any = None) -> Any:
    d = dim_in(dim, input.dim())
    if d == 0:
        raise RuntimeError(
            f"{name}(): not supported when reducing across the batch dimension for NestedTensor"
        )
    if d != input._dim_:
        op = getattr(_ops, name)
        return like(input, op(input._values_, d - 1, **({"dtype": dtype} if dtype else {})))
    x = pack(input if dtype is None else input.to(dtype))
    return like(x, _softmax_of_sequences(x, name == "log_softmax"))


def _softmax_of_sequences(x: NestedTensor, log: bool) -> Tensor:
    """Softmax over each sequence, from sums of the elements that belong to it."""
    values, d = x._values_.movedim(x._dim_ - 1, 0), x._dim_ - 1
    if not values.is_floating_point():
        raise NotImplementedError(f"softmax(): not implemented for {values.dtype}")
    rows = x._ragged_.rows(values.device)
    shape = (len(x), *values.shape[1:])
    index = rows.reshape(-1, *[1] * (values.dim() - 1)).expand(values.shape)
    most = values.new_full(shape, -math.inf)
    most = most.scatter_reduce(0, index, values.detach(), "amax")
    most = most.masked_fill(most == -math.inf, 0)
    shifted = values - most.index_select(0, rows)
    sums = values.new_zeros(shape).index_add(0, rows, shifted.exp())
    if log:
        return (shifted - sums.log().index_select(0, rows)).movedim(0, d)
    return (shifted.exp() / sums.index_select(0, rows)).movedim(0, d)


@answers("cummax", "cummin", "cumprod", "cumsum", "logcumsumexp", named=True)
@answers("argsort", "sort", "topk", "flip", "roll", named=True)
@answers("gather", "index_select", "scatter", "scatter_add", "take_along_dim", named=True)
def _along(name: str, input: Any, *args: Any, **kwargs: Any) -> Any:
    """Ops along a dense dimension, that leave the others as they are."""
    given = bind(name, (input, *args)[1:], kwargs)
    label = "dims" if "dims" in {p[0] for form in _parameters(name) for p in form} else "dim"
    dim = given.get(label, -1 if name in ("argsort", "sort", "topk") else None)
    if dim is None:
        raise NotImplementedError(f"{name}() of a nested tensor needs a dimension")
    if label == "dims" or isinstance(dim, Sequence):
        dim = [dim] if isinstance(dim, int) else dim
        given[label] = [dense_dim(name, input, d) - 1 for d in dim]
    else:
        given[label] = dense_dim(name, input, dim) - 1
    for key, value in given.items():
        if isinstance(value, NestedTensor):
            if not isinstance(input, NestedTensor) or not same_sequences(input, value):
                raise RuntimeError(f"{name}(): nested tensors must have the same offsets")
            given[key] = value._values_
        elif isinstance(value, Tensor) and value.dim() > 1:
            raise NotImplementedError(f"{name}(): the {key} of a nested tensor must be nested")
    return wrap(input, getattr(_ops, name)(input._values_, **given))


# ---- normalisation ------------------------------------------------------------------------------


@answers("layer_norm", "rms_norm", named=True)
def _norm_of_last(name: str, input: Any, normalized_shape: Any, *args: Any, **kwargs: Any) -> Any:
    if any(isinstance(x, NestedTensor) for x in (*args, *kwargs.values())):
        raise RuntimeError(f"{name}(): weight and bias must be dense")
    count = 1 if isinstance(normalized_shape, int) else len(normalized_shape)
    if count > input.dim() - 1 - input._dim_:
        raise RuntimeError(
            f"{name}(): normalizing over the ragged dimension is not supported for nested tensors, "
            f"got normalized_shape={normalized_shape} for {tuple(input._size())}"
        )
    return like(input, getattr(_ops, name)(input._values_, normalized_shape, *args, **kwargs))


@answers("masked_select")
def _masked_select(input: Any, mask: Any) -> Tensor:
    """The elements where a nested mask of the same sequences holds, as a dense 1-D tensor."""
    if not isinstance(input, NestedTensor) or not isinstance(mask, NestedTensor):
        raise RuntimeError("masked_select(): the tensor and the mask must both be nested")
    if not same_sequences(input, mask):
        raise RuntimeError("masked_select(): the tensor and the mask must have the same offsets")
    chosen = pack(mask)
    values = pack(input)
    order = values._dim_ - 1
    return _ops.masked_select(values._values_.movedim(order, 0), chosen._values_.movedim(order, 0))
