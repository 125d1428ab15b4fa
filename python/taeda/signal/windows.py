"""Window functions: weights that fade a part of a signal in and out.

Each returns a tensor of shape ``(M,)``. All take the same keywords:

- ``sym``: symmetric, as filters want it (the default); otherwise periodic, the first ``M`` of a
  window of ``M + 1`` points, as spectra want it.
- ``dtype``: float32 or float64; the default dtype if not given. ``device``, ``requires_grad`` and
  ``layout`` (strided alone) are those of any function that makes a tensor.

A window of one point is 1, one of none is empty; ValueError for negative ``M`` or another dtype.

>>> taeda.signal.windows.hann(5)
tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
>>> taeda.signal.windows.bartlett(4, sym=False)
tensor([0.0000, 0.5000, 1.0000, 0.5000])
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import taeda
from taeda import Tensor

__all__ = [
    "bartlett",
    "blackman",
    "cosine",
    "exponential",
    "gaussian",
    "general_cosine",
    "general_hamming",
    "hamming",
    "hann",
    "kaiser",
    "nuttall",
]


def _window(
    name: str,
    M: int,
    sym: bool,
    shape: Callable[[Tensor], Tensor],
    dtype: taeda.dtype | None = None,
    layout: taeda.layout = taeda.strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return ``shape`` of 0, 1, ... M - 1 over the window's last point; computed in float64."""
    if not isinstance(M, int):
        raise TypeError(f"{name}: M must be an int, got {type(M).__name__}")
    if M < 0:
        raise ValueError(f"{name}: M must not be negative, got {M}")
    dtype = taeda.get_default_dtype() if dtype is None else dtype
    if dtype not in (taeda.float32, taeda.float64):
        raise ValueError(f"{name}: dtype must be float32 or float64, got {dtype}")
    if layout is not taeda.strided:
        raise ValueError(f"{name}: layout must be strided, got {layout}")
    if M <= 1:
        return taeda.ones(M, dtype=dtype, device=device, requires_grad=requires_grad)
    last = M - 1 if sym else M
    with taeda.no_grad():
        x = taeda.arange(M, dtype=taeda.float64, device=device)
        window = shape(x / last).to(dtype)
    return window.requires_grad_(requires_grad)


def _from_middle(M: int, sym: bool) -> Callable[[Tensor], Tensor]:
    """Return a function from the place in the window to the distance from its middle, in points."""
    last = M - 1 if sym else M
    return lambda x: x * last - last / 2


def _cosines(a: list[float]) -> Callable[[Tensor], Tensor]:
    def shape(x: Tensor) -> Tensor:
        terms = [(-1) ** k * weight * taeda.cos(2 * math.pi * k * x) for k, weight in enumerate(a)]
        return taeda.stack(terms).sum(0)

    return shape


def general_cosine(M: int, *, a: Iterable[float], sym: bool = True, **options: Any) -> Tensor:
    """Sum cosines: ``a[0] - a[1] cos(2 pi x) + a[2] cos(4 pi x) - ...`` for x from 0 to 1.

    Raises:
        TypeError: ``a`` is no list or tuple.
        ValueError: ``a`` is empty.

    >>> taeda.signal.windows.general_cosine(3, a=[0.5, 0.5])
    tensor([0., 1., 0.])
    """
    if not isinstance(a, (list, tuple)):
        raise TypeError(f"general_cosine: a must be a list or tuple, got {type(a).__name__}")
    if not a:
        raise ValueError("general_cosine: a must not be empty")
    return _window("general_cosine", M, sym, _cosines(list(a)), **options)


def general_hamming(M: int, *, alpha: float = 0.54, sym: bool = True, **options: Any) -> Tensor:
    """Return ``alpha - (1 - alpha) cos(2 pi x)``."""
    return _window("general_hamming", M, sym, _cosines([alpha, 1 - alpha]), **options)


def hamming(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """Return the Hamming window, ``0.54 - 0.46 cos(2 pi x)``."""
    return _window("hamming", M, sym, _cosines([0.54, 0.46]), **options)


def hann(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """Return the Hann window, ``0.5 - 0.5 cos(2 pi x)``."""
    return _window("hann", M, sym, _cosines([0.5, 0.5]), **options)


def blackman(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """Return the Blackman window, ``0.42 - 0.5 cos(2 pi x) + 0.08 cos(4 pi x)``."""
    return _window("blackman", M, sym, _cosines([0.42, 0.5, 0.08]), **options)


def nuttall(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """Return a window of four cosines.

    Nuttall, "Some windows with very good sidelobe behavior", 1981.
    """
    a = [0.3635819, 0.4891775, 0.1365995, 0.0106411]
    return _window("nuttall", M, sym, _cosines(a), **options)


def bartlett(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """Return the Bartlett window, a triangle: ``1 - |2 x - 1|``."""
    return _window("bartlett", M, sym, lambda x: 1 - (2 * x - 1).abs(), **options)


def cosine(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """Return half a period of a sine: ``sin(pi (k + 1/2) / M)`` at point k."""
    points = M if sym else M + 1

    def shape(x: Tensor) -> Tensor:
        return taeda.sin(math.pi / points * (x * (points - 1) + 0.5))

    return _window("cosine", M, sym, shape, **options)


def gaussian(M: int, *, std: float = 1.0, sym: bool = True, **options: Any) -> Tensor:
    """Return ``exp(-(n / std) ** 2 / 2)`` at the distance of n points from the middle.

    Raises:
        ValueError: ``std`` is not positive.
    """
    if std <= 0:
        raise ValueError(f"gaussian: std must be positive, got {std}")
    distance = _from_middle(M, sym)
    return _window(
        "gaussian", M, sym, lambda x: taeda.exp(-((distance(x) / std) ** 2) / 2), **options
    )


def exponential(
    M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, **options: Any
) -> Tensor:
    """Return ``exp(-|n| / tau)`` at the distance of n points from ``center`` (default the middle).

    Raises:
        ValueError: ``tau`` is not positive, or a symmetric window is given a ``center``.
    """
    if tau <= 0:
        raise ValueError(f"exponential: tau must be positive, got {tau}")
    if sym and center is not None:
        raise ValueError("exponential: center must be None for a symmetric window")
    last = M - 1 if sym else M
    middle = last / 2 if center is None else center
    return _window(
        "exponential", M, sym, lambda x: taeda.exp(-(x * last - middle).abs() / tau), **options
    )


def kaiser(M: int, *, beta: float = 12.0, sym: bool = True, **options: Any) -> Tensor:
    """Return the Kaiser window, ``I0(beta sqrt(1 - (2 x - 1) ** 2)) / I0(beta)``.

    Raises:
        ValueError: ``beta`` is negative.
    """
    if beta < 0:
        raise ValueError(f"kaiser: beta must not be negative, got {beta}")
    top = taeda.i0(taeda.tensor(beta, dtype=taeda.float64))

    def shape(x: Tensor) -> Tensor:
        inside = (1 - (2 * x - 1) ** 2).clamp(min=0)
        return taeda.i0(beta * inside.sqrt()) / top

    return _window("kaiser", M, sym, shape, **options)
