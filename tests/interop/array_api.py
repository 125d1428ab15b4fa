"""Samples for tests of the array API standard, and the comparison of their results."""

from __future__ import annotations

import numpy as np
import pytest

import taeda
from taeda import array_api as xp

strict = pytest.importorskip("array_api_strict", reason="array-api-strict is not installed")

DTYPES = [
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "float32",
    "float64",
    "complex64",
    "complex128",
]
INTEGERS, REALS, COMPLEX = DTYPES[1:6], DTYPES[6:8], DTYPES[8:]


def sample(shape, dtype, seed=0, positive=False):
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype in INTEGERS:
        low = 1 if positive or dtype == "uint8" else -9
        return rng.integers(low, 10, shape).astype(dtype)
    x = rng.uniform(0.1 if positive else -0.95, 0.95, shape)
    if dtype in COMPLEX:
        x = x + 1j * rng.uniform(-0.9, 0.9, shape)
    return x.astype(dtype)


def plain(x):
    """A result as NumPy arrays, whatever library it comes from."""
    if isinstance(x, (tuple, list)):
        return [plain(v) for v in x]
    if isinstance(x, taeda.Tensor):
        return x.numpy()
    return np.asarray(np.from_dlpack(x) if hasattr(x, "__dlpack__") else x)


def agree(function, *arrays):
    """Run `function(xp, *arrays)` on all three and compare values, shapes and dtypes."""
    ours = plain(function(xp, *map(xp.asarray, arrays)))
    reference = plain(function(strict, *(strict.asarray(a) for a in arrays)))
    compare(ours, reference)


def compare(ours, reference):
    if isinstance(reference, list):
        assert len(ours) == len(reference)
        for a, b in zip(ours, reference, strict=True):
            compare(a, b)
        return
    assert ours.dtype == reference.dtype
    assert ours.shape == reference.shape
    tolerance = 2e-5 if reference.dtype in (np.float32, np.complex64) else 1e-11
    np.testing.assert_allclose(ours, reference, rtol=tolerance, atol=tolerance)


def of_the_version():
    """Strict flags for the version of the standard that taeda follows."""
    return strict.ArrayAPIStrictFlags(api_version="2024.12")
