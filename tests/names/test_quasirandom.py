"""Sobol sequences: PyTorch's numbers."""

from __future__ import annotations

import pytest

import taeda
from taeda.quasirandom import SobolEngine
from tests.names.both import shown


@pytest.mark.parametrize("dimension", [1, 2, 3, 21, 1111])
@pytest.mark.parametrize("scramble", [False, True])
def test_pytorchs_numbers(dimension, scramble):
    torch = pytest.importorskip("torch")
    ours = SobolEngine(dimension, scramble, 5 if scramble else None)
    theirs = torch.quasirandom.SobolEngine(dimension, scramble, 5 if scramble else None)
    assert repr(ours) == repr(theirs)
    assert ours.sobolstate.tolist() == theirs.sobolstate.tolist()
    for n in (1, 7, 0, 20):
        if n:
            assert ours.draw(n).tolist() == theirs.draw(n).tolist()
        assert ours.quasi.tolist() == theirs.quasi.tolist()
    ours.fast_forward(2**20), theirs.fast_forward(2**20)
    for dtype in ("float32", "float64"):
        assert (
            ours.draw(3, dtype=getattr(taeda, dtype)).tolist()
            == theirs.draw(3, dtype=getattr(torch, dtype)).tolist()
        )
    assert ours.num_generated == theirs.num_generated
    assert ours.reset().draw_base2(3).tolist() == theirs.reset().draw_base2(3).tolist()


@pytest.mark.parametrize(
    "text",
    [
        "L.manual_seed(5); L.quasirandom.SobolEngine(2, True).draw(4)",
        "o = L.empty(0); L.quasirandom.SobolEngine(2).draw(4, out=o) is o, o",
        "L.quasirandom.SobolEngine(0)",
        "e = L.quasirandom.SobolEngine(2); e.draw(3); e.draw_base2(2)",
        "L.quasirandom.SobolEngine(2).draw(3, dtype=L.float16)",
    ],
)
def test_as_in_pytorch(text):
    torch = pytest.importorskip("torch")
    assert shown(taeda, text) == shown(torch, text)


def test_points_are_even():
    for scramble in (False, True):
        points = SobolEngine(8, scramble, 0).draw_base2(6, dtype=taeda.float64)
        # Each of 64 equal intervals holds one point, in each dimension.
        assert (points * 64).floor().sort(0).values.eq(taeda.arange(64.0).unsqueeze(1)).all()
    with pytest.raises(ValueError, match="1111"):
        SobolEngine(1112)
