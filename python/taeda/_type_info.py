"""Limits of the dtypes: ``finfo`` and ``iinfo``."""

from __future__ import annotations

from typing import Any

from taeda import _C

# dtype: (bits, bits of the fraction, largest exponent + 1, decimal digits)
_FLOATS = {
    _C.float16: (16, 10, 16, 0.001),
    _C.bfloat16: (16, 7, 128, 0.01),
    _C.float32: (32, 23, 128, 1e-06),
    _C.float64: (64, 52, 1024, 1e-15),
}
# dtype: (largest, step after 1, smallest normal). These follow no common rule.
_FLOATS8 = {
    _C.float8_e5m2: (57344.0, 0.25, 2.0**-14),
    _C.float8_e4m3fn: (448.0, 0.125, 2.0**-6),
    _C.float8_e5m2fnuz: (57344.0, 0.125, 2.0**-15),
    _C.float8_e4m3fnuz: (240.0, 0.125, 2.0**-7),
    _C.float8_e8m0fnu: (2.0**127, 1.0, 2.0**-127),
}


def _name(dtype: Any) -> str:
    return str(dtype).removeprefix("taeda.")


class _Info:
    """Base class: equality, hashing and pickling by dtype."""

    __slots__ = ()
    dtype: str

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash((type(self), self.dtype))

    def __reduce__(self) -> Any:
        return type(self), (getattr(_C, self.dtype),)


class finfo(_Info):
    """The limits of a floating-point dtype; of its parts, for a complex one.

    Args:
        type: a dtype. Default: the default dtype.

    Attributes are ``bits``, ``eps`` (the step after 1), ``max``, ``min``, ``tiny`` (the smallest
    normal number, also ``smallest_normal``), ``resolution`` and ``dtype`` (its name).

    >>> taeda.finfo(taeda.float32).eps
    1.1920928955078125e-07
    """

    __slots__ = (
        "bits", "dtype", "eps", "max", "min", "resolution", "smallest_normal", "tiny",
    )  # fmt: skip

    def __init__(self, type: Any = None) -> None:
        dtype = _C.get_default_dtype() if type is None else type
        if isinstance(dtype, _C.dtype):
            dtype = dtype.to_real()
        if dtype not in _FLOATS and dtype not in _FLOATS8:
            raise TypeError(
                f"finfo(): argument 'type' must be a floating-point dtype, got {dtype}; "
                "taeda.iinfo knows the integers"
            )
        self.dtype = _name(dtype)
        if dtype in _FLOATS8:
            self.max, self.eps, self.tiny = _FLOATS8[dtype]
            self.bits, self.resolution, self.smallest_normal = 8, 1.0, self.tiny
            self.min = -self.max if dtype.is_signed else self.tiny
            return
        self.bits, fraction, exponent, self.resolution = _FLOATS[dtype]
        self.eps = 2.0**-fraction
        self.max = (2.0 - self.eps) * 2.0 ** (exponent - 1)
        self.min = -self.max
        self.tiny = self.smallest_normal = 2.0 ** (2 - exponent)

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, "
            f"eps={self.eps:g}, smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, "
            f"dtype={self.dtype})"
        )


class iinfo(_Info):
    """The limits of an integer dtype.

    Args:
        type: a dtype.

    Attributes are ``bits``, ``max``, ``min`` and ``dtype`` (its name).

    >>> taeda.iinfo(taeda.int8).max
    127
    """

    __slots__ = ("bits", "dtype", "max", "min")

    def __init__(self, type: Any) -> None:
        if not isinstance(type, _C.dtype) or type.is_floating_point or type.is_complex:
            raise TypeError(
                f"iinfo(): argument 'type' must be an integer dtype, got {type}; "
                "taeda.finfo knows the others"
            )
        if type == _C.bool:
            raise TypeError('"bool" is not supported by taeda.iinfo')
        self.bits = 8 * type.itemsize
        self.dtype = _name(type)
        self.max = 2 ** (self.bits - type.is_signed) - 1
        self.min = -(2 ** (self.bits - 1)) if type.is_signed else 0

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"
