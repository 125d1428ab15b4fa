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
