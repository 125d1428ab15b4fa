"""Functions of single elements that the C library has in long double, and what is made of them."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from benchmarks.accuracy.inputs import (
    Part,
    around,
    between,
    every_exponent,
    magnitudes,
    mixed,
    multiples,
)
from benchmarks.accuracy.table import Case, add, beside

REAL = ("float32", "float64")
HALVES = ("bfloat16", "float16")
COMPLEX = ("complex64", "complex128")
PI = np.pi


class Range(NamedTuple):
    """Arguments between which exp is neither 0 nor infinite."""

    dtype: str
    low: float
    high: float


RANGES = {
    "float32": Range("float32", -104, 89),
    "bfloat16": Range("bfloat16", -93, 89),
    "float16": Range("float16", -18, 11.2),
    "float64": Range("float64", -746, 710),
}


def named(path: str) -> Callable[..., Any]:
    return lambda framework, *args: attrgetter(path)(framework)(*args)


def functional(name: str, **options: Any) -> Callable[..., Any]:
    return lambda framework, *args: getattr(framework.nn.functional, name)(*args, **options)


def parts(*made: Part) -> Callable[[np.random.Generator, int], tuple]:
    return lambda rng, n: tuple(part(rng, n) for part in made)


def row(
    title: str,
    reference: Callable[..., Any],
    inputs: Callable[[Range], tuple[Part, ...]],
    run: Callable[..., Any] | None = None,
    *,
    dtypes: tuple[str, ...] = REAL,
    family: str = "pointwise",
    scaled: bool = False,
    points: int = 20_000,
) -> None:
    for dtype in dtypes:
        add(
            Case(
                family,
                title,
                dtype,
                parts(*inputs(RANGES[dtype])),
                run or named(title),
                beside(dtype, reference, scaled),
                points,
            )
        )


ALL = (*REAL, *HALVES)

# ---- arguments


def exponents(d: Range) -> tuple[Part]:
    """Where exp has a value, small numbers too."""
    return (mixed(between(d.low, d.high), between(-2, 2), magnitudes(-40, 3)),)


def line(d: Range) -> tuple[Part]:
    return (mixed(between(-12, 12), every_exponent(d.dtype), between(d.low, d.high)),)


def positive(d: Range) -> tuple[Part]:
    return (mixed(every_exponent(d.dtype, sign=1), around(1.0, high=-2)),)


def angles(d: Range) -> tuple[Part]:
    top = 15.0 if d.dtype == "float16" else 100.0
    return (mixed(between(-7, 7), multiples(PI / 2, 4000), magnitudes(-40, top)),)


def unit_interval(d: Range) -> tuple[Part]:
    near = mixed(around(1.0, high=-2), around(-1.0, high=-2))
    return (lambda rng, n: np.clip(mixed(between(-1, 1), near, magnitudes(-40, 0))(rng, n), -1, 1),)


def probabilities(d: Range) -> tuple[Part]:
    some = mixed(
        between(0, 1), around(0.5, high=-2), magnitudes(-60, -1, sign=1), around(1.0, high=-2)
    )
    return (lambda rng, n: np.clip(some(rng, n), 1e-30, 1 - 2.0**-24),)


def everything(d: Range) -> tuple[Part]:
    return (every_exponent(d.dtype),)


def two(d: Range) -> tuple[Part, Part]:
    half = every_exponent("float16") if d.dtype == "float16" else magnitudes(-30, 30)
    return (mixed(half, between(-2, 2)), mixed(half, between(-2, 2)))


# ---- exponentials and logarithms

row("exp", np.exp, exponents, dtypes=ALL)
row("exp2", np.exp2, lambda d: (mixed(between(d.low * 1.44, d.high * 1.44), magnitudes(-40, 3)),))
row("expm1", np.expm1, exponents)
row("log", np.log, positive, dtypes=ALL)
row("log2", np.log2, positive)
row("log10", np.log10, positive)
row(
    "log1p",
    np.log1p,
    lambda d: (mixed(magnitudes(-60, 60, sign=1), between(-1, 1), magnitudes(-60, -2)),),
)


def log_of_sum(a: Any, b: Any) -> Any:
    return np.maximum(a, b) + np.log1p(np.exp(-np.abs(a - b)))


def log2_of_sum(a: Any, b: Any) -> Any:
    return np.maximum(a, b) + np.log1p(np.exp2(-np.abs(a - b))) / np.log(np.longdouble(2))


def with_largest(f: Callable[..., Any]) -> Callable[..., Any]:
    """The value, and the largest of it and the arguments as the scale."""

    def both(*args: Any) -> Any:
        value = f(*args)
        return value, np.maximum.reduce([np.abs(value), *(np.abs(a) for a in args)])

    return both


def pair(low: float, high: float) -> Callable[[Range], tuple[Part, Part]]:
    return lambda d: (between(low, high), between(low, high))


row("logaddexp", with_largest(log_of_sum), pair(-40, 40), scaled=True)
row("logaddexp2", with_largest(log2_of_sum), pair(-40, 40), scaled=True)
row("xlogy", lambda a, b: a * np.log(b), lambda d: (between(-3, 3), *positive(d)))
row(
    "special.xlog1py",
    lambda a, b: a * np.log1p(b),
    lambda d: (between(-3, 3), mixed(between(-1, 3), magnitudes(-40, 3, sign=1))),
)
row("special.entr", lambda x: -x * np.log(x), lambda d: (magnitudes(-100, 60, sign=1),))

# ---- powers and roots

row("sqrt", np.sqrt, lambda d: (every_exponent(d.dtype, sign=1),), dtypes=ALL)
row("rsqrt", lambda x: 1 / np.sqrt(x), lambda d: (every_exponent(d.dtype, sign=1),))
row("reciprocal", lambda x: 1 / x, everything)
row("square", np.square, everything)
row(
    "pow",
    np.power,
    lambda d: (mixed(magnitudes(-30, 30, sign=1), around(1.0, high=-2)), between(-4, 4)),
    dtypes=ALL,
)
row("pow by 3", lambda x: x * x * x, lambda d: (magnitudes(-40, 40),), lambda fw, x: x**3)
row("pow by 0.5", np.sqrt, lambda d: (every_exponent(d.dtype, sign=1),), lambda fw, x: x**0.5)
row("pow by -2", lambda x: 1 / (x * x), lambda d: (magnitudes(-60, 60),), lambda fw, x: x**-2)
row("hypot", np.hypot, lambda d: (every_exponent(d.dtype), every_exponent(d.dtype)))

# ---- arithmetic

row("add", np.add, two, dtypes=ALL)
row("sub", np.subtract, two)
row("mul", np.multiply, two, dtypes=ALL)
row("div", np.divide, two, dtypes=ALL)
row("fmod", np.fmod, lambda d: (magnitudes(-10, 20), magnitudes(-5, 5)))
row("remainder", np.remainder, lambda d: (magnitudes(-10, 10, sign=1), magnitudes(-5, 5, sign=1)))


def terms(value: Callable[..., Any], *of: Callable[..., Any]) -> Callable[..., Any]:
    """A sum, and the sum of its terms' magnitudes as the scale."""
    return lambda *args: (value(*args), sum(np.abs(term(*args)) for term in of))


