"""float64 functions beside NumPy's long double over all magnitudes, and at their edges."""

from __future__ import annotations

import math

import numpy as np
import pytest

import taeda

if np.finfo(np.longdouble).nmant < 63:
    pytest.skip("long double has no more digits than float64", allow_module_level=True)

rng = np.random.default_rng(5)


def spread(low, high, n=40_000):
    """Numbers of either sign between 2^low and 2^high, evenly over the exponents."""
    return np.exp2(rng.uniform(low, high, n)) * rng.choice([-1.0, 1.0], n)


UNIT = np.concatenate([rng.uniform(-1, 1, 40_000), spread(-60, 0), 1 - np.abs(spread(-50, -2))])
POSITIVE = np.abs(np.concatenate([spread(-1074, 1024), spread(-2, 2), 1 + spread(-50, -3)]))
ALL = spread(-1074, 1024)

# name: (NumPy's name, the arguments, the most units in the last place that it may be off).
UNARY = {
    "exp2": ("exp2", np.concatenate([rng.uniform(-1074, 1024, 60_000), spread(-60, 3)]), 1.5),
    "log2": ("log2", POSITIVE, 2),
    "log10": ("log10", POSITIVE, 2),
    "asin": ("arcsin", UNIT, 2.7),
    "acos": ("arccos", UNIT, 2),
    "atan": ("arctan", np.concatenate([ALL, spread(-4, 4)]), 2.4),
    "atanh": ("arctanh", UNIT, 3),
    "sinh": ("sinh", np.concatenate([rng.uniform(-710.4, 710.4, 40_000), spread(-60, 4)]), 2.5),
    "cosh": ("cosh", np.concatenate([rng.uniform(-710.4, 710.4, 40_000), spread(-60, 4)]), 2.5),
    "tan": ("tan", np.concatenate([rng.uniform(-1e6, 1e6, 40_000), spread(-60, 4)]), 3.5),
}


def units_off(got, want):
    with np.errstate(all="ignore"):
        unit = np.spacing(np.abs(want.astype(np.float64)))
    finite = np.isfinite(unit)
    assert np.array_equal(np.isfinite(got), finite)
    return np.abs(got[finite] - want[finite]) / unit[finite]


@pytest.mark.parametrize("name", UNARY)
def test_unary(name):
    numpy_name, x, most = UNARY[name]
    with np.errstate(all="ignore"):
        want = getattr(np, numpy_name)(x.astype(np.longdouble))
    assert units_off(getattr(taeda, name)(taeda.tensor(x)).numpy(), want).max() <= most


def test_error_function_and_its_inverse():
    special = pytest.importorskip("scipy.special")
    draw = np.random.default_rng(6)
    small = np.exp2(draw.uniform(-1074, 0, 40_000)) * draw.choice([-1.0, 1.0], 40_000)
    x = np.concatenate([draw.uniform(-6.5, 6.5, 40_000), 8 * small])
    want = np.array([math.erf(value) for value in x])
    assert units_off(taeda.erf(taeda.tensor(x)).numpy(), want).max() <= 2.1
    y = np.concatenate([draw.uniform(-1, 1, 40_000), small, [0.84, 0.5]])
    # SciPy's own values are up to 3 units off.
    assert units_off(taeda.erfinv(taeda.tensor(y)).numpy(), special.erfinv(y)).max() <= 6
    left = np.exp2(-draw.integers(1, 54, 999).astype(np.float64))  # of 1, without rounding
    got = taeda.erfinv(taeda.tensor(1 - left)).numpy()
    assert units_off(got, special.erfcinv(left)).max() <= 6
    edges = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 1.5, 5e-324]
    for name, want in (
        ("erf", [np.nan, 1, -1, 0.0, -0.0, math.erf(1), -math.erf(1), math.erf(1.5), 5e-324]),
        ("erfinv", [np.nan, np.nan, np.nan, 0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324]),
    ):
        got = getattr(taeda, name)(taeda.tensor(edges, dtype=taeda.float64)).numpy()
        np.testing.assert_allclose(got, want, rtol=2e-16)
        assert np.signbit(got[4]) and not np.signbit(got[3])


PAIRS = {
    "wide": (spread(-1070, 1023), spread(-1070, 1023)),
    "near": (spread(-3, 3), spread(-3, 3)),
    "large": (spread(1000, 1024), spread(1000, 1024)),
    "small": (spread(-1074, -1000), spread(-1074, -1000)),
}


@pytest.mark.parametrize("kind", PAIRS)
def test_atan2_and_hypot(kind):
    x, y = PAIRS[kind]
    wide = x.astype(np.longdouble), y.astype(np.longdouble)
    for name, numpy_name in (("atan2", "arctan2"), ("hypot", "hypot")):
        with np.errstate(all="ignore"):
            want = getattr(np, numpy_name)(*wide)
        got = getattr(taeda, name)(taeda.tensor(x), taeda.tensor(y)).numpy()
        assert units_off(got, want).max() <= 2.4


