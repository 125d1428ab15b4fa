"""Nested tensors in autograd, transforms, copies and files."""

from __future__ import annotations

import copy
import io
import pickle

import numpy as np
import pytest

import taeda
from tests.nested.sequences import LENGTHS, arrays, nested, quietly, same


def test_autograd():
    x = nested(taeda)
    y = (x * x).sigmoid()
    (grad,) = taeda.autograd.grad(y.sum(), x, create_graph=True)
    assert grad.is_nested and grad.shape == x.shape
    (second,) = taeda.autograd.grad(grad.sum(), x)
    values = x.values().detach().requires_grad_()
    (expected,) = taeda.autograd.grad((values * values).sigmoid().sum(), values, create_graph=True)
    same(grad.values(), expected)
    same(second.values(), taeda.autograd.grad(expected.sum(), values)[0])
    weights = taeda.rand_like(x)
    y = x.exp()
    y.backward(weights)
    same(x.grad.values(), weights.values() * x.values().exp())
    with pytest.raises(RuntimeError, match="nested tensor of its sizes"):
        y.backward()
    x.grad = None
    seen = []
    x.register_hook(lambda g: seen.append(g) or g * 2)
    x.sum().backward()
    assert seen[0].is_nested and x.grad.values().sum() == 2 * x.numel()
    kept = x * 2
    kept.retain_grad()
    kept.sum().backward()
    assert kept.grad.is_nested and kept.retains_grad
    (grad,) = taeda.autograd.grad(
        taeda.ones(1, requires_grad=True).sum(), x, materialize_grads=True
    )
    assert grad.is_nested and grad.sum() == 0


def test_transforms():
    x = nested(taeda).detach()
    values = x.values()
    ones = x.new_ones(values.shape)
    direction = taeda.nested.nested_tensor_from_jagged(ones, x.offsets())
    value, tangent = taeda.func.jvp(lambda t: t * t, (x,), (direction,))
    same(value.values(), values * values)
    same(tangent.values(), 2 * values)
    (product,) = taeda.func.vjp(lambda t: t * t, x)[1](direction)
    same(product.values(), 2 * values)
    grad = taeda.func.grad(lambda t: (t**3).sum())
    same(grad(x).values(), 3 * values**2)
    assert not grad(x).requires_grad
    same(taeda.func.grad(lambda t: grad(t).sum())(x).values(), 6 * values)
    from taeda.autograd import forward_ad

    with forward_ad.dual_level():
        found = forward_ad.unpack_dual(forward_ad.make_dual(x, direction).sum(1))
        same(found.tangent, taeda.tensor(LENGTHS).double()[:, None].expand(4, 6))
        with pytest.raises(RuntimeError, match="must be nested"):
            forward_ad.make_dual(x, ones)
    leaf = nested(taeda)
    edge = taeda.autograd.graph.get_gradient_edge(leaf)
    assert taeda.autograd.grad(leaf.sum(), edge)[0].sum() == values.numel()


def test_inference_mode():
    with taeda.inference_mode():
        made = nested(taeda, dtype="int64") * 2
        assert (made * taeda.ones(4, 1, 1).long()).sum(1).shape == (4, 6)
    x = nested(taeda)
    with taeda.inference_mode():
        x.sum(1), x.softmax(1), x.to_padded_tensor(0.0)
    (x * taeda.ones(4, 1, 1, requires_grad=True)).softmax(1).to_padded_tensor(0.0).sum().backward()
    assert x.grad.is_nested


def test_values_that_are_differentiated():
    values = taeda.tensor(np.concatenate(arrays()), requires_grad=True)
    offsets = taeda.tensor(np.cumsum([0, *LENGTHS]))

    def function(values):
        x = taeda.nested.nested_tensor_from_jagged(values, offsets)
        return (x.softmax(1) * x.softmax(2)).sum(1), x.log_softmax(1).values()

    assert taeda.autograd.gradcheck(function, (values,))
    assert taeda.autograd.gradgradcheck(lambda v: function(v)[0], (values,))


