"""FlopCounterMode: the products of a program."""

from __future__ import annotations

import pytest

import taeda
from taeda import nn
from taeda.utils import flop_counter
from taeda.utils.flop_counter import FlopCounterMode


def count(f):
    with FlopCounterMode(display=False) as counter:
        f()
    return counter


def test_forward_and_backward():
    net = nn.Sequential(nn.Conv2d(3, 6, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(294, 10))
    x = taeda.randn(2, 3, 16, 16, requires_grad=True)
    conv, linear = 2 * 2 * 6 * 49 * 27, 2 * 2 * 294 * 10
    assert count(lambda: net(x)).get_total_flops() == conv + linear
    counter = count(lambda: net(x).sum().backward())
    assert counter.get_total_flops() == 3 * (conv + linear)
    by_module = counter.get_flop_counts()
    assert sum(by_module["Sequential.0"].values()) == conv
    assert sum(by_module["Sequential.3"].values()) == linear
    assert sum(by_module["Sequential"].values()) == conv + linear


def test_other_products():
    q = taeda.randn(2, 2, 5, 4)
    attention = count(lambda: nn.functional.scaled_dot_product_attention(q, q, q))
    assert attention.get_total_flops() == 2 * 2 * 2 * 5 * 5 * 8
    a = taeda.randn(4, 8)
    assert count(lambda: a @ a.T).get_total_flops() == 256
    assert count(lambda: taeda.addmm(taeda.ones(4), a, a.T)).get_total_flops() == 256
    assert count(lambda: taeda.ones(4, 4).addmm_(a, a.T)).get_total_flops() == 256
    assert count(lambda: taeda.einsum("ij,kj->ik", a, a)).get_total_flops() == 256
    lstm = nn.LSTM(8, 8)
    assert count(lambda: lstm(a[:, None])).get_total_flops() == 2 * 2 * 4 * 8 * 32
    transposed = nn.ConvTranspose1d(3, 6, 5)
    assert count(lambda: transposed(taeda.randn(2, 3, 7))).get_total_flops() == 2 * 42 * 30
    assert count(lambda: a + a).get_total_flops() == 0


def test_every_formula_is_that_of_an_op():
    formulas = set(taeda._C._op_traits("flops").values())
    assert formulas == set(flop_counter._FORMULAS)


def test_table(capsys):
    net = nn.Sequential(nn.Linear(8, 16), nn.Sequential(nn.Linear(16, 2)))
    with FlopCounterMode(depth=2) as counter:
        net(taeda.ones(4, 8))
    text = capsys.readouterr().out
    assert "Sequential.1 " in text and "Sequential.1.0" not in text and "100.00%" in text
    assert "Sequential.1.0" in counter.get_table(depth=3)
    with pytest.warns(UserWarning, match="mods"):
        FlopCounterMode(net)


def test_an_error_ends_the_count():
    class Fails(nn.Module):
        def forward(self, x):
            raise KeyError("mine")

    with pytest.raises(KeyError), FlopCounterMode():
        Fails()(taeda.ones(1))
    assert count(lambda: nn.Linear(8, 16)(taeda.ones(4, 8))).get_total_flops() == 1024


def test_totals_are_pytorchs():
    torch = pytest.importorskip("torch")
    from torch.utils.flop_counter import FlopCounterMode as Theirs

    totals = []
    for lib, counter in ((taeda, FlopCounterMode), (torch, Theirs)):
        lib.manual_seed(0)
        x = lib.randn(2, 5, 8, requires_grad=True)
        net = lib.nn.TransformerEncoderLayer(8, 2, 16)
        with counter(display=False) as c:
            net(x).sum().backward()
            lib.nn.Conv1d(5, 4, 3)(x).sum().backward()
            lib.nn.functional.conv_transpose1d(x, lib.ones(5, 2, 3)).sum().backward()
        totals.append(c.get_total_flops())
    assert totals[0] == totals[1]