def test_powers():
    x = np.concatenate([np.abs(spread(-1074, 1024)), np.abs(spread(-3, 3)), spread(-8, 8)])
    y = np.concatenate(
        [spread(-8, 1, 40_000), spread(-2, 8, 40_000), rng.integers(-90, 90, 40_000)]
    )
    with np.errstate(all="ignore"):
        want = np.power(x.astype(np.longdouble), y.astype(np.longdouble))
    normal = np.abs(want) > 1e-307
    got = taeda.pow(taeda.tensor(x), taeda.tensor(y)).numpy()
    assert units_off(got[normal], want[normal]).max() <= 1.5
    assert np.abs(got - want)[~normal].max() <= 5e-324


def test_remainders_are_exact():
    x, y = spread(-40, 40, 100_000), spread(-40, 40, 100_000)
    x[:1000] = np.round(y[:1000] * 7)
    x[1000:2000] = y[1000:2000] * 3
    x[2000:3000] = np.nextafter(y[2000:3000] * 5, 0)
    a, b = taeda.tensor(x), taeda.tensor(y)
    assert np.array_equal(taeda.fmod(a, b).numpy(), np.fmod(x, y))
    assert np.array_equal(taeda.remainder(a, b).numpy(), np.remainder(x, y))
    assert np.array_equal(taeda.floor_divide(a, b).numpy(), np.floor_divide(x, y))


INF, NAN, LEAST = math.inf, math.nan, 5e-324
EDGES = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    2.0,
    -2.0,
    3.0,
    0.5,
    -0.5,
    INF,
    -INF,
    NAN,
    LEAST,
    -LEAST,
    1e308,
    -1e308,
]
EDGES += [1 + 2**-52, 1 - 2**-53, 2.0**53, 2.0**53 + 2, -(2.0**53), 709.9, -745.2, 1e16, 800.0]


@pytest.mark.parametrize("name", ["pow", "atan2", "hypot", "fmod", "remainder", "nextafter"])
def test_edges_of_two(name):
    x, y = (a.ravel() for a in np.meshgrid(EDGES, EDGES))
    numpy_name = {"pow": "power", "atan2": "arctan2"}.get(name, name)
    with np.errstate(all="ignore"):
        want = getattr(np, numpy_name)(x, y)
    got = getattr(taeda, name)(taeda.tensor(x), taeda.tensor(y)).numpy()
    assert np.allclose(got, want, rtol=1e-15, atol=0, equal_nan=True)
    # Of no remainder PyTorch keeps the dividend's sign.
    number = ~np.isnan(want) & ((want != 0) if name == "remainder" else True)
    assert np.array_equal(np.signbit(got)[number], np.signbit(want)[number])


@pytest.mark.parametrize("name", [*UNARY, "log"])
def test_edges_of_one(name):
    x = np.array([*EDGES, 1023.9999, 1024.0, -1075.0, -1074.0, 710.4758, 710.476, -710.476])
    if name == "tan":
        x = x[~(np.abs(x) > 1e6) | np.isinf(x) | np.isnan(x)]
    with np.errstate(all="ignore"):
        want = getattr(np, UNARY[name][0] if name in UNARY else name)(x)
    got = getattr(taeda, name)(taeda.tensor(x)).numpy()
    assert np.allclose(got, want, rtol=1e-15, atol=0, equal_nan=True)
    number = ~np.isnan(want)
    assert np.array_equal(np.signbit(got)[number], np.signbit(want)[number])


@pytest.mark.parametrize("dtype", [taeda.float32, taeda.float64])
@pytest.mark.parametrize("name", ["sin", "tan", "asin", "atan", "sinh", "asinh", "erf", "expm1"])
def test_odd_functions_keep_the_sign_of_zero(name, dtype):
    for n in (1, 9):  # by themselves: other elements may choose other kernels
        for zero in (0.0, -0.0):
            y = getattr(taeda, name)(taeda.full((n,), zero, dtype=dtype))
            assert y.eq(0).all() and y.signbit().eq(bool(np.signbit(zero))).all()


def test_powers_of_the_base_are_exact():
    n = taeda.arange(-1074.0, 1024.0, dtype=taeda.float64)
    assert taeda.equal(taeda.log2(taeda.exp2(n)), n)
    tens = np.array([10.0**k for k in range(23)])
    assert np.array_equal(taeda.log10(taeda.tensor(tens)).numpy(), np.arange(23.0))


def test_erfinv():
    special = pytest.importorskip("scipy.special")
    tail = 1 - np.exp2(-np.linspace(1, 53, 3000))
    y = np.concatenate([rng.uniform(-1, 1, 20_000), spread(-60, -1), tail, -tail, [0.0, 1.0, -1.0]])
    got = taeda.erfinv(taeda.tensor(y)).numpy()
    np.testing.assert_allclose(got, special.erfinv(y), rtol=3e-15)
