"""Factorizations and solutions, judged by residuals: how well the factors give the matrix back.

An error is the largest element of the residual over the matrix's largest row sum, in units of
2^-23 (float64: 2^-52); of orthogonal factors also the largest element of Q^T Q - 1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.accuracy.table import Arrays, Case, add
from benchmarks.accuracy.ulps import Array, epsilon

REAL = ("float32", "float64")


def wide(x: Array) -> Array:
    return x.astype(np.longdouble)


def turned(x: Array) -> Array:
    return x.swapaxes(-1, -2)


def largest_row(x: Array) -> Array:
    return np.abs(x).sum(-1, keepdims=True).max(-2, keepdims=True)


def identity(x: Array) -> Array:
    """How far the columns are from orthonormal ones."""
    return np.abs(turned(x) @ x - np.eye(x.shape[-1]))


def rows(
    title: str,
    make: Callable[..., Arrays],
    run: Callable[..., Any],
    residual: Callable[..., list[Array]],
) -> None:
    def judged(dtype: str) -> Callable[[Arrays, Arrays], Array]:
        def judge(inputs: Arrays, found: Arrays) -> Array:
            parts = residual(*(wide(x) for x in inputs), *(wide(x) for x in found))
            every = np.concatenate([p.ravel() for p in parts]) / epsilon(dtype)
            return np.where(np.isnan(every), np.inf, every).astype(np.float64)

        return judge

    for dtype in REAL:
        add(Case("linear algebra", title, dtype, lambda rng, n: make(rng), run, judged(dtype)))


def square(*shape: int) -> Callable[..., Arrays]:
    return lambda rng: (rng.normal(size=shape),)


def graded(n: int, power: float) -> Callable[..., Arrays]:
    """Singular values from 1 to 2^-power."""

    def make(rng: np.random.Generator) -> Arrays:
        q, _ = np.linalg.qr(rng.normal(size=(n, n)))
        p, _ = np.linalg.qr(rng.normal(size=(n, n)))
        return ((q * np.exp2(-np.linspace(0, power, n))) @ p,)

    return make


def definite(*shape: int) -> Callable[..., Arrays]:
    def make(rng: np.random.Generator) -> Arrays:
        a = rng.normal(size=shape)
        a = a @ turned(a) + 0.1 * np.eye(shape[-1])
        return ((a + turned(a)) / 2,)

    return make


def symmetric(*shape: int) -> Callable[..., Arrays]:
    def make(rng: np.random.Generator) -> Arrays:
        a = rng.normal(size=shape)
        return ((a + turned(a)) / 2,)

    return make


def with_right(make: Callable[..., Arrays], columns: int) -> Callable[..., Arrays]:
    def both(rng: np.random.Generator) -> Arrays:
        (a,) = make(rng)
        return a, rng.normal(size=(*a.shape[:-1], columns))

    return both


def solved(a: Array, b: Array, x: Array) -> list[Array]:
    """Over |A| |x| + |b|, element by element: the backward error of Oettli and Prager."""
    return [np.abs(a @ x - b) / (np.abs(a) @ np.abs(x) + np.abs(b))]


def factored(a: Array, *factors: Array) -> list[Array]:
    product = factors[0]
    for factor in factors[1:]:
        product = product @ factor
    return [np.abs(a - product) / largest_row(a)]


def inverse(a: Array, x: Array) -> list[Array]:
    return [np.abs(a @ x - np.eye(a.shape[-1])) / (largest_row(a) * largest_row(x))]


rows(
    "solve of 60 x 60",
    with_right(square(60, 60), 5),
    lambda fw, a, b: fw.linalg.solve(a, b),
    solved,
)
rows(
    "solve of 60 x 60, singular values to 2^-18",
    with_right(graded(60, 18), 5),
    lambda fw, a, b: fw.linalg.solve(a, b),
    solved,
)
rows(
    "solve of 32 of 6 x 6",
    with_right(square(32, 6, 6), 2),
    lambda fw, a, b: fw.linalg.solve(a, b),
    solved,
)
rows(
    "solve_triangular of 60 x 60",
    with_right(square(60, 60), 5),
    lambda fw, a, b: fw.linalg.solve_triangular(
        a.triu() + 8 * fw.eye(60, dtype=a.dtype), b, upper=True
    ),
    lambda a, b, x: solved(np.triu(a) + 8 * np.eye(60), b, x),
)
rows("inv of 60 x 60", square(60, 60), lambda fw, a: fw.linalg.inv(a), inverse)
rows("inv of 32 of 6 x 6", square(32, 6, 6), lambda fw, a: fw.linalg.inv(a), inverse)
rows("lu of 60 x 60", square(60, 60), lambda fw, a: tuple(fw.linalg.lu(a)), factored)
rows(
    "cholesky of 60 x 60",
    definite(60, 60),
    lambda fw, a: fw.linalg.cholesky(a),
    lambda a, f: factored(a, f, turned(f)),
)
rows(
    "cholesky of 32 of 6 x 6",
    definite(32, 6, 6),
    lambda fw, a: fw.linalg.cholesky(a),
    lambda a, f: factored(a, f, turned(f)),
)
for shape in ((80, 50), (32, 8, 5)):
    name = "80 x 50" if len(shape) == 2 else "32 of 8 x 5"
    rows(
        f"qr of {name}",
        square(*shape),
        lambda fw, a: tuple(fw.linalg.qr(a)),
        lambda a, q, r: [*factored(a, q, r), identity(q)],
    )
    rows(
        f"svd of {name}",
        square(*shape),
        lambda fw, a: tuple(fw.linalg.svd(a, full_matrices=False)),
        lambda a, u, s, v: [*factored(a, u * s[..., None, :], v), identity(u), identity(turned(v))],
    )
for shape in ((60, 60), (32, 6, 6)):
    name = "60 x 60" if len(shape) == 2 else "32 of 6 x 6"
    rows(
        f"eigh of {name}",
        symmetric(*shape),
        lambda fw, a: tuple(fw.linalg.eigh(a)),
        lambda a, s, q: [*factored(a, q * s[..., None, :], turned(q)), identity(q)],
    )
rows(
    "lstsq of 80 x 50",
    with_right(square(80, 50), 3),
    lambda fw, a, b: fw.linalg.lstsq(a, b).solution,
    lambda a, b, x: [
        np.abs(turned(a) @ (a @ x - b)) / (turned(np.abs(a)) @ (np.abs(a) @ np.abs(x) + np.abs(b)))
    ],
)


def exponential(a: Array) -> Array:
    """By Taylor's series of a / 16, squared 4 times."""
    small = a / 16
    term = total = np.eye(a.shape[-1], dtype=a.dtype)
    for k in range(1, 25):
        term = term @ small / k
        total = total + term
    for _ in range(4):
        total = total @ total
    return total


rows(
    "matrix_exp of 20 x 20",
    lambda rng: (rng.normal(size=(20, 20)) / 3,),
    lambda fw, a: fw.linalg.matrix_exp(a),
    lambda a, y: [np.abs(exponential(a) - y) / largest_row(exponential(a))],
)
