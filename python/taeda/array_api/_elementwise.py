"""Functions of each element, or of the elements of two tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import taeda
from taeda._C import Tensor
from taeda.array_api._dtypes import common

__all__ = [
    "abs", "acos", "acosh", "add", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and",
    "bitwise_invert", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor",
    "ceil", "clip", "conj", "copysign", "cos", "cosh", "divide", "equal", "exp", "expm1", "floor",
    "floor_divide", "greater", "greater_equal", "hypot", "imag", "isfinite", "isinf", "isnan",
    "less", "less_equal", "log", "log10", "log1p", "log2", "logaddexp", "logical_and",
    "logical_not", "logical_or", "logical_xor", "maximum", "minimum", "multiply", "negative",
    "nextafter", "not_equal", "positive", "pow", "real", "reciprocal", "remainder", "round",
    "sign", "signbit", "sin", "sinh", "sqrt", "square", "subtract", "tan", "tanh", "trunc",
]  # fmt: skip

abs = taeda.abs
acos = taeda.acos
acosh = taeda.acosh
asin = taeda.asin
asinh = taeda.asinh
atan = taeda.atan
atanh = taeda.atanh
bitwise_invert = taeda.bitwise_not
ceil = taeda.ceil
conj = taeda.conj
cos = taeda.cos
cosh = taeda.cosh
exp = taeda.exp
expm1 = taeda.expm1
floor = taeda.floor
isfinite = taeda.isfinite
isinf = taeda.isinf
isnan = taeda.isnan
log = taeda.log
log10 = taeda.log10
log1p = taeda.log1p
log2 = taeda.log2
logical_not = taeda.logical_not
negative = taeda.negative
positive = taeda.positive
real = taeda.real
reciprocal = taeda.reciprocal
signbit = taeda.signbit
sin = taeda.sin
sinh = taeda.sinh
sqrt = taeda.sqrt
square = taeda.square
tan = taeda.tan
tanh = taeda.tanh
trunc = taeda.trunc


def round(x: Tensor, /) -> Tensor:
    """Round to the nearest integer, halves to the even one; a complex number's parts each."""
    if x.is_complex():
        return taeda.complex(taeda.round(x.real), taeda.round(x.imag))
    return taeda.round(x)


def sign(x: Tensor, /) -> Tensor:
    """Return -1, 0 or 1 by the sign, ``z / abs(z)`` of a complex number, and NaN of a NaN."""
    result = taeda.sgn(x)
    floating = x.is_floating_point() or x.is_complex()
    return taeda.where(taeda.isnan(x), x, result) if floating else result


def imag(x: Tensor, /) -> Tensor:
    """Return the imaginary parts: zeros where the numbers are real."""
    return x.imag if x.is_complex() else taeda.zeros_like(x)


def clip(x: Tensor, /, min: Any = None, max: Any = None) -> Tensor:
    """Limit each element from below, from above, or both; the result has ``x``'s dtype.

    Args:
        x: the values.
        min, max: numbers, or tensors that broadcast with ``x``; ``None`` is no limit.
    """
    if min is None and max is None:
        return x.clone()
    if isinstance(min, Tensor) or isinstance(max, Tensor):
        min, max = (None if v is None else taeda.asarray(v, device=x.device) for v in (min, max))
        return taeda.clip(x, min, max).to(x.dtype)
    return taeda.clip(x, min, max).to(x.dtype)


Binary = Callable[[Any, Any], Tensor]


def _binary(name: str, function: Callable[..., Any]) -> Binary:
    """Wrap a function of two tensors: both are brought to the standard's common dtype first."""

    def apply(x1: Any, x2: Any, /) -> Any:
        return function(*common(x1, x2))

    apply.__name__ = apply.__qualname__ = name
    apply.__doc__ = (
        f"``taeda.{function.__name__}`` of the operands in their common dtype; one of them may be "
        "a number."
    )
    return apply


add = _binary("add", taeda.add)
atan2 = _binary("atan2", taeda.atan2)
bitwise_and = _binary("bitwise_and", taeda.bitwise_and)
bitwise_left_shift = _binary("bitwise_left_shift", taeda.bitwise_left_shift)
bitwise_or = _binary("bitwise_or", taeda.bitwise_or)
bitwise_right_shift = _binary("bitwise_right_shift", taeda.bitwise_right_shift)
bitwise_xor = _binary("bitwise_xor", taeda.bitwise_xor)
copysign = _binary("copysign", taeda.copysign)
divide = _binary("divide", taeda.div)
equal = _binary("equal", taeda.eq)
floor_divide = _binary("floor_divide", taeda.floor_divide)
greater = _binary("greater", taeda.gt)
greater_equal = _binary("greater_equal", taeda.ge)
hypot = _binary("hypot", taeda.hypot)
less = _binary("less", taeda.lt)
less_equal = _binary("less_equal", taeda.le)
logaddexp = _binary("logaddexp", taeda.logaddexp)
logical_and = _binary("logical_and", taeda.logical_and)
logical_or = _binary("logical_or", taeda.logical_or)
logical_xor = _binary("logical_xor", taeda.logical_xor)
maximum = _binary("maximum", taeda.maximum)
minimum = _binary("minimum", taeda.minimum)
multiply = _binary("multiply", taeda.mul)
nextafter = _binary("nextafter", taeda.nextafter)
not_equal = _binary("not_equal", taeda.ne)
pow = _binary("pow", taeda.pow)
remainder = _binary("remainder", taeda.remainder)
subtract = _binary("subtract", taeda.sub)
