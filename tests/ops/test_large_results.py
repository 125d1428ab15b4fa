"""Pointwise results larger than the caches, which are written past them."""

from __future__ import annotations

import pytest

import taeda


@pytest.mark.parametrize("offset", [0, 3])
def test_results_larger_than_the_caches(offset):
    n = 9_000_005
    a, b, out = taeda.rand(n + offset), taeda.rand(n + offset), taeda.zeros(n + offset)
    taeda.add(a[offset:], b[offset:], out=out[offset:])
    assert taeda.equal(out[offset:], (a.double() + b.double()).float()[offset:])
    assert not out[:offset].any()
    kept = a.clone()
    a.mul_(b)
    assert taeda.equal(a[-1000:], kept[-1000:] * b[-1000:])
    assert taeda.equal(a[:1000], kept[:1000] * b[:1000])
