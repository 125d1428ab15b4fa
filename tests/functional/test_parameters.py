"""Parameters: immutable, computed with as a whole, saved, compared; and memory that is donated."""

from __future__ import annotations

import copy
import doctest
import importlib
import pickle

import pytest

import taeda
from taeda import functional, nn
from taeda.functional import Parameters
from taeda.utils._pytree import tree_flatten, tree_map

MODULES = ["_parameters", "_difference", "_factory", "_optimizer", "_scheduler"]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    module = importlib.import_module(f"taeda.functional.{name}")
    failed, count = doctest.testmod(module, extraglobs={"taeda": taeda})
    assert not failed and count


def some(seed=0):
    taeda.manual_seed(seed)
    return Parameters({"a.weight": taeda.randn(2, 3), "a.bias": taeda.randn(3)})


def test_arithmetic():
    p, q = some(), some(1)
    for value, want in [
        (p + q, lambda a, b: a + b),
        (p - q, lambda a, b: a - b),
        (p * q, lambda a, b: a * b),
        (p / q, lambda a, b: a / b),
        (2 * p + 1, lambda a, b: 2 * a + 1),
        (1 - p / 2, lambda a, b: 1 - a / 2),
        (1 / p, lambda a, b: 1 / a),
        (abs(-p) ** 2, lambda a, b: (-a).abs() ** 2),
        (p * taeda.tensor(3.0), lambda a, b: a * 3),
    ]:
        assert list(value) == list(p)
        for name in p:
            assert taeda.equal(value[name], want(p[name], q[name]))
    vector = taeda.cat([p["a.weight"].reshape(-1), p["a.bias"]])
    assert taeda.equal(p.vector(), vector) and p.with_vector(vector) == p
    taeda.testing.assert_close(p.norm(), vector.norm())
    taeda.testing.assert_close(p.norm(float("inf")), vector.abs().max())
    taeda.testing.assert_close(p.dot(q), vector.dot(q.vector()))
    assert p.norms()["a.bias"] == pytest.approx(p["a.bias"].norm().item())
    assert p == some() and p != q and p != 3
    assert p.numel() == 9 and len(p) == 2
    assert p.to(taeda.float64)["a.bias"].dtype == taeda.float64
    for wrong in (
        lambda: p + q.select("*.bias"),
        lambda: p + taeda.ones(3),
        lambda: p.map(abs, {}),
    ):
        with pytest.raises(ValueError, match=r"Parameters\."):
            wrong()
    with pytest.raises(TypeError):
        p + "1"


def test_other_mappings():
    p = some()
    assert list(p.select("*.bias")) == ["a.bias"]
    assert p.replace({"a.bias": taeda.zeros(3)})["a.bias"].sum() == 0
    assert list(p | Parameters({"c": taeda.ones(1)})) == ["a.weight", "a.bias", "c"]
    assert p.map(lambda a, b: a - b, p).norm() == 0
    for wrong in (lambda: p["b"], lambda: p.select("b.*"), lambda: p.replace({"b": taeda.ones(1)})):
        with pytest.raises(KeyError):
            wrong()
    with pytest.raises(TypeError, match="item assignment"):
        p["a.bias"] = taeda.ones(3)
    with pytest.raises(TypeError, match="values tensors"):
        Parameters({"a": 1})
    assert repr(p) == "Parameters(9 numbers: a.weight (2, 3), a.bias (3,))"
    assert "... 4 more" in repr(Parameters({str(i): taeda.ones(1) for i in range(10)}))


def test_clipping_is_that_of_nn_utils():
    module = nn.Linear(5, 4)
    module(taeda.randn(3, 5)).square().sum().backward()
    gradient = Parameters({name: p.grad for name, p in module.named_parameters()})
    nn.utils.clip_grad_norm_(module.parameters(), 0.5)
    clipped = gradient.clip_norm(0.5)
    assert all(taeda.equal(clipped[n], p.grad) for n, p in module.named_parameters())
    assert gradient.norm() > 0.6


def test_trees_and_copies():
    p = some()
    leaves, tree = tree_flatten((p, 1))
    assert len(leaves) == 3 and tree.unflatten(leaves)[0] == p
    assert isinstance(tree_map(taeda.zeros_like, p), Parameters)
    assert pickle.loads(pickle.dumps(p)) == p == copy.deepcopy(p) and copy.copy(p) is p


def test_files(tmp_path):
    p = some()
    p.save(tmp_path / "p.safetensors", {"step": "3"})
    assert Parameters.load(tmp_path / "p.safetensors") == p
    assert taeda.equal(taeda.load(tmp_path / "p.safetensors")["a.bias"], p["a.bias"])
    layer = nn.Linear(3, 2)
    Parameters.of(layer).replace({"bias": taeda.ones(2)}).copy_to(layer)
    assert layer.bias.tolist() == [1, 1] and layer.bias.requires_grad
    with pytest.raises(KeyError, match=r"Linear has no 'a\.weight'"):
        p.copy_to(layer)


