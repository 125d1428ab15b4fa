"""What a ``TorchDispatchMode`` is given as ``func``: PyTorch's name of the overload that runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from taeda import _C
from taeda._aten import OpOverload, OpOverloadPacket, packet

Args = tuple[Any, ...]
Rule = Callable[[Args, Mapping[str, Any]], str]

# Second names, which PyTorch's modes see as the first.
_FIRST_NAMES = {
    "multiply": "mul", "divide": "div", "true_divide": "div", "subtract": "sub", "negative": "neg",
    "greater": "gt", "greater_equal": "ge", "less": "lt", "less_equal": "le", "not_equal": "ne",
    "absolute": "abs", "clip": "clamp", "fix": "trunc", "arccos": "acos", "arccosh": "acosh",
    "arcsin": "asin", "arcsinh": "asinh", "arctan": "atan", "arctan2": "atan2",
    "arctanh": "atanh",
}  # fmt: skip


def _is_tensor(args: Args, i: int) -> bool:
    return len(args) > i and isinstance(args[i], _C.Tensor)


def _operand(i: int, tensor: str, number: str) -> Rule:
    """By whether an argument is a tensor or a number."""
    return lambda args, kwargs: tensor if _is_tensor(args, i) else number


def _reduction(dim: str, dims: str | None = None, other: str = "other") -> Rule:
    """By what comes after the tensor: nothing, a dimension, several, or another tensor."""

    def name(args: Args, kwargs: Mapping[str, Any]) -> str:
        if _is_tensor(args, 1):
            return other
        if len(args) < 2:
            return "default"
        return dims if dims and isinstance(args[1], (list, tuple)) and len(args[1]) > 1 else dim

    return name


def _power(args: Args, kwargs: Mapping[str, Any]) -> str:
    kinds = _is_tensor(args, 0), _is_tensor(args, 1)
    return {(True, True): "Tensor_Tensor", (True, False): "Tensor_Scalar"}.get(kinds, "Scalar")


def _clamp(args: Args, kwargs: Mapping[str, Any]) -> str:
    return "Tensor" if _is_tensor(args, 1) or _is_tensor(args, 2) else "default"


def _scatter(args: Args, kwargs: Mapping[str, Any]) -> str:
    tensor = _is_tensor(args, 3)
    if "reduce" in kwargs:
        return "reduce" if tensor else "value_reduce"
    return "src" if tensor else "value"


def _where(args: Args, kwargs: Mapping[str, Any]) -> str:
    kinds = _is_tensor(args, 1), _is_tensor(args, 2)
    names = {(True, False): "ScalarOther", (False, True): "ScalarSelf", (False, False): "Scalar"}
    return names.get(kinds, "self") if len(args) > 1 else "default"


def _with(key: str, given: str, otherwise: str) -> Rule:
    """By whether an argument is given by keyword."""
    return lambda args, kwargs: given if kwargs.get(key) is not None else otherwise


_SECOND = _operand(1, "Tensor", "Scalar")
_SHIFT = _operand(1, "Tensor", "Tensor_Scalar")

# The rest have one overload, `default`. In-place forms have the rule of their op where they have
# none of their own.
_RULES: dict[str, str | Rule] = {
    **dict.fromkeys(("add", "sub", "mul", "frexp", "index", "slice"), "Tensor"),
    **dict.fromkeys(("select", "transpose", "unbind", "softmax", "log_softmax"), "int"),
    **dict.fromkeys(("eq", "ne", "lt", "le", "gt", "ge", "fmod", "remainder", "copysign"), _SECOND),
    **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor", "fill", "rsub"), _SECOND),
    **dict.fromkeys(("bitwise_left_shift", "bitwise_right_shift"), _SHIFT),
    **dict.fromkeys(("lerp", "masked_fill"), _operand(2, "Tensor", "Scalar")),
    **dict.fromkeys(("all", "any"), _reduction("dim", "dims")),
    **dict.fromkeys(("max", "min", "median", "nanmedian", "mean"), _reduction("dim")),
    **dict.fromkeys(("clamp_min", "clamp_max"), _operand(1, "Tensor", "default")),
    "bernoulli": _reduction("p", other="Tensor"),
    "bernoulli_": _operand(1, "Tensor", "float"),
    "clamp": _clamp,
    "count_nonzero": _reduction("dim_IntList"),
    "div": _with("rounding_mode", "Tensor_mode", "Tensor"),
    "empty": "memory_format",
    "eye": lambda args, kwargs: "m" if len(args) > 1 else "default",
    "floor_divide_": "Tensor",
    "index_fill": _operand(3, "int_Tensor", "int_Scalar"),
    "pow": _power,
    "pow_": _SECOND,
    "prod": _reduction("dim_int"),
    "round": _with("decimals", "decimals", "default"),
    "scatter": _scatter,
    "scatter_reduce": "two",
    "sort": lambda args, kwargs: "stable" if "stable" in kwargs or len(args) > 3 else "default",
    "split": lambda args, kwargs: "sizes" if isinstance(args[1], list) else "Tensor",
    "squeeze": _reduction("dim", "dims"),
    "sum": _reduction("dim_IntList"),
    "view": lambda args, kwargs: "default" if isinstance(args[1], list) else "dtype",
    "where": _where,
    "xlogy": _operand(1, "Tensor", "Scalar_Other"),
}


def _overload_of(name: str, args: Args, kwargs: Mapping[str, Any]) -> str:
    if "out" in kwargs:
        return "out"
    rule = _RULES.get(name) or _RULES.get(name.removesuffix("_")) or "default"
    return rule if isinstance(rule, str) else rule(args, kwargs)


def func_of(name: str, args: Args, kwargs: Mapping[str, Any]) -> OpOverload | Any:
    """What a mode is given for a call: an overload of ``ops.aten``, or an op from outside."""
    if "::" in name:
        from taeda import ops

        namespace, _, own = name.partition("::")
        found = getattr(getattr(ops, namespace), own)
        return getattr(found, "default", found)
    plain = name.removesuffix("_")
    name = _FIRST_NAMES.get(plain, plain) + name[len(plain) :]
    named = packet(name) or _hidden(name)
    return named.overload(_overload_of(name, args, kwargs))


_HIDDEN: dict[str, OpOverloadPacket] = {}


def _hidden(name: str) -> OpOverloadPacket:
    """An operation that is no attribute of ``ops.aten``, as names with two underscores are not."""
    if name not in _HIDDEN:
        _HIDDEN[name] = OpOverloadPacket(name, getattr(_C.ops, name))
    return _HIDDEN[name]


_C._name_dispatched_ops(func_of)
