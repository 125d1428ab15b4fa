"""Functions of complex numbers: both parts in ulps of the result's magnitude."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.accuracy.cases.pointwise import COMPLEX, PI, named, row
from benchmarks.accuracy.inputs import between
from benchmarks.accuracy.table import Case, add, beside


def plane(low: float, high: float) -> Callable[..., tuple]:
    def make(rng: np.random.Generator, n: int) -> tuple:
        return (np.exp2(rng.uniform(low, high, n)) * np.exp(1j * rng.uniform(-PI, PI, n)),)

    return make


def planes(low: float, high: float) -> Callable[..., tuple]:
    one = plane(low, high)
    return lambda rng, n: one(rng, n) + one(rng, n)


def complex_row(
    title: str,
    reference: Callable[..., Any],
    inputs: Callable[..., tuple],
    run: Callable[..., Any] | None = None,
) -> None:
    for dtype in COMPLEX:
        add(
            Case(
                "complex",
                title,
                dtype,
                inputs,
                run or named(title),
                beside(dtype, reference),
                10_000,
            )
        )


complex_row("abs", np.abs, plane(-60, 60))
complex_row("angle", np.angle, plane(-30, 30))
complex_row("mul", np.multiply, planes(-20, 20))
complex_row("div", np.divide, planes(-20, 20))
complex_row("reciprocal", lambda z: 1 / z, plane(-40, 40))
complex_row("sqrt", np.sqrt, plane(-60, 60))
complex_row("exp", np.exp, plane(-10, 5))
complex_row("log", np.log, plane(-30, 30))
complex_row("sin", np.sin, plane(-10, 4))
complex_row("cos", np.cos, plane(-10, 4))
complex_row("tanh", np.tanh, plane(-10, 3))
complex_row("atan", np.arctan, plane(-10, 10))
complex_row("pow", np.power, planes(-2, 2))
complex_row("sigmoid", lambda z: 1 / (1 + np.exp(-z)), plane(-10, 1))

row(
    "polar, real part",
    lambda r, a: r * np.cos(a),
    lambda d: (between(0, 3), between(-4, 4)),
    lambda fw, r, a: fw.polar(r, a).real,
    family="complex",
)
