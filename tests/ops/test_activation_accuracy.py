"""float32 activations beside float64, for every instruction set that this machine has."""

from __future__ import annotations

import numpy as np
import pytest

import taeda
import taeda.nn.functional as F

pytest.importorskip("scipy")
from scipy.special import expit, ndtr


def samples():
    rng = np.random.default_rng(0)
    pieces = [rng.uniform(-6, 6, 40_000), rng.uniform(-110, 80, 20_000), rng.normal(0, 1e-3, 5_000)]
    return np.concatenate([*pieces, [0.0, 1e-40, -1e-40, 3e38]]).astype(np.float32)


def gelu_slope(x):
    return ndtr(x) + x * np.exp(-x * x / 2) / np.sqrt(2 * np.pi)


def tanh_argument(x):
    return np.sqrt(8 / np.pi) * (x + 0.044715 * x**3)


# name: (function, its value in float64, bound in units in the last place of the larger of |x| / 4
# and the result: for negative x, gelu is a small difference).
CASES = {
    "gelu": (F.gelu, lambda x: x * ndtr(x), 12),
    "gelu_tanh": (
        lambda x: F.gelu(x, approximate="tanh"),
        lambda x: x * expit(tanh_argument(x)),
        4,
    ),
    "silu": (F.silu, lambda x: x * expit(x), 2.5),
    "sigmoid": (taeda.sigmoid, expit, 2.5),
    "mish": (F.mish, lambda x: x * np.tanh(np.logaddexp(0, x)), 4),
}


@pytest.mark.parametrize("name", CASES)
def test_values(name):
    function, exact, bound = CASES[name]
    x = samples()
    wide = x.astype(np.float64)
    want = exact(wide)
    unit = np.spacing(np.maximum(np.abs(want), np.abs(wide) / 4).astype(np.float32))
    error = np.abs(function(taeda.tensor(x)).numpy() - want) / unit
    assert error.max() <= bound, (x[error.argmax()], error.max())


@pytest.mark.parametrize("name", ["sigmoid", "gelu"])
def test_positive_side_and_slope(name):
    x = samples()
    wide = x.astype(np.float64)
    function, exact, _ = CASES[name]
    want = exact(wide)
    error = np.abs(function(taeda.tensor(x)).numpy() - want)
    assert (error / np.spacing(np.abs(want).astype(np.float32)))[x > 0].max() <= 3.5
    if name == "gelu":
        t = taeda.tensor(x, requires_grad=True)
        F.gelu(t).sum().backward()
        assert np.abs(t.grad.numpy() - gelu_slope(wide)).max() < 3e-7


@pytest.mark.parametrize("name", CASES)
def test_special_values(name):
    function, _, _ = CASES[name]
    odd_nan = np.array([0x7FFFFFFF, 0xFFFFFFFF], np.uint32).view(np.float32)
    x = np.concatenate([[np.nan, np.inf, 200.0, -200.0, -0.0], odd_nan] * 5).astype(np.float32)
    y = function(taeda.tensor(x)).numpy()[:7]
    assert np.isnan(y[[0, 5, 6]]).all()
    if name == "sigmoid":
        assert y[1] == y[2] == 1 and y[3] == 0 and y[4] == 0.5
    else:
        assert y[1] == np.inf and y[2] == 200 and y[3] == 0 and y[4] == 0
