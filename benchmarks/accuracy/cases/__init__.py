"""The rows of the page, by family."""

from benchmarks.accuracy.cases import (
    complex_numbers,
    fourier,
    linalg,
    losses,
    networks,
    normalization,
    optimizers,
    pointwise,
    products,
    random,
    reductions,
    special,
)
from benchmarks.accuracy.table import CASES

__all__ = [
    "CASES",
    "complex_numbers",
    "fourier",
    "linalg",
    "losses",
    "networks",
    "normalization",
    "optimizers",
    "pointwise",
    "products",
    "random",
    "reductions",
    "special",
]
