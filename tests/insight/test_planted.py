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

# strict looks at backward passes and at the gradients of a step. Where one mistake leaves it none,
# what it would have seen there is hidden from it, until that mistake is mended; not from explain.
SEEN_IN_BACKWARD = {
    "head_only", "one_layer_forgotten", "head_replaced", "weight_replaced",
    "softmax_before_cross_entropy", "nll_of_logits", "sigmoid_before_its_own",
    "column_against_row", "row_against_column",
}  # fmt: skip
SEEN_IN_GRADIENTS = {"square_root_of_zero", "logarithm_of_zero"}
HIDDEN_BY = {
    "no_backward": SEEN_IN_BACKWARD | SEEN_IN_GRADIENTS,
    "several_numbers": SEEN_IN_BACKWARD,
    "zero_grad_after_backward": SEEN_IN_GRADIENTS,
    "of_another_model": {*SEEN_IN_GRADIENTS, "evaluation_mode"},  # the mode of which model?
}


def ids(planted):
    return "+".join(m.name for m in planted)


def mended(one, found):
    """Whether a mistake was found, with what it is about and the line that mends it."""
    texts = [found[kind] for kind in one.kinds & set(found)]
    pattern = one.mend.replace("(", r"\(").replace(")", r"\)")
    return any(re.search(pattern, text) and re.search(one.about, text) for text in texts)


def test_there_are_enough():
    assert len(MISTAKES) >= 25 and len(PAIRS) >= 100


@pytest.mark.parametrize("one", MISTAKES, ids=lambda m: m.name)
def test_alone(one):
    explained, raised = found_by_explain(one), found_by_strict(one)
    assert mended(one, explained) == (one.name not in BY_STRICT)
    assert mended(one, raised) == (one.name not in BY_EXPLAIN)


@pytest.mark.parametrize("pair", PAIRS, ids=ids)
def test_in_pairs(pair):
    """Each tool finds of both what it finds of each alone, named with the line that mends it."""
    explained, raised = found_by_explain(*pair), found_by_strict(*pair)
    for one, other in (pair, pair[::-1]):
        hidden = one.name in HIDDEN_BY.get(other.name, ())
        assert mended(one, explained) == (one.name not in BY_STRICT), one.name
        assert mended(one, raised) == (one.name not in BY_EXPLAIN and not hidden), one.name


def test_nothing_is_found_where_nothing_is_wrong():
    assert not found_by_explain()
    p, model, optimizer = build()
    with taeda.strict(every=1):
        run(p, model, optimizer, 30, lambda loss: None)