row(
    "addcmul",
    terms(lambda a, b, c: a + b * c, lambda a, b, c: a, lambda a, b, c: b * c),
    lambda d: (between(-2, 2),) * 3,
    scaled=True,
)
row(
    "addcdiv",
    terms(lambda a, b, c: a + b / c, lambda a, b, c: a, lambda a, b, c: b / c),
    lambda d: (between(-2, 2), between(-2, 2), magnitudes(-3, 3)),
    scaled=True,
)
row(
    "lerp",
    terms(lambda a, b, w: a + w * (b - a), lambda a, b, w: a, lambda a, b, w: b),
    lambda d: (between(-2, 2), between(-2, 2), between(0, 1)),
    scaled=True,
)
row(
    "deg2rad",
    lambda x: x * (np.longdouble(PI) + np.longdouble(1.2246467991473532e-16)) / 180,
    everything,
)
row(
    "rad2deg",
    lambda x: x * (180 / (np.longdouble(PI) + np.longdouble(1.2246467991473532e-16))),
    lambda d: (magnitudes(-100, 100),),
)

# ---- trigonometry

row("sin", np.sin, angles, dtypes=ALL)
row("cos", np.cos, angles, dtypes=ALL)
row("tan", np.tan, angles)
row("asin", np.arcsin, unit_interval)
row("acos", np.arccos, unit_interval)
row("atan", np.arctan, line)
row("atan2", np.arctan2, lambda d: (magnitudes(-30, 30), magnitudes(-30, 30)))


