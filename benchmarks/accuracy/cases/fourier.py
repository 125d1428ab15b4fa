"""Fourier transforms: the scale is the 2-norm of what is transformed, of each transform.

By Parseval's equation that is the root of the mean square of the results, or of the results times
the root of their number for an inverse transform.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.accuracy.table import Case, add, beside
from benchmarks.accuracy.ulps import Array

REAL = ("float32", "float64")
COMPLEX = ("complex64", "complex128")


def rows(
    title: str,
    make: Callable[..., Array],
    run: Callable[..., Any],
    value: Callable[[Array], Array],
    scale: Callable[[Array], Array],
    dtypes: tuple[str, ...],
) -> None:
    for dtype in dtypes:
        add(
            Case(
                "Fourier transforms",
                title,
                dtype,
                lambda rng, n: (make(rng),),
                run,
                beside(dtype, lambda x: (value(x), scale(x)), scaled=True),
            )
        )


def real(*shape: int) -> Callable[..., Array]:
    return lambda rng: rng.normal(size=shape)


def complex_(*shape: int) -> Callable[..., Array]:
    return lambda rng: rng.normal(size=shape) + 1j * rng.normal(size=shape)


def length(x: Array) -> Array:
    return np.sqrt((np.abs(x) ** 2).sum(-1, keepdims=True))


def wide(x: Array) -> Array:
    return x.astype(np.clongdouble if np.iscomplexobj(x) else np.longdouble)


for size, kind in ((1024, ""), (1000, ""), (1009, ", a prime"), (1 << 15, "")):
    title = f"{size:,}{kind}"
    batch = 1 if size > 10000 else 8
    rows(
        f"fft of {title}",
        complex_(batch, size),
        lambda fw, x: fw.fft.fft(x),
        lambda x: np.fft.fft(wide(x)),
        length,
        COMPLEX,
    )
    rows(
        f"rfft of {title}",
        real(batch, size),
        lambda fw, x: fw.fft.rfft(x),
        lambda x: np.fft.rfft(wide(x)),
        length,
        REAL,
    )
rows(
    "ifft of 1,024",
    complex_(8, 1024),
    lambda fw, x: fw.fft.ifft(x),
    lambda x: np.fft.ifft(wide(x)),
    lambda x: length(x) / 1024,
    COMPLEX,
)


def back(x: Array) -> Array:
    ends = wide(x)
    ends[..., 0] = ends[..., 0].real  # which irfft does not read the imaginary parts of
    ends[..., -1] = ends[..., -1].real
    return np.fft.irfft(ends)


rows(
    "irfft of 1,024",
    complex_(8, 513),
    lambda fw, x: fw.fft.irfft(x),
    back,
    lambda x: np.sqrt(2) * length(x) / 1024,
    COMPLEX,
)
rows(
    "fft2 of 60 x 48",
    complex_(3, 60, 48),
    lambda fw, x: fw.fft.fft2(x),
    lambda x: np.fft.fft2(wide(x)),
    lambda x: np.sqrt((np.abs(x) ** 2).sum((-2, -1), keepdims=True)),
    COMPLEX,
)
