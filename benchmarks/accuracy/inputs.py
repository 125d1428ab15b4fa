"""Numbers to try functions on: ranges, all exponents, neighbours of roots and of poles."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.accuracy.ulps import Array

Part = Callable[[np.random.Generator, int], Array]


def between(low: float, high: float) -> Part:
    """Spread evenly from low to high."""
    return lambda rng, n: rng.uniform(low, high, n)


def magnitudes(low: float, high: float, *, sign: int = 0) -> Part:
    """2 to exponents spread evenly from low to high; of both signs, or of one."""

    def make(rng: np.random.Generator, n: int) -> Array:
        x = np.exp2(rng.uniform(low, high, n))
        return x * (sign or rng.choice([-1.0, 1.0], n))

    return make


def around(*points: float, low: float = -40, high: float = -4) -> Part:
    """Near the points, at distances of 2 to exponents from low to high."""

    def make(rng: np.random.Generator, n: int) -> Array:
        at = rng.choice(np.asarray(points, np.float64), n)
        return at + np.exp2(rng.uniform(low, high, n)) * rng.choice([-1.0, 1.0], n)

    return make


def multiples(step: float, most: int) -> Part:
    """The numbers next to whole multiples of a step, the hardest of which to reduce are near roots."""
    return lambda rng, n: rng.integers(-most, most + 1, n) * step


def whole(low: int, high: int) -> Part:
    return lambda rng, n: rng.integers(low, high + 1, n).astype(np.float64)


def mixed(*parts: Part) -> Part:
    """As many of each part."""

    def make(rng: np.random.Generator, n: int) -> Array:
        each = -(-n // len(parts))
        return np.concatenate([part(rng, each) for part in parts])[:n]

    return make


def every_exponent(dtype: str, *, sign: int = 0) -> Part:
    """All magnitudes of the dtype, the subnormal ones too."""
    low, high = {"float64": (-1074, 1023.9), "float16": (-24, 15.9)}.get(dtype, (-149, 127.9))
    return magnitudes(low, high, sign=sign)
