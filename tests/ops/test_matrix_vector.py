"""Products of a matrix and a vector, of all lengths and steps."""

from __future__ import annotations

import numpy as np
import pytest

import taeda

TOLERANCE = {"float32": 2e-5, "float64": 1e-13}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("rows", "cols"), [(1, 64), (7, 255), (8, 256), (9, 301), (300, 65), (33, 4100), (600, 700)]
)
def test_values(dtype, rows, cols):
    a = taeda.randn(rows, cols, dtype=getattr(taeda, dtype))
    x, v = taeda.randn(cols, dtype=a.dtype), taeda.randn(rows, dtype=a.dtype)
    wide, near = a.double().numpy(), TOLERANCE[dtype] * (rows + cols) ** 0.5
    products = {
        "plain": (a @ x, wide @ x.double().numpy()),
        "turned": (a.t() @ v, wide.T @ v.double().numpy()),
        "row": (v.unsqueeze(0) @ a, wide.T @ v.double().numpy()),
        "part": (a[:, 1:].t() @ v, wide[:, 1:].T @ v.double().numpy()),
        "steps": (a @ x.repeat_interleave(2)[::2], wide @ x.double().numpy()),
    }
    for name, (ours, expected) in products.items():
        np.testing.assert_allclose(ours.squeeze(0).numpy(), expected, atol=near, err_msg=name)
    y = taeda.randn(cols, dtype=a.dtype)
    ours = taeda.addmv(y, a.t(), v, beta=-2, alpha=3)
    expected = 3 * wide.T @ v.double().numpy() - 2 * y.double().numpy()
    np.testing.assert_allclose(ours.numpy(), expected, atol=4 * near)


def test_what_is_not_finite():
    a, x = taeda.randn(400, 300), taeda.ones(300)
    a[3, 299] = float("nan")
    a[5, 0] = float("inf")
    assert (a @ x).isnan().nonzero().tolist() == [[3]]
    assert (a @ x).isinf().nonzero().tolist() == [[5]]
    assert (a.t() @ taeda.ones(400)).isnan().nonzero().tolist() == [[299]]
    nothing = taeda.full((300,), float("nan"))
    assert taeda.addmv(nothing, a[10:].t(), taeda.ones(390), beta=0).isfinite().all()
    assert (a * 0)[:, :0].mv(taeda.ones(0)).tolist() == [0.0] * 400


def test_threads_do_not_change_the_bits():
    a, x, v = taeda.randn(1500, 2111), taeda.randn(2111), taeda.randn(1500)
    before = taeda.get_num_threads()
    try:
        results = []
        for threads in (1, 2, 3):
            taeda.set_num_threads(threads)
            results.append((a @ x, a.t() @ v))
    finally:
        taeda.set_num_threads(before)
    for plain, turned in results[1:]:
        assert taeda.equal(plain, results[0][0])
        assert taeda.equal(turned, results[0][1])
