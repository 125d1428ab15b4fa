"""Random numbers: what is made of the uniform ones that the same seed gives.

docs/random-streams.md has the rules. The uniform numbers are drawn with the same seed by `rand`,
and are exact.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.accuracy.table import Arrays, Case, add
from benchmarks.accuracy.ulps import Array, errors

REAL = ("float32", "float64")
COUNT = 16_000
SEED = 7
PI = np.longdouble(np.pi) + np.longdouble(1.2246467991473532e-16)


def rows(
    title: str,
    draw: Callable[..., Any],
    reference: Callable[[Array], Any],
    uniform: str | None,
    dtypes: tuple[str, ...] = REAL,
) -> None:
    """`uniform` is the type of the uniform numbers, where it is not the result's."""
    for dtype in dtypes:

        def run(framework: Any, *, dtype: str = dtype) -> Any:
            framework.manual_seed(SEED)
            u = framework.rand(COUNT, dtype=getattr(framework, uniform or dtype))
            framework.manual_seed(SEED)
            return u, draw(framework, framework.empty(COUNT, dtype=getattr(framework, dtype)))

        def judge(inputs: Arrays, found: Arrays, *, dtype: str = dtype) -> Array:
            wanted = reference(found[0].astype(np.longdouble))
            value, scale = wanted if isinstance(wanted, tuple) else (wanted, None)
            return errors(found[1], value, dtype, scale)

        add(Case("random numbers", title, dtype, lambda rng, n: (), run, judge))


def normal(u: Array) -> tuple[Array, Array]:
    """Blocks of 16: radii from the first 8, angles from the others. The scale is the radius."""
    first, second = u.reshape(-1, 2, 8).swapaxes(0, 1)
    r = np.sqrt(-2 * np.log1p(-first))
    angle = 2 * PI * second
    value = np.stack([r * np.cos(angle), r * np.sin(angle)], 1)
    return value.reshape(u.shape), np.repeat(r[:, None], 2, 1).reshape(u.shape)


def cauchy(d: Array) -> tuple[Array, Array]:
    """The scale is what the angle, of at most 2, makes of a relative error of its own."""
    tangent = np.tan(PI * (d - 0.5))
    return 2 * tangent + 0.5, 2 * (1 + tangent**2)


rows("normal_ by Box and Muller", lambda fw, x: x.normal_(), normal, None)
rows("uniform_(-3, 5)", lambda fw, x: x.uniform_(-3, 5), lambda u: (8 * u - 3, 8 * u + 3), None)
rows(
    "exponential_(1.5)",
    lambda fw, x: x.exponential_(1.5),
    lambda d: -np.log1p(-d) / np.longdouble(1.5),
    "float64",
)
rows("cauchy_(0.5, 2)", lambda fw, x: x.cauchy_(0.5, 2), cauchy, "float64")
rows(
    "geometric_(0.3)",
    lambda fw, x: x.geometric_(0.3),
    lambda d: np.ceil(np.log(d) / np.log1p(-np.longdouble(0.3))),
    "float64",
)
