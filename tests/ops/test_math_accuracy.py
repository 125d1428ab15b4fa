"""float32 functions beside float64 over all magnitudes, for every instruction set of this machine."""

from __future__ import annotations

import numpy as np
import pytest

import taeda
import taeda.nn.functional as F

special = pytest.importorskip("scipy.special")


def patterns(step=9973):
    """float32 numbers of every exponent, both signs."""
    bits = np.arange(0, 2**32, step, dtype=np.uint64).astype(np.uint32)
    x = bits.view(np.float32)
    return x[np.isfinite(x)]


def within(low, high):
    x = patterns()
    return x[(x >= low) & (x <= high)]


# name: (its value in float64, the arguments, the most units in the last place that it may be off).
CASES = {
    "exp": (np.exp, within(-110, 90), 1.2),
    "expm1": (np.expm1, within(-110, 90), 1.5),
    "tanh": (np.tanh, patterns(), 2.5),
    "sigmoid": (special.expit, within(-86, 200), 2.5),
    "erf": (special.erf, patterns(), 1.8),
    "log": (np.log, within(1e-45, 3.4e38), 1),
    "log2": (np.log2, within(1e-45, 3.4e38), 0.51),
    "log10": (np.log10, within(1e-45, 3.4e38), 0.51),
    "sin": (np.sin, within(-8192, 8192), 2.1),
    "cos": (np.cos, within(-8192, 8192), 2.3),
    "softplus": (lambda x: np.where(x > 20, x, np.logaddexp(0, x)), patterns(), 2),
    "logsigmoid": (lambda x: -np.logaddexp(0, -x), patterns(), 2),
    "exp2": (np.exp2, within(-160, 130), 1.4),
    "tan": (np.tan, within(-8192, 8192), 3),
    "asin": (np.arcsin, within(-1, 1), 2.5),
    "acos": (np.arccos, within(-1, 1), 2),
    "atan": (np.arctan, patterns(), 2),
    "sinh": (np.sinh, within(-90, 90), 2.5),
    "cosh": (np.cosh, within(-90, 90), 2.5),
    "atanh": (np.arctanh, within(-1, 1), 3),
    "erfc": (special.erfc, within(-20, 10.3), 1),
    "erfinv": (special.erfinv, within(-1, 1), 0.51),
}


# The same of functions that are computed in float64, but for the constants of float32's digits.
WIDE_CASES = {
    "lgamma": (special.gammaln, within(-1000, 3e38), 0.51),
    "digamma": (special.digamma, within(-1000, 3e38), 0.51),
    "trigamma": (lambda x: special.polygamma(1, x), within(1e-15, 1e30), 0.51),
    "i0": (special.i0, within(-91, 91), 0.51),
    "i0e": (special.i0e, patterns(), 0.51),
    "i1": (special.i1, within(-91, 91), 0.51),
    "i1e": (special.i1e, patterns(), 0.51),
    "ndtr": (special.ndtr, within(-13, 40), 0.6),
    "log_ndtr": (special.log_ndtr, within(-1e10, 12), 0.6),
}
CASES |= WIDE_CASES


def function_of(name):
    if name == "trigamma":
        return lambda x: taeda.polygamma(1, x)
    for module in (taeda, F, taeda.special):
        if hasattr(module, name):
            return getattr(module, name)
    raise KeyError(name)


def error(name, x):
    exact, _, _ = CASES[name]
    with np.errstate(all="ignore"):
        want = exact(x.astype(np.float64))
        unit = np.spacing(np.abs(want).astype(np.float32)).astype(np.float64)
        got = function_of(name)(taeda.tensor(x)).numpy().astype(np.float64)
        off = np.abs(got - want)
    same = (got == want) | (np.isinf(got) & (np.abs(want) > np.finfo(np.float32).max))
    return np.where(same, 0, off / np.where(np.isfinite(unit), unit, 1))


@pytest.mark.unsanitized("the bounds are of a build that fuses products with sums")
@pytest.mark.parametrize("name", CASES)
def test_every_magnitude(name):
    _, x, bound = CASES[name]
    off = error(name, x)
    assert off.max() <= bound, (x[off.argmax()], off.max())


