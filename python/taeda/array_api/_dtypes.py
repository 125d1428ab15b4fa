"""Data types by the standard's rules, where tensors without dimensions count like all others."""

from __future__ import annotations

from typing import Any, NamedTuple

import taeda
from taeda._C import Tensor, dtype

__all__ = ["astype", "can_cast", "finfo", "iinfo", "isdtype", "result_type"]

_SIGNED = (taeda.int8, taeda.int16, taeda.int32, taeda.int64)
_REAL = (taeda.float32, taeda.float64)
_COMPLEX = (taeda.complex64, taeda.complex128)

KINDS: dict[str, tuple[dtype, ...]] = {
    "bool": (taeda.bool,),
    "signed integer": _SIGNED,
    "unsigned integer": (taeda.uint8,),
    "integral": (*_SIGNED, taeda.uint8),
    "real floating": _REAL,
    "complex floating": _COMPLEX,
    "numeric": (*_SIGNED, taeda.uint8, *_REAL, *_COMPLEX),
}


class FloatInfo(NamedTuple):
    """What a floating point dtype can hold; of a complex one, each of its parts."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: dtype


class IntegerInfo(NamedTuple):
    """What an integer dtype can hold."""

    bits: int
    max: int
    min: int
    dtype: dtype


def _dtype_of(x: Any) -> dtype:
    return x.dtype if isinstance(x, Tensor) else x


def finfo(type: dtype | Tensor, /) -> FloatInfo:
    """Return the limits of a floating point or complex dtype, or of a tensor's.

    >>> taeda.array_api.finfo(taeda.complex64).bits
    32
    """
    given = _dtype_of(type)
    real = given.to_real() if given.is_complex else given
    info = taeda.finfo(real)
    return FloatInfo(info.bits, info.eps, info.max, info.min, info.smallest_normal, real)


def iinfo(type: dtype | Tensor, /) -> IntegerInfo:
    """Return the limits of an integer dtype, or of a tensor's."""
    given = _dtype_of(type)
    info = taeda.iinfo(given)
    return IntegerInfo(info.bits, info.max, info.min, given)


def isdtype(dtype: dtype, kind: Any) -> bool:
    """Whether a dtype is of a kind.

    Args:
        dtype: the dtype.
        kind: a dtype; "bool", "signed integer", "unsigned integer", "integral", "real floating",
            "complex floating" or "numeric"; or a tuple of these, any of which will do.

    Raises:
        ValueError: there is no such kind.
        TypeError: ``kind`` is none of these.

    >>> taeda.array_api.isdtype(taeda.int16, ("bool", "integral"))
    True
    """
    if isinstance(kind, tuple):
        return any([isdtype(dtype, k) for k in kind])
    if isinstance(kind, str):
        if kind not in KINDS:
            raise ValueError(f"isdtype(): kind must be one of {sorted(KINDS)}, got {kind!r}")
        return dtype in KINDS[kind]
    if not isinstance(kind, taeda.dtype):
        raise TypeError(f"isdtype(): kind must be a str, dtype or tuple, got {kind!r}")
    return dtype == kind


def result_type(*arrays_and_dtypes: Any) -> dtype:
    """Return the dtype that tensors, dtypes and Python numbers have in common.

    Unlike in ``taeda.result_type``, tensors without dimensions count like all others. A number
    only counts where it is of a higher kind than everything else: a float among integers.

    >>> taeda.array_api.result_type(taeda.tensor(1.0, dtype=taeda.float64), taeda.float32)
    taeda.float64
    """
    dtypes = [_dtype_of(x) for x in arrays_and_dtypes]
    kinds = [d for d in dtypes if isinstance(d, taeda.dtype)]
    if not kinds:
        raise ValueError("result_type(): at least one tensor or dtype is required")
    result = kinds[0]
    for other in kinds[1:]:
        result = taeda.promote_types(result, other)
    sample = taeda.empty(1, dtype=result)
    for number in dtypes:
        if not isinstance(number, taeda.dtype):
            result = taeda.promote_types(result, taeda.result_type(sample, number))
    return result


def can_cast(from_: dtype | Tensor, to: dtype, /) -> bool:
    """Whether the standard's promotion leads from one dtype to the other, without loss.

    >>> taeda.array_api.can_cast(taeda.int8, taeda.int64)
    True
    >>> taeda.array_api.can_cast(taeda.int8, taeda.float64)
    False
    """
    given = _dtype_of(from_)
    families = (KINDS["bool"], KINDS["integral"], _REAL + _COMPLEX)
    related = given == to or any(given in f and to in f for f in families)
    return related and taeda.promote_types(given, to) == to


def astype(x: Tensor, dtype: dtype, /, *, copy: bool = True, device: Any = None) -> Tensor:
    """Return the values in another dtype.

    Args:
        x: the tensor.
        dtype: the dtype.
        copy: return a new tensor even where nothing changes.
        device: where the result shall be; by default where ``x`` is.
    """
    return x.to(x.device if device is None else device, dtype, copy=copy)


def common(*operands: Any) -> tuple[Tensor, ...]:
    """Return tensors, and numbers among them, in their common dtype."""
    dtype = result_type(*operands)
    device = next(x.device for x in operands if isinstance(x, Tensor))
    return tuple(
        x.to(dtype) if isinstance(x, Tensor) else taeda.asarray(x, dtype=dtype, device=device)
        for x in operands
    )
