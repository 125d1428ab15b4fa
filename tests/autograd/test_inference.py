"""Tensors made in inference mode: what may and what may not be done with them outside it."""

from __future__ import annotations

import copy
import pickle

import pytest

import taeda
from taeda import nn


@pytest.fixture
def made_inside():
    with taeda.inference_mode():
        return taeda.ones(3)


IN_PLACE = {
    "add_": lambda x: x.add_(1),
    "zero_": lambda x: x.zero_(),
    "fill_": lambda x: x.fill_(2),
    "normal_": lambda x: x.normal_(),
    "of a view": lambda x: x[:2].mul_(2),
    "item": lambda x: x.__setitem__(0, 5.0),
    "copy_": lambda x: x.copy_(taeda.zeros(3)),
    "out": lambda x: taeda.add(taeda.ones(3), 1, out=x),
    "unsqueeze_": lambda x: x.unsqueeze_(0),
    "resize_": lambda x: x.resize_(4),
    "set_": lambda x: x.set_(taeda.ones(3)),
    "init": lambda x: nn.init.zeros_(x),
}


def test_what_is_made_inside():
    ordinary = taeda.ones(3, requires_grad=True)
    numbers = taeda.ones(2, dtype=taeda.complex64)
    with taeda.inference_mode():
        for made in (
            taeda.ones(2),
            taeda.tensor([1.0]),
            taeda.empty_strided((2,), (1,)),
            ordinary * 2,
            ordinary.clone(),
            nn.Linear(2, 2).weight,
        ):
            assert made.is_inference() and taeda.is_inference(made)
        assert taeda.ones(2)[0].is_inference()
        pairs = taeda.view_as_real(numbers)
        for view in (ordinary[1:], ordinary.detach(), ordinary.data, ordinary, pairs, numbers.imag):
            assert not view.is_inference()
        with taeda.inference_mode(False):
            assert not taeda.ones(2).is_inference()
        with taeda.enable_grad():
            assert not (ordinary * 2).requires_grad
    assert not taeda.ones(1).is_inference()


def test_what_is_made_of_it_outside(made_inside):
    x = made_inside
    for view in (x[1:], x.view(3, 1), x.detach(), x.data, nn.Parameter(x, requires_grad=False)):
        assert view.is_inference()
    copies = (
        x + 1,
        x.clone(),
        x.to(taeda.float64),
        copy.deepcopy(x),
        pickle.loads(pickle.dumps(x)),
    )
    for ordinary in copies:
        assert not ordinary.is_inference()


@pytest.mark.parametrize("change", IN_PLACE.values(), ids=IN_PLACE)
def test_no_change_in_place_outside(change, made_inside):
    message = "Inplace update to inference tensor outside InferenceMode is not allowed"
    for mode in (taeda.enable_grad, taeda.no_grad):
        with mode(), pytest.raises(RuntimeError, match=message):
            change(made_inside)
    assert made_inside.tolist() == [1, 1, 1]
    with taeda.inference_mode():
        change(made_inside)


def test_ordinary_tensors_may_be_changed_by_it(made_inside):
    total = taeda.zeros(3)
    total += made_inside
    assert total.tolist() == [1, 1, 1]
    total.data = made_inside
    assert total.is_inference()


def test_it_is_not_saved_for_backward(made_inside):
    p = taeda.ones(3, requires_grad=True)
    (p + made_inside).sum().backward()  # saves nothing
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        p * made_inside
    (p * made_inside.clone()).sum().backward()
    with pytest.raises(RuntimeError, match="Setting requires_grad=True on inference tensor"):
        made_inside.requires_grad_()
    with pytest.raises(RuntimeError, match="do not track version counter"):
        _ = made_inside._version


def test_modes_are_restored_after_errors():
    with pytest.raises(ZeroDivisionError), taeda.inference_mode():
        _ = 1 / 0
    assert not taeda.ones(1).is_inference() and not taeda.is_inference_mode_enabled()
