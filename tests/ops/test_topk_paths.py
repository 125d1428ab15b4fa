"""The first of long lines of floats: exactly what a stable sort puts first."""

from __future__ import annotations

import numpy as np
import pytest

import taeda

NAMES = ["float16", "bfloat16", "float32"]


def lines(name: str, kind: str, n: int) -> taeda.Tensor:
    a = np.random.default_rng(n).standard_normal((3, n)).astype(np.float32)
    if kind == "ties":
        a = np.round(a)
    elif kind == "descending":
        a = np.sort(a)[:, ::-1].copy()
    elif kind == "special":
        a[:, ::7], a[:, 3::11], a[1, 5::13] = -np.inf, np.inf, 0.0
        a[2, n // 2 :: 97] = np.nan
    return taeda.from_numpy(a).to(getattr(taeda, name))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["normal", "ties", "descending", "special"])
@pytest.mark.parametrize(("n", "k"), [(600, 32), (2048, 100), (5000, 1), (5000, 64), (9001, 562)])
def test_first(name: str, kind: str, n: int, k: int) -> None:
    x = lines(name, kind, n)
    for view in (x, x.t().contiguous().t(), x[:, ::2].repeat(1, 2)[:, : n // 2 * 2]):
        for largest in (True, False):
            values, places = view.topk(k, largest=largest)
            want, at = view.sort(descending=largest, stable=True)
            assert taeda.equal(places, at[:, :k])
            taeda.testing.assert_close(values, want[:, :k], rtol=0, atol=0, equal_nan=True)
            some = view.topk(k, largest=largest, sorted=False)[1]
            assert taeda.equal(some.sort()[0], at[:, :k].sort()[0])


@pytest.mark.parametrize("descending", [False, True])
def test_lines_in_order_already(descending: bool) -> None:
    a = np.repeat(np.arange(500), 3).astype(np.int64)
    x = taeda.from_numpy(a[::-1].copy() if descending else a)
    values, places = x.sort(descending=descending)
    assert taeda.equal(values, x)
    assert taeda.equal(places, taeda.arange(1500))
    assert taeda.equal(x.sort(descending=not descending)[0], x.flip(0))
