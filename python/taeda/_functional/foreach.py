"""``_foreach_add``, ``_foreach_sqrt_`` and the like: one operation on each tensor of a list.

PyTorch keeps these names private, but optimizers outside of it are written with them. Each calls
the operation of the same name once per tensor. Without the underscore at the end they return a
tuple; with it they work in place and return the list that they were given.

>>> xs = [taeda.ones(2), taeda.zeros(1)]
>>> taeda._foreach_add(xs, 2)
(tensor([3., 3.]), tensor([2.]))
>>> taeda._foreach_mul_(xs, [2, 3])
[tensor([2., 2.]), tensor([0.])]
"""

from __future__ import annotations

from numbers import Number
from typing import TYPE_CHECKING, Any

import taeda
from taeda import _C

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# The operation that takes a number, and works in place, where it has another name.
_BY_NUMBER = {"maximum": "clamp_min", "minimum": "clamp_max"}
_SCALED = ("add", "sub")
_MISSING = object()


def _tensors(function: str, argument: str, values: Any) -> list[Any]:
    """The tensors of a list, of which there is one at least."""
    if not isinstance(values, (list, tuple)):
        raise TypeError(
            f"{function}(): argument {argument!r} must be a list or tuple of Tensors, "
            f"not {type(values).__name__}"
        )
    for i, value in enumerate(values):
        if not isinstance(value, _C.Tensor):
            raise TypeError(
                f"{function}(): expected Tensor as element {i} of argument {argument!r}, "
                f"but got {type(value).__name__}"
            )
    if not values:
        raise RuntimeError(f"{function}(): Tensor list must have at least one tensor.")
    return list(values)


def _as_many(function: str, argument: str, values: Any, count: int) -> list[Any]:
    tensors = _tensors(function, argument, values)
    if len(tensors) != count:
        raise RuntimeError(
            f"{function}(): Tensor lists must have the same number of tensors, "
            f"got {count} and {len(tensors)} (argument {argument!r})"
        )
    return tensors


def _each(function: str, argument: str, value: Any, count: int) -> list[Any]:
    """One operand for each tensor, from a number, a 0-dim tensor, or a list of either kind."""
    if isinstance(value, Number):
        return [value] * count
    if isinstance(value, _C.Tensor):
        if value.dim() != 0:
            raise RuntimeError(
                f"{function}(): scalar tensor expected to be 0 dim but it has {value.dim()} "
                f"dimensions and {value.numel()} elements."
            )
        return [value] * count
    if isinstance(value, (list, tuple)) and value and isinstance(value[0], Number):
        if len(value) != count:
            raise RuntimeError(
                f"{function}(): Tensor list must have same number of elements as scalar list, "
                f"got {count} and {len(value)}"
            )
        return list(value)
    if isinstance(value, (list, tuple)):
        return _as_many(function, argument, value, count)
    raise TypeError(
        f"{function}(): argument {argument!r} must be a number, a Tensor, or a list of either, "
        f"not {type(value).__name__}"
    )


def _one_of(function: str, given: dict[str, Any]) -> tuple[str, Any]:
    """The one argument of several names that was given."""
    chosen = [(name, value) for name, value in given.items() if value is not _MISSING]
    if len(chosen) != 1:
        raise TypeError(f"{function}() takes just one of the arguments {', '.join(given)}")
    return chosen[0]


def _apply(
    inplace: bool, method: str, tensors: Sequence[Any], *operands: Sequence[Any], **options: Any
) -> Any:
    """Call a method on each tensor with its operands; return the tensors if it is in place."""
    name = f"{method}_" if inplace else method
    results = [
        getattr(tensor, name)(*rest, **options)
        for tensor, *rest in zip(tensors, *operands, strict=True)
    ]
    return None if inplace else tuple(results)


def _unary(op: str, inplace: bool) -> Callable[..., Any]:
    function = _name(op, inplace)

    def run(self: Any) -> Any:
        result = _apply(inplace, op, _tensors(function, "self", self))
        return self if inplace else result

    return run


def _binary(op: str, inplace: bool) -> Callable[..., Any]:
    function, by_number = _name(op, inplace), _BY_NUMBER.get(op, op)

    def run(
        self: Any,
        other: Any = _MISSING,
        *,
        scalar: Any = _MISSING,
        scalars: Any = _MISSING,
        exponent: Any = _MISSING,
        **options: Any,
    ) -> Any:
        names = {"other": other, "scalar": scalar, "scalars": scalars}
        argument, value = _one_of(function, {**names, "exponent": exponent})
        if op == "pow" and not inplace and isinstance(self, (int, float, complex)):
            return tuple(taeda.pow(self, x) for x in _tensors(function, argument, value))
        tensors = _tensors(function, "self", self)
        operands = _each(function, argument, value, len(tensors))
        numbers = isinstance(operands[0], Number)
        if options and (op not in _SCALED or set(options) != {"alpha"} or numbers):
            raise TypeError(f"{function}() takes no argument {next(iter(options))!r} here")
        # (There is no maximum_, but clamp_min_ is that.)
        method = by_number if numbers or (inplace and op != "pow") else op
        result = _apply(inplace, method, tensors, operands, **options)
        return self if inplace else result

    return run


