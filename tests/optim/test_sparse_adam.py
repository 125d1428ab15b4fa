"""SparseAdam beside PyTorch's over twenty steps, straight through and resumed from a state."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import taeda

torch = pytest.importorskip("torch", reason="compares with PyTorch")

STEPS = 20
OPTIONS = [{}, {"lr": 0.1, "betas": (0.5, 0.9)}, {"maximize": True}, {"eps": 0.1}]


def gradient(fw, step: int, dtype: str):
    """A different few rows of six at each step, one of them given twice."""
    rows = [step % 6, (step + 2) % 6, step % 6]
    values = (fw.arange(9.0).reshape(3, 3) - step).to(getattr(fw, dtype))
    return fw.sparse_coo_tensor([rows], values, (6, 3))


def trajectory(fw, dtype: str, options: dict, resumed: bool) -> np.ndarray:
    w = fw.nn.Parameter(fw.arange(18.0).reshape(6, 3).to(getattr(fw, dtype)))
    optimizer = fw.optim.SparseAdam([w], **options)
    seen = []
    for step in range(STEPS):
        if resumed and step == STEPS // 2:
            state = copy.deepcopy(optimizer.state_dict())
            optimizer = fw.optim.SparseAdam([w], lr=7.0)
            optimizer.load_state_dict(state)
        w.grad = gradient(fw, step, dtype)
        optimizer.step()
        seen.append(w.detach().clone().numpy())
    return np.stack(seen)


@pytest.mark.filterwarnings("ignore:Sparse")  # what PyTorch says of its own
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_trajectories(dtype, options):
    theirs = trajectory(torch, dtype, options, False)
    ours = trajectory(taeda, dtype, options, False)
    tolerance = 2e-6 if dtype == "float32" else 1e-12
    np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)
    np.testing.assert_array_equal(trajectory(taeda, dtype, options, True), ours)
