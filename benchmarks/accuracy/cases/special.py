"""Special functions, beside mpmath's values in 50 digits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
from mpmath import mp, mpf

from benchmarks.accuracy.cases.pointwise import (
    HALVES,
    REAL,
    Range,
    functional,
    gradient,
    row,
)
from benchmarks.accuracy.inputs import (
    Part,
    around,
    between,
    magnitudes,
    mixed,
    whole,
)
from benchmarks.accuracy.ulps import Array

DIGITS = 50
POINTS = 1000
SLOW = 300  # points of functions that mpmath takes long for


def exactly(f: Callable[..., Any]) -> Callable[..., Array]:
    """F of mpmath's numbers, on arrays."""

    def one(*args: float) -> np.longdouble:
        value = f(*(mpf(float(a)) for a in args))
        if not isinstance(value, mpf):
            value = mpf(value.real) if isinstance(value, mpmath.mpc) else mpf(value)
        high = float(value)
        low = 0.0 if np.isinf(high) else float(value - mpf(high))
        if abs(high) < 1e-290 or np.isinf(high):  # the rest would be below the smallest double
            return np.longdouble(mpmath.nstr(value, 25))
        return np.longdouble(high) + np.longdouble(low)

    def on_arrays(*args: Array) -> Array:
        flat = [a.ravel() for a in np.broadcast_arrays(*args)]
        with mp.workdps(DIGITS):
            return np.array([one(*each) for each in zip(*flat, strict=True)], np.longdouble)

    return on_arrays


def special(
    title: str,
    f: Callable[..., Any],
    inputs: Callable[[Range], tuple[Part, ...]],
    run: Callable[..., Any] | None = None,
    dtypes: tuple[str, ...] = REAL,
    scale: Callable[..., Any] | None = None,
    points: int = POINTS,
) -> None:
    value = exactly(f)
    reference = (
        (lambda *x: (value(*x), np.maximum(np.abs(value(*x)), scale(*x)))) if scale else value
    )
    path = title if title in TOP_LEVEL else f"special.{title}"
    call = run or (lambda fw, *x: _reach(fw, path)(*x))
    row(
        title,
        reference,
        inputs,
        call,
        dtypes=dtypes,
        family="special",
        scaled=scale is not None,
        points=points,
    )


TOP_LEVEL = {"erf", "erfc", "erfinv", "lgamma", "digamma"}


def _reach(framework: Any, path: str) -> Any:
    for name in path.split("."):
        framework = getattr(framework, name)
    return framework


# ---- error functions


def gelu(x: mpf) -> mpf:
    return x * mpmath.erfc(-x / mpmath.sqrt(2)) / 2


def gelu_derivative(x: mpf) -> mpf:
    return mpmath.erfc(-x / mpmath.sqrt(2)) / 2 + x * mpmath.npdf(x)


def bell(d: Range) -> tuple[Part]:
    return (mixed(between(-4, 4), magnitudes(-40, 3)),)


special("erf", mpmath.erf, bell, dtypes=(*REAL, *HALVES))
special("erfc", mpmath.erfc, lambda d: (between(-4, 26 if d.dtype == "float64" else 10),))
special(
    "erfcx",
    lambda x: mpmath.exp(x * x) * mpmath.erfc(x),
    lambda d: (mixed(between(-5, 20), magnitudes(-20, 40, sign=1)),),
)
special(
    "erfinv",
    mpmath.erfinv,
    lambda d: (
        mixed(
            between(-1, 1), magnitudes(-30, -1), lambda rng, n: 1 - np.exp2(rng.uniform(-22, -2, n))
        ),
    ),
)
special(
    "ndtr",
    lambda x: mpmath.erfc(-x / mpmath.sqrt(2)) / 2,
    lambda d: (mixed(between(-12, 6), magnitudes(-20, 2)),),
)
special(
    "log_ndtr",
    lambda x: mpmath.log(mpmath.erfc(-x / mpmath.sqrt(2)) / 2),
    lambda d: (mixed(between(-30, 8), magnitudes(-20, 5)),),
)
special(
    "ndtri",
    lambda p: mpmath.sqrt(2) * mpmath.erfinv(2 * p - 1),
    lambda d: (mixed(between(0.001, 0.999), magnitudes(-80, -1, sign=1), around(0.5, high=-3)),),
)
special(
    "gelu",
    gelu,
    lambda d: (mixed(between(-12, 12), magnitudes(-40, 4)),),
    functional("gelu"),
    dtypes=(*REAL, *HALVES),
    scale=lambda x: np.abs(x) / 2,
)
special(
    "gelu, gradient",
    gelu_derivative,
    lambda d: (between(-8, 8),),
    gradient(functional("gelu")),
    scale=lambda x: 0.5 + np.abs(x) * np.exp(-x * x / 2) / 2.5,
)