def test_differences():
    old = some()
    new = old.replace({"a.bias": old["a.bias"] + taeda.tensor([0.0, 3.0, 4.0])})
    diff = (new | Parameters({"b": taeda.ones(1)})).diff(old)
    assert diff.changed == ("a.bias",) and diff.added == ("b",) and diff.removed == ()
    change = diff["a.bias"]
    assert change.norm == pytest.approx(5.0) and change.largest == pytest.approx(4.0)
    assert (change.elements, change.of) == (2, 3)
    assert old.select("*.bias").diff(old).removed == ("a.weight",)
    assert "a.bias" in str(diff) and "added" in str(diff)
    with pytest.raises(ValueError, match="shape"):
        new.replace({"a.bias": taeda.ones(2)}).diff(old)


def test_changes_in_place_are_found(tmp_path):
    factory = functional.factory(nn.Linear, 3, 2)
    sgd = functional.optimizer(taeda.optim.SGD)
    p = factory.init(0)
    state, gradient = sgd.init(p), 1.0 * p
    model = factory(p)
    p["bias"].add_(1)
    for use in (
        lambda: factory(p),
        lambda: model(taeda.ones(3)),
        lambda: sgd.step(p, gradient, state),
        lambda: p.save(tmp_path / "x"),
        lambda: p.diff(gradient),
        lambda: pickle.dumps(p),
    ):
        with pytest.raises(RuntimeError, match="'bias' was changed in place"):
            use()
    tensor = taeda.ones(1)
    p = Parameters({"a": tensor})
    tensor.add_(1)
    assert p["a"].item() == 1


@pytest.mark.parametrize("name", ["SGD", "Adam", "Rprop", "Adafactor"])
def test_memory_is_reused(name):
    step = functional.optimizer(getattr(taeda.optim, name), lr=0.1)
    p = Parameters({"w": taeda.ones(300)})
    state = step.init(p)
    p, state = step.step(p, 1.0 * p, state)
    place = p._tensors["w"].data_ptr()
    kept = {t.data_ptr() for t in tree_flatten(state._values)[0] if taeda.is_tensor(t)}
    old, old_state, model_gradient = p, state, 1.0 * p
    p, state = step.step(p, model_gradient, state)
    assert p._tensors["w"].data_ptr() == place
    now = {t.data_ptr() for t in tree_flatten(state._values)[0] if taeda.is_tensor(t)}
    assert now == kept
    for use in (lambda: old["w"], lambda: old + 1, lambda: list(old), lambda: len(old)):
        with pytest.raises(RuntimeError, match=rf"donated to {name}\.step\(\).*donate=False"):
            use()
    with pytest.raises(RuntimeError, match=r"OptimizerState was donated"):
        old_state.values
    assert "donated" in repr(old) and "donated" in repr(old_state)


def test_what_somebody_holds_is_not_reused():
    adam = functional.optimizer(taeda.optim.Adam, lr=0.1)
    p = Parameters({"w": taeda.ones(3), "v": taeda.ones(3)})
    state = adam.init(p)
    p, state = adam.step(p, 1.0 * p, state)
    view, array = p["w"][1:], p["w"].numpy()
    mean = state.values["w"]["exp_avg"]
    before = view.tolist(), array.tolist(), mean.tolist()
    same, shared = p | Parameters({"w": taeda.zeros(3)}), state.replace(lr=1.0)
    p, state = adam.step(p, 1.0 * p, state)
    assert (view.tolist(), array.tolist(), mean.tolist()) == before
    assert same["v"].tolist() == [same["v"][0].item()] * 3 != p["v"].tolist()
    with pytest.raises(RuntimeError, match="donated"):
        shared.values


def test_keeping_the_old_ones():
    adam = functional.optimizer(taeda.optim.Adam, lr=0.1)
    p = Parameters({"w": taeda.ones(3)})
    state = adam.init(p)
    gradient = 2.0 * p
    first = adam.step(p, gradient, state, donate=False)
    again = adam.step(p, gradient, state, donate=False)
    assert first[0] == again[0] != p
    assert p["w"].tolist() == [1, 1, 1] and not state.values
    lower, _ = adam.step(p, gradient, state.replace(lr=0.001), donate=False)
    assert lower["w"].tolist() == pytest.approx([0.999] * 3)
    with pytest.raises(KeyError, match="'rate'"):
        state.replace(rate=1)


def test_arguments_of_a_step():
    sgd = functional.optimizer(taeda.optim.SGD, lr=0.25)
    p = Parameters({"w": taeda.ones(3)})
    state = sgd.init(p)
    p, state = sgd.step(p, {"w": taeda.ones(3)}, state)
    p, state = sgd.step(p, p, state)
    assert p["w"].tolist() == [0.5625] * 3
    for wrong in ({"w": taeda.ones(3)}, p, state), (p, 3, state), (p, p, None), (p, None, state):
        with pytest.raises(TypeError, match=r"SGD\.step"):
            sgd.step(*wrong)
