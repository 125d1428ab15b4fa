"""Sums, products, moments and scans along rows, columns and whole tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.accuracy.table import Case, add, beside
from benchmarks.accuracy.ulps import Array

REAL = ("float32", "float64")
ALL = (*REAL, "bfloat16", "float16")
Reference = Callable[[Array], Any]
Make = Callable[[np.random.Generator, int], tuple[Array, ...]]


def normal(*shape: int, mean: float = 0, deviation: float = 1) -> Make:
    return lambda rng, n: (rng.normal(mean, deviation, shape),)


def uniform(*shape: int, low: float = 0, high: float = 1) -> Make:
    return lambda rng, n: (rng.uniform(low, high, shape),)


def spread(*shape: int, low: float = -20, high: float = 20) -> Make:
    """Magnitudes over many powers of 2, both signs."""
    return lambda rng, n: (np.exp2(rng.uniform(low, high, shape)) * rng.choice([-1, 1], shape),)


def rows(
    title: str,
    inputs: Make,
    run: Callable[..., Any],
    reference: Reference,
    dtypes: tuple[str, ...] = REAL,
    scaled: bool = True,
    family: str = "reductions",
) -> None:
    for dtype in dtypes:
        add(Case(family, title, dtype, inputs, run, beside(dtype, reference, scaled)))


def total(dim: int | None) -> Reference:
    """The sum, and the sum of magnitudes as the scale."""
    return lambda x: (x.sum(dim), np.abs(x).sum(dim))


def average(dim: int | None) -> Reference:
    return lambda x: (x.mean(dim), np.abs(x).mean(dim))


rows(
    "sum of 2^20, normal",
    normal(1 << 20),
    lambda fw, x: x.sum(),
    total(None),
    ("float32", "bfloat16"),
)
rows("sum of 2^18, normal", normal(1 << 18), lambda fw, x: x.sum(), total(None), REAL)
rows("sum of 2^18, 0 to 1", uniform(1 << 18), lambda fw, x: x.sum(), total(None), REAL)
rows("sum of 2^18, 2^-20 to 2^20", spread(1 << 18), lambda fw, x: x.sum(), total(None), REAL)
rows("sum of rows of 1000", uniform(64, 1000), lambda fw, x: x.sum(1), total(1), ALL)
rows("sum of columns of 1000", uniform(1000, 64), lambda fw, x: x.sum(0), total(0), ALL)
rows(
    "sum of every other number",
    uniform(64, 1000),
    lambda fw, x: x[:, ::2].sum(1),
    lambda x: total(1)(x[:, ::2]),
)
rows(
    "sum, complex",
    lambda rng, n: (rng.normal(size=(64, 500)) + 1j * rng.normal(size=(64, 500)),),
    lambda fw, x: x.sum(1),
    lambda x: (x.sum(1), np.abs(x).sum(1)),
    ("complex64", "complex128"),
)
rows("nansum of rows of 1000", uniform(64, 1000), lambda fw, x: x.nansum(1), total(1))
rows("mean of rows of 1000", uniform(64, 1000), lambda fw, x: x.mean(1), average(1), ALL)
rows("mean of columns of 1000", normal(1000, 64), lambda fw, x: x.mean(0), average(0))


def product(dim: int) -> Reference:
    return lambda x: x.prod(dim)


rows(
    "prod of rows of 100",
    uniform(64, 100, low=0.5, high=1.9),
    lambda fw, x: x.prod(1),
    product(1),
    scaled=False,
)
rows(
    "prod of columns of 100",
    uniform(100, 64, low=0.5, high=1.9),
    lambda fw, x: x.prod(0),
    product(0),
    scaled=False,
)


def variance(dim: int) -> Reference:
    return lambda x: x.var(dim, ddof=1)


rows(
    "var of rows of 1000", normal(64, 1000), lambda fw, x: x.var(1), variance(1), ALL, scaled=False
)
rows("var of columns of 1000", normal(1000, 64), lambda fw, x: x.var(0), variance(0), scaled=False)
rows(
    "var of rows of 1000 about 1000",
    normal(64, 1000, mean=1000),
    lambda fw, x: x.var(1),
    variance(1),
    scaled=False,
)
rows(
    "var of columns of 1000 about 1000",
    normal(1000, 64, mean=1000),
    lambda fw, x: x.var(0),
    variance(0),
    scaled=False,
)
rows(
    "std of rows of 1000",
    normal(64, 1000),
    lambda fw, x: x.std(1),
    lambda x: x.std(1, ddof=1),
    scaled=False,
)


def p_norm(p: float, dim: int) -> Reference:
    return lambda x: (np.abs(x) ** p).sum(dim) ** (1 / type(x.flat[0])(p))


rows(
    "norm of rows of 1000",
    normal(64, 1000),
    lambda fw, x: fw.linalg.vector_norm(x, 2, 1),
    lambda x: np.sqrt((x * x).sum(1)),
    ALL,
    scaled=False,
)
rows(
    "norm of columns of 1000",
    normal(1000, 64),
    lambda fw, x: fw.linalg.vector_norm(x, 2, 0),
    lambda x: np.sqrt((x * x).sum(0)),
    scaled=False,
)
rows(
    "1-norm of rows of 1000",
    normal(64, 1000),
    lambda fw, x: fw.linalg.vector_norm(x, 1, 1),
    lambda x: np.abs(x).sum(1),
    scaled=False,
)
rows(
    "3-norm of rows of 1000",
    normal(64, 1000),
    lambda fw, x: fw.linalg.vector_norm(x, 3, 1),
    p_norm(3, 1),
    scaled=False,
)


def wide_of(x: Array) -> Array:
    return np.asarray(x, np.longdouble)


def log_sum(x: Array, axis: int) -> tuple[Array, Array]:
    """Log of the sum of exponentials, and what its arguments' own rounding could move it by."""
    x = wide_of(x)
    top = x.max(axis, keepdims=True)
    e = np.exp(x - top)
    value = np.log(e.sum(axis)) + top.squeeze(axis)
    return value, np.maximum(np.abs(value), np.abs(top.squeeze(axis)))


