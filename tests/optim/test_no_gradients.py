"""A first step without any gradient says so."""

from __future__ import annotations

import warnings

import pytest

import taeda


def caught(function):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        function()
    return [str(w.message) for w in found if "no parameter has a gradient" in str(w.message)]


@pytest.mark.parametrize("name", ["SGD", "Adam", "Adagrad", "Adafactor", "Muon", "SparseAdam"])
def test_once_per_optimizer(name):
    p, q = (taeda.ones(2, 2, requires_grad=True) for _ in range(2))
    optimizer = getattr(taeda.optim, name)([{"params": [p]}, {"params": [q]}], lr=0.1)
    (text,) = caught(optimizer.step)
    assert text.startswith(f"{name}.step") and "backward()" in text
    assert not caught(optimizer.step)
    assert taeda.equal(p, taeda.ones(2, 2))
    assert len(caught(getattr(taeda.optim, name)([p], lr=0.1).step)) == 1


def test_not_where_there_is_one():
    p, q = (taeda.ones(2, requires_grad=True) for _ in range(2))
    optimizer = taeda.optim.SGD([{"params": [p]}, {"params": [q]}], lr=0.1)
    q.sum().backward()
    assert not caught(optimizer.step)

    def closure():
        optimizer.zero_grad()
        loss = p.sum()
        loss.backward()
        return loss

    optimizer.zero_grad()
    assert not caught(lambda: optimizer.step(closure))
    assert not caught(optimizer.preview)


def test_the_warning_is_at_the_step():
    optimizer = taeda.optim.SGD([taeda.ones(2, requires_grad=True)], lr=0.1)
    with pytest.warns(UserWarning, match="no parameter") as found:
        optimizer.step()
    assert found[0].filename == __file__


def test_a_scaler_that_leaves_a_step_out():
    p = taeda.ones(2, requires_grad=True)
    optimizer = taeda.optim.SGD([p], lr=0.1)
    scaler = taeda.amp.GradScaler("cpu", init_scale=4.0)
    scaler.scale((p * float("inf")).sum()).backward()
    assert not caught(lambda: scaler.step(optimizer))
