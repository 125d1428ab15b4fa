"""taeda.func and nn.grad beside PyTorch's."""

import pytest

import taeda
from taeda import nn


def test_functional_call_with_several_dictionaries():
    layer, x = nn.Linear(2, 2), taeda.ones(1, 2)
    weight, bias = {"weight": taeda.ones(2, 2)}, {"bias": taeda.zeros(2)}
    assert taeda.func.functional_call(layer, (weight, bias), (x,)).tolist() == [[2.0, 2.0]]
    with pytest.raises(ValueError, match=r"\['weight'\] appeared in multiple"):
        taeda.func.functional_call(layer, (weight, weight), x)
    with pytest.raises(ValueError, match="a sequence of dictionaries"):
        taeda.func.functional_call(layer, [1], x)


def test_stacked_state():
    models = [nn.BatchNorm1d(3) for _ in range(4)]
    parameters, buffers = taeda.func.stack_module_state(models)
    assert parameters["weight"].shape == (4, 3) and parameters["weight"].is_leaf
    assert parameters["weight"].requires_grad and buffers["running_var"].shape == (4, 3)
    models[0].eval()
    with pytest.raises(RuntimeError, match="training/eval"):
        taeda.func.stack_module_state(models)
    with pytest.raises(RuntimeError, match="same class"):
        taeda.func.stack_module_state([nn.Linear(2, 2), nn.Conv1d(1, 1, 1)])
    with pytest.raises(RuntimeError, match="at least one"):
        taeda.func.stack_module_state([])


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_gradients_of_convolutions(torch, same, to_torch, rank):
    x, w = taeda.randn(2, 4, *[6] * rank), taeda.randn(6, 2, *[3] * rank)
    settings = (2, 1, 1, 2)
    g = taeda.randn(getattr(nn.functional, f"conv{rank}d")(x, w, None, *settings).shape)
    for name, args in (("input", (x.shape, w, g)), ("weight", (x, w.shape, g))):
        ours = getattr(nn.grad, f"conv{rank}d_{name}")(*args, *settings)
        theirs = getattr(torch.nn.grad, f"conv{rank}d_{name}")
        same(ours, theirs(*(tuple(a) if isinstance(a, taeda.Size) else to_torch(a) for a in args),
                          *settings), 1e-4, 1e-4)  # fmt: skip


@pytest.mark.parametrize("size", [3, 400])
def test_gradients_that_do_not_fit_are_refused(size):
    x, w, g = taeda.ones(1, 1, 4, 4), taeda.ones(1, 1, 3, 3), taeda.ones(1, 1, size, size)
    settings = [1, 1], [0, 0], [1, 1], 1
    with pytest.raises(RuntimeError, match="reaches beyond the output"):
        taeda._C.ops._conv_weight(x, g, [3, 3], *settings)
    with pytest.raises(RuntimeError, match="reaches beyond the output"):
        taeda._C.ops._conv_input(g, w, [4, 4], *settings)


def test_reparametrized_modules():
    from taeda.nn.utils.stateless import _reparametrize_module

    layer = nn.Linear(2, 1)
    own, zeros = layer.weight, taeda.zeros(1, 2)
    with _reparametrize_module(layer, {"weight": zeros}):
        assert layer.weight is zeros
    assert layer.weight is own
    with (
        pytest.raises(RuntimeError, match="Missing key"),
        _reparametrize_module(layer, {"weight": zeros}, strict=True),
    ):
        pass
    with pytest.raises(ZeroDivisionError), _reparametrize_module(layer, {"weight": zeros}):
        raise ZeroDivisionError
    assert layer.weight is own


class _Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(taeda.ones(2))
        self.shift = taeda.ones(2)  # neither a parameter nor a buffer

    def forward(self, x):
        return x * self.weight + self.shift + getattr(self, "more", 0)


def test_functional_call_replaces_plain_attributes_and_adds_names():
    layer, x = _Scaled(), taeda.ones(2)
    given = {"shift": taeda.full((2,), 5.0), "more": taeda.full((2,), 10.0)}
    assert taeda.func.functional_call(layer, given, (x,)).tolist() == [16.0, 16.0]
    assert layer.shift.tolist() == [1.0, 1.0] and not hasattr(layer, "more")
    outer = nn.Sequential(layer)
    assert taeda.func.functional_call(outer, {"0.more": -x}, x).tolist() == [1.0, 1.0]
    assert not hasattr(layer, "more")


@pytest.mark.parametrize(
    ("name", "error"),
    [("1.weight", AttributeError), ("", KeyError), ("0", TypeError), ("0.in_features", TypeError)],
)
def test_functional_call_refuses_names_that_are_something_else(torch, name, error):
    for package in (taeda, torch):
        model = package.nn.Sequential(package.nn.Linear(1, 1))
        with pytest.raises(error):
            package.func.functional_call(model, {name: package.ones(1)}, (package.ones(1),))


def test_functional_call_of_modules_within_themselves():
    layer = _Scaled()
    layer.inner = nn.Module()
    layer.inner.outer = layer
    x, fives = taeda.ones(2), taeda.full((2,), 5.0)
    for name in ("weight", "inner.outer.weight"):
        assert taeda.func.functional_call(layer, {name: fives}, (x,)).tolist() == [6.0, 6.0]
    assert layer.weight.tolist() == [1.0, 1.0]
