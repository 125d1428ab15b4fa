"""Planted mistakes are found by explain or strict, alone and in pairs, with what mends them."""

from __future__ import annotations

import itertools
import re

import pytest

import taeda

from .planted import MISTAKES, build, found_by_explain, found_by_strict, run

PAIRS = [p for p in itertools.combinations(MISTAKES, 2) if not p[0].slots & p[1].slots]
pytestmark = pytest.mark.filterwarnings("ignore:.*target size:UserWarning")


# What only shows in the order of calls, and what strict does not stop for.
BY_STRICT = {
    "zero_grad_after_backward", "two_steps", "two_backwards", "one_graph_twice", "no_backward"
}  # fmt: skip
BY_EXPLAIN = {
    "a_parameter_twice", "frozen_in_the_optimizer", "everything_frozen", "detached_between",
    "numpy_between", "a_new_tensor", "a_detached_loss", "layers_in_a_list",
    "a_layer_that_is_not_used", "several_numbers",
}  # fmt: skip


def ids(planted):
    return "+".join(m.name for m in planted)


def test_there_are_enough():
    assert len(MISTAKES) >= 25 and len(PAIRS) >= 100


@pytest.mark.parametrize("one", MISTAKES, ids=lambda m: m.name)
def test_alone(one):
    explained, raised = found_by_explain(one), found_by_strict(one)
    found = {**explained, **raised}
    assert bool(one.kinds & set(explained)) == (one.name not in BY_STRICT)
    assert bool(one.kinds & set(raised)) == (one.name not in BY_EXPLAIN)
    assert any(
        re.search(one.mend.replace("(", r"\(").replace(")", r"\)"), found[k])
        for k in one.kinds & set(found)
    )


@pytest.mark.parametrize("pair", PAIRS, ids=ids)
def test_in_pairs(pair):
    found = set(found_by_explain(*pair))
    if not all(one.kinds & found for one in pair):
        found |= set(found_by_strict(*pair))
    for one in pair:
        assert one.kinds & found, one.name


def test_nothing_is_found_where_nothing_is_wrong():
    assert not found_by_explain()
    p, model, optimizer = build()
    with taeda.strict(every=1):
        run(p, model, optimizer, 30, lambda loss: None)
