"""Units in the last place: what an error is counted in."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

Array = np.ndarray


class Format(NamedTuple):
    """Digits of a binary floating-point format, and the least and largest exponents of normal numbers."""

    digits: int
    least: int
    largest: int


FORMATS = {
    "float16": Format(11, -14, 15),
    "bfloat16": Format(8, -126, 127),
    "float32": Format(24, -126, 127),
    "float64": Format(53, -1022, 1023),
}
REAL = {"complex64": "float32", "complex128": "float64"}


def format_of(dtype: str) -> Format:
    """The format of a dtype's numbers, or of their two parts."""
    return FORMATS[REAL.get(dtype, dtype)]


def epsilon(dtype: str) -> float:
    """The distance from 1 to the next number."""
    return 2.0 ** (1 - format_of(dtype).digits)


def unit(scale: Array, dtype: str) -> Array:
    """The distance between neighbouring numbers of the format where `scale` is."""
    form = format_of(dtype)
    size = np.abs(np.asarray(scale, np.longdouble))
    exponent = np.frexp(size)[1] - 1
    exponent = np.where(size == 0, form.least, np.clip(exponent, form.least, form.largest))
    return np.ldexp(np.longdouble(1), exponent - (form.digits - 1))


def rounded(x: Array, dtype: str) -> Array:
    """The nearest numbers of the format, as float32 or float64."""
    x = np.asarray(x)
    wide = np.float64 if dtype in ("float64", "complex128") else np.float32
    if dtype == "bfloat16":
        bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
        even = (bits >> np.uint32(16)) & np.uint32(1)
        bits = (bits + np.uint32(0x7FFF) + even) & np.uint32(0xFFFF0000)
        return bits.view(np.float32)
    if dtype == "float16":
        with np.errstate(over="ignore"):  # infinity is a number to try too
            return x.astype(np.float16).astype(np.float32)
    if np.iscomplexobj(x):
        return x.astype(np.complex128 if wide is np.float64 else np.complex64)
    return x.astype(wide)


def _real_errors(value: Array, reference: Array, size: Array, dtype: str) -> Array:
    top = np.ldexp(np.longdouble(1), format_of(dtype).largest + 1)
    found = np.where(np.isinf(value), np.sign(value) * top, value).astype(np.longdouble)
    wanted = np.clip(reference, -top, top)  # what is beyond is rightly infinite
    off = np.abs(found - wanted) / size
    off = np.where(np.isnan(value) & np.isnan(reference), 0, off)
    return np.where(np.isnan(off), np.inf, off).astype(np.float64)


def errors(value: Array, reference: Array, dtype: str, scale: Array | None = None) -> Array:
    """The distance of each value from its reference, in units of the scale (by default the reference).

    A NaN is right where the reference is NaN, and infinitely wrong elsewhere. Infinity stands for
    the first power of 2 that the format lacks. Of complex numbers both parts are compared.
    """
    value, reference = np.asarray(value), np.asarray(reference)
    if value.shape != reference.shape:
        raise ValueError(f"values of shape {value.shape}, references of shape {reference.shape}")
    complex_ = np.iscomplexobj(reference)
    exact = reference.astype(np.clongdouble if complex_ else np.longdouble)
    with np.errstate(invalid="ignore", over="ignore"):
        size = unit(np.abs(exact) if scale is None else scale, dtype)
        size = np.broadcast_to(size, exact.shape)
        if not complex_:
            return _real_errors(value, exact, size, dtype).ravel()
        parts = [(value.real, exact.real), (value.imag, exact.imag)]
        return np.concatenate([_real_errors(v, e, size, dtype).ravel() for v, e in parts])


class Summary(NamedTuple):
    """The largest and the mean of some errors."""

    largest: float
    mean: float


def summary(found: Array) -> Summary:
    return Summary(float(np.max(found)), float(np.mean(found)))