# ---- the gamma function and its relatives


def log_gamma(x: mpf) -> mpf:
    return mpmath.loggamma(x).real if x > 0 else mpmath.log(abs(mpmath.gamma(x)))


special(
    "lgamma",
    log_gamma,
    lambda d: (mixed(between(-20, 40), magnitudes(-40, 40, sign=1), around(1.0, 2.0, high=-2)),),
)
special(
    "digamma",
    mpmath.digamma,
    lambda d: (
        mixed(
            between(-10, 20),
            magnitudes(-20, 40, sign=1),
            around(1.4616321449683622, high=-2),
        ),
    ),
    scale=lambda x: np.where(x > 0, 1, 1 + np.pi / np.sin(np.pi * x) ** 2 * np.abs(x)),
)
special(
    "polygamma of order 1",
    lambda x: mpmath.psi(1, x),
    lambda d: (mixed(between(-10, 20), magnitudes(-20, 20, sign=1)),),
    lambda fw, x: fw.polygamma(1, x),
)
special(
    "polygamma of order 4",
    lambda x: mpmath.psi(4, x),
    lambda d: (magnitudes(-5, 5, sign=1),),
    lambda fw, x: fw.polygamma(4, x),
)
special(
    "multigammaln of order 3",
    lambda a: sum(
        (mpmath.loggamma(a - mpf(j) / 2) for j in range(3)), mpf(3) / 2 * mpmath.log(mpmath.pi)
    ),
    lambda d: (between(2, 40),),
    lambda fw, x: fw.special.multigammaln(x, 3),
    scale=lambda x: x,
)
special(
    "gammainc",
    lambda a, x: mpmath.gammainc(a, 0, x, regularized=True),
    lambda d: (magnitudes(-2, 6, sign=1), magnitudes(-2, 6, sign=1)),
)
special(
    "gammaincc",
    lambda a, x: mpmath.gammainc(a, x, regularized=True),
    lambda d: (magnitudes(-2, 6, sign=1), magnitudes(-2, 6, sign=1)),
)
special("zeta", mpmath.zeta, lambda d: (between(1.1, 20), magnitudes(-2, 5, sign=1)))

# ---- Bessel functions


def up_to(high: float) -> Callable[[Range], tuple[Part]]:
    return lambda d: (mixed(between(-high, high), magnitudes(-20, 3)),)


def above(high: float) -> Callable[[Range], tuple[Part]]:
    return lambda d: (mixed(between(0.01, high), magnitudes(-20, 3, sign=1)),)


ENVELOPE = 0.8  # of an oscillating function: this over the root of the argument


def wave(x: Array) -> Array:
    return ENVELOPE / np.sqrt(np.maximum(np.abs(x), 1))


