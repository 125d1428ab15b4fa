"""One stretch of memory with a number, and float16 and bfloat16, which have loops of their own."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import taeda
import taeda.nn.functional as F

SIZES = [1, 2, 15, 16, 17, 100, 4097, 70_001]  # of which the last is shared out to threads
OPERATORS = {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv}


def numbers(n, seed=0):
    x = np.random.default_rng(seed).normal(0, 3, n).astype(np.float32)
    x[:: max(1, n // 7)] = np.resize(
        [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-7, 6e4], x[:: max(1, n // 7)].shape
    )
    return taeda.tensor(x)


def same(a, b):
    a, b = a.float().numpy(), b.float().numpy()
    np.testing.assert_array_equal(a, b)
    kept = ~np.isnan(a)
    assert (np.signbit(a) == np.signbit(b))[kept].all()


@pytest.mark.parametrize("dtype", [taeda.float16, taeda.bfloat16], ids=str)
@pytest.mark.parametrize("n", SIZES)
def test_halves(dtype, n):
    a, b = numbers(n).to(dtype), numbers(n, 1).to(dtype)
    for function in OPERATORS.values():
        same(function(a, b), function(a.float(), b.float()).to(dtype))
        same(function(a, 0.1), function(a.float(), 0.1).to(dtype))  # no rounding of the number
        same(function(0.1, b), function(0.1, b.float()).to(dtype))
        same(function(a, b[n - 1]), function(a.float(), b[n - 1].float()).to(dtype))
    same(a.sqrt(), a.float().sqrt().to(dtype))
    wide = a.float()
    here = a.clone().mul_(0.3).add_(b).div_(7)
    rounded = (wide * 0.3).to(dtype).float()
    rounded = (rounded + b.float()).to(dtype).float()
    same(here, (rounded / 7).to(dtype))


@pytest.mark.parametrize("dtype", [taeda.float16, taeda.bfloat16], ids=str)
def test_halves_that_do_not_lie_together(dtype):
    a, b = numbers(600).to(dtype).view(20, 30), numbers(600, 1).to(dtype).view(20, 30)
    for x, y in ((a[:, ::2], b[:, ::2]), (a[3:, 5:], b[:-3, :-5]), (a, b[:, :1]), (a, b[:1])):
        for function in OPERATORS.values():
            same(function(x, y), function(x.float(), y.float()).to(dtype))
    turned = a.t()
    same(turned * b.t(), (turned.float() * b.t().float()).to(dtype))
    assert (a * numbers(600).view(20, 30)).dtype == taeda.float32


@pytest.mark.parametrize("dtype", [taeda.float32, taeda.float64], ids=str)
@pytest.mark.parametrize("n", SIZES)
def test_numbers(dtype, n):
    x = numbers(n).to(dtype)
    values = x.numpy()
    for function in OPERATORS.values():
        for number in (0.1, 3, taeda.tensor(0.1, dtype=dtype)):
            plain = dtype_number(number, values.dtype)
            with np.errstate(all="ignore"):
                want, turned = function(values, plain), function(plain, values)
            np.testing.assert_array_equal(function(x, number).numpy(), want)
            np.testing.assert_array_equal(function(number, x).numpy(), turned)
    here = x.clone()
    assert here.mul_(0.1) is here
    np.testing.assert_array_equal(here.numpy(), values * dtype_number(0.1, values.dtype))
    np.testing.assert_array_equal(
        x.clamp(min=0.5).numpy(), np.maximum(values, values.dtype.type(0.5))
    )
    np.testing.assert_array_equal(
        x.clamp(max=0.5).numpy(), np.minimum(values, values.dtype.type(0.5))
    )
    for low, high in ((-1, 0.5), (0.5, -1), (np.nan, 1), (0, np.nan), (-np.inf, np.inf)):
        want = np.clip(values, values.dtype.type(low), values.dtype.type(high))
        np.testing.assert_array_equal(x.clamp(low, high).numpy(), want)
        np.testing.assert_array_equal(x.clone().clamp_(low, high).numpy(), want)
    slope = values.dtype.type(0.1)
    want = np.where(values > 0, values, values * slope)
    np.testing.assert_array_equal(F.leaky_relu(x, 0.1).numpy(), want)


def dtype_number(number, dtype):
    return dtype.type(number.item() if isinstance(number, taeda.Tensor) else number)