def sinc(x: Any) -> Any:
    """The argument is reduced first, which is exact."""
    wide = np.asarray(x, np.longdouble)
    pi = np.longdouble(PI) + np.longdouble(1.2246467991473532e-16)
    near = np.rint(wide)
    sign = np.where(np.fmod(near, 2) == 0, 1, -1)
    return np.where(
        wide == 0, 1, sign * np.sin(pi * (wide - near)) / (pi * np.where(wide == 0, 1, wide))
    )


row(
    "sinc",
    lambda x: (sinc(x), np.where(np.abs(x) < 0.5, sinc(x), 1)),
    lambda d: (mixed(between(-6, 6), magnitudes(-40, 10), around(1.0, 2.0, -3.0, high=-2)),),
    scaled=True,
)

# ---- hyperbolic

row("sinh", np.sinh, exponents)
row("cosh", np.cosh, exponents)
row("tanh", np.tanh, line, dtypes=ALL)
row("asinh", np.arcsinh, lambda d: (magnitudes(-60, 100),))
row("acosh", np.arccosh, lambda d: (lambda rng, n: 1 + np.exp2(rng.uniform(-20, 60, n)),))
row("atanh", np.arctanh, unit_interval)

# ---- activations


def logistic(x: Any) -> Any:
    return 1 / (1 + np.exp(-np.asarray(x, np.longdouble)))


def logit(x: Any) -> Any:
    """The scale is of log(x) and log(1 - x)."""
    x = np.asarray(x, np.longdouble)
    large = np.log1p((2 * x - 1) / (1 - x))  # right near 1/2
    value = np.where(x < 0.25, np.log(x) - np.log1p(-x), large)
    return value, np.abs(np.log(x)) + np.abs(np.log1p(-x))


def log1p_exp(x: Any) -> Any:
    x = np.asarray(x, np.longdouble)
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def mish(x: Any) -> Any:
    """tanh(log(1 + e)) is (e^2 + 2 e) / (e^2 + 2 e + 2)."""
    x = np.asarray(x, np.longdouble)
    e = np.exp(np.minimum(x, 1000))
    both = e * (e + 2)
    return x * both / (both + 2)


def gelu_tanh(x: Any) -> Any:
    x = np.asarray(x, np.longdouble)
    return x * logistic(
        2
        * np.sqrt(2 / (np.longdouble(PI) + 1.2246467991473532e-16))
        * (x + np.longdouble(0.044715) * x**3)
    )


def activation(d: Range) -> tuple[Part]:
    return (
        mixed(
            between(-12, 12),
            magnitudes(-40, 3),
            between(d.low + (38 if d.dtype == "float64" else 18), -d.low),
        ),
    )


def tail(d: Range) -> tuple[Part]:
    """Where exp gives less than the least normal number, or nothing."""
    return (between(d.low, d.low + (37 if d.dtype == "float64" else 16)),)


row("sigmoid", logistic, activation, dtypes=ALL)
row("logit", logit, probabilities, scaled=True)
row(
    "softplus",
    lambda x: np.where(x > 20, x, log1p_exp(x)),
    activation,
    functional("softplus"),
    dtypes=ALL,
)
row("logsigmoid", lambda x: -log1p_exp(-x), activation, functional("logsigmoid"))
row("silu", lambda x: x * logistic(x), activation, functional("silu"), dtypes=ALL)
row("mish", mish, activation, functional("mish"))
row(
    "gelu (tanh)",
    gelu_tanh,
    lambda d: (mixed(between(-8, 12), magnitudes(-40, 3)),),
    functional("gelu", approximate="tanh"),
    dtypes=ALL,
)
row("elu", lambda x: np.where(x > 0, x, np.expm1(x)), activation, functional("elu"))
row(
    "selu",
    lambda x: SELU[1] * np.where(x > 0, x, SELU[0] * np.expm1(x)),
    activation,
    functional("selu"),
)
row("celu", lambda x: np.where(x > 0, x, np.expm1(x)), activation, functional("celu"))
row("hardswish", lambda x: x * np.clip(x + 3, 0, 6) / 6, activation, functional("hardswish"))
row("hardsigmoid", lambda x: np.clip(x + 3, 0, 6) / 6, activation, functional("hardsigmoid"))
row("softsign", lambda x: x / (1 + np.abs(x)), activation, functional("softsign"))
row(
    "tanhshrink",
    terms(lambda x: x - np.tanh(x), lambda x: x),
    activation,
    functional("tanhshrink"),
    scaled=True,
)