def _three(op: str, inplace: bool) -> Callable[..., Any]:
    """Addcmul and addcdiv, by one value or one for each."""
    function = _name(op, inplace)

    def run(
        self: Any, tensor1: Any, tensor2: Any, value: Any = _MISSING, *, scalars: Any = _MISSING
    ) -> Any:
        given = {"value": value, "scalars": scalars}
        argument, factor = ("value", 1) if value is scalars else _one_of(function, given)
        tensors = _tensors(function, "self", self)
        count = len(tensors)
        first = _as_many(function, "tensor1", tensor1, count)
        second = _as_many(function, "tensor2", tensor2, count)
        if isinstance(factor, _C.Tensor):
            factor = factor.tolist()
        factors = _each(function, argument, factor, count)
        name = f"{op}_" if inplace else op
        results = tuple(
            getattr(x, name)(a, b, value=v)
            for x, a, b, v in zip(tensors, first, second, factors, strict=True)
        )
        return self if inplace else results

    return run


def _lerp(inplace: bool) -> Callable[..., Any]:
    function = _name("lerp", inplace)

    def run(self: Any, tensors1: Any, weight: Any = _MISSING, *, weights: Any = _MISSING) -> Any:
        argument, value = _one_of(function, {"weight": weight, "weights": weights})
        tensors = _tensors(function, "self", self)
        ends = _as_many(function, "tensors1", tensors1, len(tensors))
        operands = _each(function, argument, value, len(tensors))
        result = _apply(inplace, "lerp", tensors, ends, operands)
        return self if inplace else result

    return run


def _norm(self: Any, ord: Any = 2, dtype: Any = None) -> Any:
    tensors = _tensors("_foreach_norm", "self", self)
    return tuple(taeda.linalg.vector_norm(x, ord, dtype=dtype) for x in tensors)


def _powsum(self: Any, ord: Any = 2, dtype: Any = None) -> Any:
    tensors = _tensors("_foreach_powsum", "self", self)
    return tuple(x.abs().pow(ord).sum(dtype=dtype) for x in tensors)


def _max(self: Any) -> Any:
    return _apply(False, "max", _tensors("_foreach_max", "self", self))


def _mm(self: Any, mat2: Any) -> Any:
    tensors = _tensors("_foreach_mm", "self", self)
    return _apply(False, "mm", tensors, _as_many("_foreach_mm", "mat2", mat2, len(tensors)))


def _clone(self: Any, *, memory_format: Any = None) -> Any:
    tensors = _tensors("_foreach_clone", "self", self)
    return tuple(x.clone(memory_format=memory_format) for x in tensors)


def _copy_(self: Any, src: Any, non_blocking: bool = False) -> Any:
    tensors = _tensors("_foreach_copy_", "self", self)
    sources = _as_many("_foreach_copy_", "src", src, len(tensors))
    for x, y in zip(tensors, sources, strict=True):
        x.copy_(y, non_blocking=non_blocking)
    return self


def _zero_(self: Any) -> Any:
    _apply(True, "zero", _tensors("_foreach_zero_", "self", self))
    return self


def _name(op: str, inplace: bool) -> str:
    return f"_foreach_{op}_" if inplace else f"_foreach_{op}"


def _takes_two(op: str) -> bool:
    """Whether the operation has a second operand."""
    return any(schema.count(": Tensor") > 1 for schema in getattr(_C.ops, op).overloads)


def _functions() -> dict[str, Any]:
    made: dict[str, Any] = {}
    single = [op for op in _C._op_traits("foreach") if not op.endswith("_")]
    for inplace in (False, True):
        for op in single:
            make = _binary if _takes_two(op) else _unary
            made[_name(op, inplace)] = make(op, inplace)
        made |= {_name(op, inplace): _three(op, inplace) for op in ("addcmul", "addcdiv")}
        made[_name("lerp", inplace)] = _lerp(inplace)
    for function in (_norm, _powsum, _max, _mm, _clone, _copy_, _zero_):
        made[f"_foreach{function.__name__}"] = function
    for name, function in made.items():
        function.__name__ = function.__qualname__ = name
        operation = name.removeprefix("_foreach_").rstrip("_")
        function.__doc__ = (
            f"``{operation}`` of each tensor of a list: see ``taeda._functional.foreach``."
        )
    return made


FUNCTIONS = _functions()
globals().update(FUNCTIONS)