def test_gamma_functions_near_their_zeros():
    steps = np.arange(-300, 300).astype(np.float32) * np.float32(1.2e-7)
    for zero, name in ((1, "lgamma"), (2, "lgamma"), (1.4616321, "digamma"), (-2.457, "lgamma")):
        off = error(name, np.float32(zero) + steps)
        assert off.max() <= 1.2, (name, zero, off.max())
    assert taeda.lgamma(taeda.tensor([1.0, 2.0])).tolist() == [0, 0]


@pytest.mark.parametrize("name", sorted(CASES.keys() - WIDE_CASES))
def test_float64(name):
    exact, x, _ = CASES[name]
    wide = x[::7].astype(np.float64)
    got = function_of(name)(taeda.tensor(wide)).numpy()
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(got, exact(wide), rtol=1e-14)


@pytest.mark.parametrize("name", CASES)
def test_neighbours_do_not_matter(name):
    _, x, _ = CASES[name]
    function = function_of(name)
    x = x[np.abs(x) < 80][:3000] if name not in ("sin", "cos", "tan") else np.zeros(3, np.float32)
    alone = function(taeda.tensor(x)).numpy()
    among = np.concatenate([x, np.array([np.nan, np.inf, -np.inf, 1e-45], np.float32)])
    assert (function(taeda.tensor(among)).numpy()[: len(x)] == alone).all()


@pytest.mark.parametrize("angle", [8000.0, 1e9])  # of which the second is no easy one
@pytest.mark.parametrize("dtype", [taeda.float32, taeda.float64], ids=str)
def test_slopes_of_sine_and_cosine(angle, dtype):
    angles = np.linspace(-angle, angle, 3001, dtype=np.float32)
    g = np.linspace(-2, 3, 3001, dtype=np.float32)
    wide = angles.astype(np.float64)
    for function, slope in ((taeda.sin, np.cos(wide)), (taeda.cos, -np.sin(wide))):
        x = taeda.tensor(angles, dtype=dtype, requires_grad=True)
        function(x).backward(taeda.tensor(g, dtype=dtype))
        bound = 6e-7 if dtype is taeda.float32 else 1e-14
        assert np.abs(x.grad.numpy() - g * slope).max() < bound


def test_edges():
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45], np.float32)
    nan, inf = np.nan, np.inf
    want = {
        "lgamma": [inf, inf, inf, inf, nan, np.log(2.0) * 149, np.log(2.0) * 149],
        "digamma": [-inf, inf, inf, nan, nan, -inf, inf],
        "trigamma": [inf, inf, 0, nan, nan, inf, inf],
        "i0": [1, 1, inf, inf, nan, 1, 1],
        "i0e": [1, 1, 0, 0, nan, 1, 1],
        "i1": [0, -0.0, inf, -inf, nan, 1e-45, -1e-45],
        "i1e": [0, -0.0, 0, -0.0, nan, 1e-45, -1e-45],
        "ndtr": [0.5, 0.5, 1, 0, nan, 0.5, 0.5],
        "log_ndtr": [-np.log(2), -np.log(2), 0, -inf, nan, -np.log(2), -np.log(2)],
        "exp": [1, 1, inf, 0, nan, 1, 1],
        "tanh": [0, -0.0, 1, -1, nan, 1e-45, -1e-45],
        "sigmoid": [0.5, 0.5, 1, 0, nan, 0.5, 0.5],
        "erf": [0, -0.0, 1, -1, nan, 1e-45, -1e-45],
        "log": [-inf, -inf, inf, nan, nan, np.log(2.0) * -149, nan],
        "log2": [-inf, -inf, inf, nan, nan, -149, nan],
        "log10": [-inf, -inf, inf, nan, nan, np.log10(2.0) * -149, nan],
        "sin": [0, -0.0, nan, nan, nan, 1e-45, -1e-45],
        "cos": [1, 1, nan, nan, nan, 1, 1],
        "exp2": [1, 1, inf, 0, nan, 1, 1],
        "tan": [0, -0.0, nan, nan, nan, 1e-45, -1e-45],
        "asin": [0, -0.0, nan, nan, nan, 1e-45, -1e-45],
        "acos": [np.pi / 2, np.pi / 2, nan, nan, nan, np.pi / 2, np.pi / 2],
        "atan": [0, -0.0, np.pi / 2, -np.pi / 2, nan, 1e-45, -1e-45],
        "sinh": [0, -0.0, inf, -inf, nan, 1e-45, -1e-45],
        "cosh": [1, 1, inf, inf, nan, 1, 1],
        "atanh": [0, -0.0, nan, nan, nan, 1e-45, -1e-45],
        "erfc": [1, 1, 0, 2, nan, 1, 1],
        "erfinv": [0, -0.0, nan, nan, nan, 1e-45, -1e-45],
        "softplus": [np.log(2), np.log(2), inf, 0, nan, np.log(2), np.log(2)],
        "logsigmoid": [-np.log(2), -np.log(2), -0.0, -inf, nan, -np.log(2), -np.log(2)],
    }
    for name, values in want.items():
        function = function_of(name)
        for k, value in enumerate(values):  # one at a time, and all together
            expected = np.float32(value)
            for argument in (x[k : k + 1], np.tile(x, 40)):
                got = function(taeda.tensor(argument)).numpy()[0 if len(argument) == 1 else k]
                assert np.array_equal(got, expected, equal_nan=True), (name, x[k], got)
                assert np.isnan(got) or np.signbit(got) == np.signbit(expected), (name, x[k])