SELU = (
    np.longdouble("1.6732632423543772848170429916717"),
    np.longdouble("1.0507009873554804934193349852946"),
)


def wide_of(x: Any) -> Any:
    return np.asarray(x, np.longdouble)


# ---- results below the least normal number, in units of the least number

BELOW = "below the normal numbers"


def subnormal(d: Range) -> tuple[Part]:
    return (magnitudes(*((-1074, -1022) if d.dtype == "float64" else (-149, -126)), sign=1),)


def small(d: Range) -> Part:
    return magnitudes(*((-540, -490) if d.dtype == "float64" else (-75, -60)))


row("exp of large negative numbers", np.exp, tail, named("exp"), family=BELOW)
row("sigmoid of large negative numbers", logistic, tail, named("sigmoid"), family=BELOW)
row(
    "silu of large negative numbers",
    lambda x: x * logistic(x),
    tail,
    functional("silu"),
    family=BELOW,
)
row("mish of large negative numbers", mish, tail, functional("mish"), family=BELOW)
row("softplus of large negative numbers", log1p_exp, tail, functional("softplus"), family=BELOW)
row("mul of small numbers", np.multiply, lambda d: (small(d), small(d)), named("mul"), family=BELOW)
row("sqrt of subnormal numbers", np.sqrt, subnormal, named("sqrt"), family=BELOW)
row("log of subnormal numbers", np.log, subnormal, named("log"), family=BELOW)
row("tanh of subnormal numbers", np.tanh, subnormal, named("tanh"), family=BELOW)

# ---- gradients


def gradient(f: Callable[..., Any]) -> Callable[..., Any]:
    """The gradient of the sum of f's results."""

    def run(framework: Any, *args: Any) -> Any:
        leaf = args[0].clone().requires_grad_()
        f(framework, leaf, *args[1:]).sum().backward()
        return leaf.grad

    return run


def silu_derivative(x: Any) -> Any:
    s = logistic(x)
    return s * (1 + x * logistic(-x)), s * (1 + np.abs(x) * logistic(-x))


row(
    "tanh, gradient",
    terms(lambda x: 1 / np.cosh(wide_of(x)) ** 2, lambda x: 1, lambda x: np.tanh(x) ** 2),
    lambda d: (between(-8, 8),),
    gradient(named("tanh")),
    scaled=True,
)
row(
    "sigmoid, gradient",
    lambda x: (logistic(x) * logistic(-x), logistic(x)),
    lambda d: (between(-15, 15),),
    gradient(named("sigmoid")),
    scaled=True,
)
row(
    "silu, gradient",
    silu_derivative,
    lambda d: (between(-20, 20),),
    gradient(functional("silu")),
    scaled=True,
)
row("softplus, gradient", logistic, lambda d: (between(-40, 19),), gradient(functional("softplus")))
row(
    "sqrt, gradient",
    lambda x: 0.5 / np.sqrt(x),
    lambda d: (magnitudes(-60, 60, sign=1),),
    gradient(named("sqrt")),
)
row(
    "log1p, gradient",
    lambda x: 1 / (1 + x),
    lambda d: (magnitudes(-30, 30, sign=1),),
    gradient(named("log1p")),
)
row(
    "atan, gradient",
    lambda x: 1 / (1 + x * x),
    lambda d: (magnitudes(-20, 20),),
    gradient(named("atan")),
)