special("i0", lambda x: mpmath.besseli(0, x), up_to(80))
special("i0e", lambda x: mpmath.exp(-abs(x)) * mpmath.besseli(0, x), up_to(80))
special("i1", lambda x: mpmath.besseli(1, x), up_to(80))
special("i1e", lambda x: mpmath.exp(-abs(x)) * mpmath.besseli(1, x), up_to(80))
special("modified_bessel_i0", lambda x: mpmath.besseli(0, x), up_to(80))
special("modified_bessel_i1", lambda x: mpmath.besseli(1, x), up_to(80))
special("modified_bessel_k0", lambda x: mpmath.besselk(0, x), above(80), points=SLOW)
special("modified_bessel_k1", lambda x: mpmath.besselk(1, x), above(80), points=SLOW)
special(
    "scaled_modified_bessel_k0",
    lambda x: mpmath.exp(x) * mpmath.besselk(0, x),
    above(80),
    points=SLOW,
)
special(
    "scaled_modified_bessel_k1",
    lambda x: mpmath.exp(x) * mpmath.besselk(1, x),
    above(80),
    points=SLOW,
)
special("bessel_j0", lambda x: mpmath.besselj(0, x), up_to(100), scale=wave)
special(
    "bessel_j1",
    lambda x: mpmath.besselj(1, x),
    up_to(100),
    scale=lambda x: wave(x) * np.minimum(np.abs(x), 1),
)
special("bessel_y0", lambda x: mpmath.bessely(0, x), above(100), scale=wave)
special("bessel_y1", lambda x: mpmath.bessely(1, x), above(100), scale=wave)
special(
    "spherical_bessel_j0",
    lambda x: mpmath.sin(x) / x,
    up_to(100),
    scale=lambda x: 1 / np.maximum(np.abs(x), 1),
)
special(
    "airy_ai",
    mpmath.airyai,
    lambda d: (between(-20, 20),),
    scale=lambda x: np.where(x < 0, 0.5 / np.maximum(np.abs(x), 1) ** 0.25, 0),
)

# ---- orthogonal polynomials of degree up to 12; the scale is at least 1, what they oscillate between

DEGREES = whole(0, 12)


def degree(f: Callable[[int, mpf], mpf]) -> Callable[[mpf, mpf], mpf]:
    return lambda x, n: f(int(n), x)


def third_kind(n: int, x: mpf) -> mpf:
    return mpmath.cos((n + mpf(1) / 2) * mpmath.acos(x)) / mpmath.cos(mpmath.acos(x) / 2)


def fourth_kind(n: int, x: mpf) -> mpf:
    return mpmath.sin((n + mpf(1) / 2) * mpmath.acos(x)) / mpmath.sin(mpmath.acos(x) / 2)


def polynomial(
    name: str, f: Callable[[int, mpf], mpf], low: float, high: float, size: Callable[..., Any]
) -> None:
    special(f"{name}", degree(f), lambda d: (between(low, high), DEGREES), scale=size)


polynomial("chebyshev_polynomial_t", mpmath.chebyt, -1, 1, lambda x, n: np.ones_like(x))
polynomial("chebyshev_polynomial_u", mpmath.chebyu, -1, 1, lambda x, n: n + 1)
polynomial("chebyshev_polynomial_v", third_kind, -0.99, 1, lambda x, n: 2 * n + 1)
polynomial(
    "shifted_chebyshev_polynomial_t",
    lambda n, x: mpmath.chebyt(n, 2 * x - 1),
    0,
    1,
    lambda x, n: np.ones_like(x),
)
polynomial("chebyshev_polynomial_w", fourth_kind, -1, 0.99, lambda x, n: 2 * n + 1)
for letter, kind, low, high in (
    ("u", mpmath.chebyu, 0, 1),
    ("v", third_kind, 0.005, 1),
    ("w", fourth_kind, 0, 0.995),
):
    polynomial(
        f"shifted_chebyshev_polynomial_{letter}",
        lambda n, x, kind=kind: kind(n, 2 * x - 1),
        low,
        high,
        lambda x, n: 2 * n + 1,
    )
polynomial("legendre_polynomial_p", mpmath.legendre, -1, 1, lambda x, n: np.ones_like(x))
polynomial(
    "laguerre_polynomial_l",
    lambda n, x: mpmath.laguerre(n, 0, x),
    0,
    10,
    lambda x, n: np.exp(x / 2),
)
polynomial(
    "hermite_polynomial_h",
    mpmath.hermite,
    -3,
    3,
    lambda x, n: (2 * np.abs(x) + np.sqrt(2 * n) + 1) ** n / 10,
)
polynomial(
    "hermite_polynomial_he",
    lambda n, x: mpf(2) ** (-mpf(n) / 2) * mpmath.hermite(n, x / mpmath.sqrt(2)),
    -3,
    3,
    lambda x, n: (np.abs(x) + np.sqrt(n) + 1) ** n / 10,
)