rows(
    "logsumexp of rows of 1000",
    normal(64, 1000, deviation=5),
    lambda fw, x: x.logsumexp(1),
    lambda x: log_sum(x, 1),
    ALL,
)
rows(
    "logsumexp of columns of 1000",
    normal(1000, 64, deviation=5),
    lambda fw, x: x.logsumexp(0),
    lambda x: log_sum(x, 0),
)

# ---- scans


def running(axis: int) -> Reference:
    return lambda x: (x.cumsum(axis), np.abs(x).cumsum(axis))


def running_log_sum(axis: int) -> Reference:
    def both(x: Array) -> tuple[Array, Array]:
        x = wide_of(x)
        value = np.logaddexp.accumulate(x, axis)
        return value, np.maximum(np.abs(value), np.maximum.accumulate(np.abs(x), axis))

    return both


rows(
    "cumsum of rows of 1000",
    normal(64, 1000),
    lambda fw, x: x.cumsum(1),
    running(1),
    ALL,
    family="scans",
)
rows(
    "cumsum of columns of 1000",
    normal(1000, 64),
    lambda fw, x: x.cumsum(0),
    running(0),
    family="scans",
)
rows("cumsum of 2^18", normal(1 << 18), lambda fw, x: x.cumsum(0), running(0), family="scans")
rows(
    "cumprod of rows of 100",
    uniform(64, 100, low=0.5, high=1.9),
    lambda fw, x: x.cumprod(1),
    lambda x: x.cumprod(1),
    scaled=False,
    family="scans",
)
rows(
    "logcumsumexp of rows of 1000",
    normal(64, 1000, deviation=5),
    lambda fw, x: x.logcumsumexp(1),
    running_log_sum(1),
    ALL,
    family="scans",
)
rows(
    "logcumsumexp of columns of 1000",
    normal(1000, 64, deviation=5),
    lambda fw, x: x.logcumsumexp(0),
    running_log_sum(0),
    family="scans",
)

# ---- sums by index


def with_index(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    return rng.normal(size=(2000, 16)), rng.integers(0, 50, 2000)


def by_index(x: Array, index: Array) -> tuple[Array, Array]:
    value, scale = np.zeros((50, 16), x.dtype), np.zeros((50, 16), x.dtype)
    np.add.at(value, index, x)
    np.add.at(scale, index, np.abs(x))
    return value, scale


def index_add(framework: Any, x: Any, index: Any) -> Any:
    return x.new_zeros(50, 16).index_add_(0, index, x)


def scatter_add(framework: Any, x: Any, index: Any) -> Any:
    return x.new_zeros(50, 16).scatter_add_(0, index[:, None].expand(2000, 16), x)


def bags(framework: Any, x: Any, index: Any) -> Any:
    return framework.nn.functional.embedding_bag(index.view(40, 50), x, mode="sum")


def bag_sums(x: Array, index: Array) -> tuple[Array, Array]:
    taken = x[index.reshape(40, 50)]
    return taken.sum(1), np.abs(taken).sum(1)


rows("index_add", with_index, index_add, by_index, family="sums by index")
rows("scatter_add", with_index, scatter_add, by_index, family="sums by index")
rows("embedding_bag of 50", with_index, bags, bag_sums, family="sums by index")