EDGES = np.array([0.0, 1e-45, 2e-38, 0.5, 1, 3, 1e38, np.inf], np.float32)


def pairs():
    """Two float32 arrays: all edges with each other, numbers of like and of any magnitude."""
    rng = np.random.default_rng(1)
    signed = np.concatenate([EDGES, -EDGES, [np.float32(np.nan)]])
    a, b = (grid.ravel() for grid in np.meshgrid(signed, signed))
    like = rng.normal(0, 50, (2, 50_000)).astype(np.float32)
    any_size = rng.permutation(patterns(40_009)), rng.permutation(patterns(40_009))
    like[0, :2000] = like[1, :2000] * rng.integers(-99, 99, 2000)  # whole quotients, or nearly
    return [(a, b), (like[0], like[1]), any_size, (like[0], np.full(50_000, 0.7, np.float32))]


@pytest.mark.parametrize("case", range(4))
def test_what_division_leaves_is_exact(case):
    x, y = pairs()[case]
    with np.errstate(all="ignore"):
        left = np.fmod(x, y)
        turn = (left != 0) & ((left < 0) != (y < 0))
        want = {"fmod": left, "remainder": np.where(turn, left + y, left)}
    for name, values in want.items():
        got = getattr(taeda, name)(taeda.tensor(x), taeda.tensor(y)).numpy()
        same = (got == values) & (np.signbit(got) == np.signbit(values))
        same |= np.isnan(got) & np.isnan(values)
        assert same.all(), (name, x[~same][:3], y[~same][:3], got[~same][:3])


@pytest.mark.parametrize("name", ["atan2", "hypot", "pow"])
@pytest.mark.parametrize("case", range(3))
def test_two_arguments(name, case):
    x, y = pairs()[case]
    got = getattr(taeda, name)(taeda.tensor(x), taeda.tensor(y)).numpy()
    with np.errstate(all="ignore"):
        want = getattr(np, {"atan2": "arctan2", "pow": "power"}.get(name, name))(
            *np.float64((x, y))
        )
        near = want.astype(np.float32)
        unit = np.where(np.isinf(near), np.inf, np.spacing(np.abs(near)))
        same = (got == near) | (np.isnan(got) & np.isnan(near)) | (np.abs(got - want) <= 2 * unit)
    assert same.all(), (x[~same][:3], y[~same][:3], got[~same][:3], near[~same][:3])
    assert (np.isnan(got) | (np.signbit(got) == np.signbit(near))).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_expm1_of_the_largest_arguments(dtype):
    """Results between half of the largest power of 2 and the largest number are finite."""
    last = np.log(np.finfo(dtype).max)
    x = np.linspace(last - 0.5, np.nextafter(last, dtype(0)), 100, dtype=dtype)
    got = taeda.expm1(taeda.tensor(x)).numpy()
    np.testing.assert_allclose(got, np.expm1(x), rtol=4 * np.finfo(dtype).eps)
    assert taeda.expm1(taeda.tensor(x[-1:] + dtype(0.01))).item() == np.inf