def test_functions_that_take_no_nested_tensors():
    class Double(taeda.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    x = nested(taeda)
    with pytest.raises(NotImplementedError, match="Double.*nested tensors"):
        Double.apply(x)
    assert Double.apply(x.detach()).is_nested
    numbers = taeda.nested.nested_tensor([[1], [2, 3]], layout=taeda.jagged)
    with pytest.raises(NotImplementedError, match="nested tensors that it gives"):
        taeda.nn.Embedding(4, 2, sparse=True)(numbers)
    with pytest.raises(NotImplementedError, match="SGD: nested tensors"):
        taeda.optim.SGD([x], 0.1)
    with pytest.raises(NotImplementedError, match="nested tensors.*vmap"):
        taeda.vmap(lambda t: t.sum())(x)
    with pytest.raises(NotImplementedError, match=r"conv1d\(\).*nested tensors"):
        taeda.nn.Conv1d(6, 6, 1)(x.float())
    with pytest.raises(NotImplementedError, match=r"einsum\(\).*nested tensors"):
        taeda.einsum("bij,jk->bik", x, taeda.ones(6, 2))
    with pytest.raises(NotImplementedError, match="out=.*nested tensors"):
        taeda.add(x, 1, out=taeda.empty(3))
    with pytest.raises(NotImplementedError, match="assigned"):
        x[0] = 1
    with pytest.raises(NotImplementedError, match="nested"):
        x.storage()


def test_no_method_reads_the_memory_that_is_not_there():
    """Methods in C that are no ops would not ask the class."""
    inherited = ["__dir__", "__getstate__", "__reduce__", "__sizeof__", "_exchange_data", "_is_view", "element_size", "get_device", "is_complex", "is_conj", "is_floating_point", "is_neg", "is_signed"]  # fmt: skip
    kind = type(taeda.Tensor.size)
    methods = [n for n in dir(taeda.Tensor) if type(getattr(taeda.Tensor, n)) is kind]
    own = {n for base in type(nested(taeda)).__mro__[:2] for n in vars(base)}
    assert [n for n in methods if n not in own] == inherited


def test_copies_and_pickles():
    x = nested(taeda)
    for copied in (copy.copy(x), copy.deepcopy(x)):
        assert copied.shape == x.shape and copied.requires_grad
        same(copied, x)
    assert copy.deepcopy(x).values().data_ptr() != x.values().data_ptr()
    for copied in (copy.copy(x * 2), pickle.loads(pickle.dumps(x * 2))):
        assert copied.is_leaf and copied.requires_grad
        same(copied, x * 2)
    hollow = taeda.nested.narrow(taeda.ones(2, 3), 1, 0, taeda.tensor([1, 3]), layout=taeda.jagged)
    ragged = taeda.nested.nested_tensor([taeda.ones(2, 3), taeda.ones(1, 4)])
    strided = nested(taeda, layout=taeda.strided)
    both = {"x": x.detach(), "y": x.detach() * 2}
    for read in (lambda t: pickle.loads(pickle.dumps(t)), through_file):
        for tensor in (x, hollow, ragged, strided, x.detach().transpose(1, 2)):
            back = read(tensor)
            assert back.layout is tensor.layout and back.requires_grad == tensor.requires_grad
            same(list(back.unbind()), list(tensor.unbind()))
        back = read(both)
        assert back["x"].shape == back["y"].shape
    assert pickle.loads(pickle.dumps(taeda.jagged)) is taeda.jagged


def through_file(content):
    file = io.BytesIO()
    taeda.save(content, file)
    file.seek(0)
    return taeda.load(file)


def test_files_of_pytorch(tmp_path):
    torch = pytest.importorskip("torch")
    x = nested(taeda)
    taeda.save(
        {"x": x, "s": x.detach().unbind()[0], "r": nested(taeda, layout=taeda.strided)},
        tmp_path / "a.pt",
    )
    found = quietly(lambda: torch.load(tmp_path / "a.pt", weights_only=False))
    same(x, found["x"])
    assert found["x"].requires_grad
    same(nested(taeda, layout=taeda.strided), found["r"])
    theirs = quietly(nested, torch, LENGTHS, (6,), "float64", 0, torch.strided).detach()
    torch.save(theirs, tmp_path / "b.pt")
    same(taeda.load(tmp_path / "b.pt"), theirs)
