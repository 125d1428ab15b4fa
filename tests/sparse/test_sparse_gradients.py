"""Gradients of sparse tensors, and sparse gradients of embeddings, which optimizers take."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import taeda
from taeda import sparse
from tests.sparse.matrices import LAYOUTS, agree, close, dense_of, random_matrix

pytestmark = pytest.mark.filterwarnings("ignore:Sparse")  # what PyTorch says of its own

GRADIENTS = {
    "mm": lambda s, d: s @ d,
    "csr": lambda s, d: s.to_sparse_csr() @ d,
    "left": lambda s, d: d.t() @ s.t(),
    "left csr": lambda s, d: d.t() @ s.to_sparse_csr().t(),
    "mv": lambda s, d: s.mv(d.sum(1)),
    "addmm": lambda s, d: sparse.addmm(d[:1].sum(), s, d, beta=2.0, alpha=0.5),
    "spgemm": lambda s, d: (s @ s.t()).to_dense() @ d[:3],
    "to_dense": lambda s, d: s.to_dense().square() @ d,
    "coalesce": lambda s, d: s.coalesce().values().square(),
    "add": lambda s, d: (s + s * 2).to_dense().square(),
    "add to dense": lambda s, d: (d.t()[:, :1].expand(d.size(1), 4)[:3] + s).square(),
    "mul": lambda s, d: (s * d.t()[:3]).to_dense(),
    "mul sparse": lambda s, d: (s * (s + s)).to_dense(),
    "square": lambda s, d: s.square().sum(),
    "sum": lambda s, d: sparse.sum(s, 0).to_dense().square(),
    "softmax": lambda s, d: sparse.softmax(s, 1).to_dense(),
    "log_softmax": lambda s, d: sparse.log_softmax(s, 0).to_dense(),
    "index_select": lambda s, d: s.index_select(0, taeda.tensor([2, 0, 2])).to_dense().square(),
    "cat": lambda s, d: (taeda.cat([s, s], 1).to_dense()).square(),
}


@pytest.mark.parametrize("dtype", [taeda.float64, taeda.complex128])
@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name, dtype):
    if dtype.is_complex and "softmax" in name:
        pytest.skip("softmax takes real numbers")
    indices = taeda.tensor([[0, 2, 2, 0, 1], [1, 0, 3, 1, 2]])
    values = taeda.randn(5, dtype=dtype, requires_grad=True)
    dense = taeda.randn(4, 3, dtype=dtype, requires_grad=True)

    def function(values, dense):
        return GRADIENTS[name](taeda.sparse_coo_tensor(indices, values, (3, 4)), dense)

    assert taeda.autograd.gradcheck(function, (values, dense))
    assert taeda.autograd.gradgradcheck(function, (values, dense))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_sparse_leaf_has_a_sparse_gradient(layout):
    x = random_matrix(4, 5, 6, duplicates=False).to_sparse(layout=layout).requires_grad_()
    right = taeda.randn(5, 2, dtype=taeda.float64)
    assert x.is_leaf and x.requires_grad and x.grad is None
    sparse.mm(x, right).square().sum().backward()
    assert x.grad.layout is layout and x.grad._nnz() == x._nnz()
    dense = dense_of(x.detach()).requires_grad_()
    (dense @ right).square().sum().backward()
    agree(x.grad, taeda.where(dense_of(x.detach()) != 0, dense.grad, 0.0))
    x.grad = None
    assert x.grad is None
    y = (x * 2).sum()
    assert y.requires_grad and (x * 2).grad_fn is not None and not (x * 2).is_leaf
    with pytest.raises(RuntimeError, match="in-place"):
        x.mul_(2)


# ---- embeddings and optimizers ------------------------------------------------------------------


def test_embedding_gradients():
    index = taeda.tensor([[0, 3, 3], [1, 4, 0]])
    grads = []
    for flag in (False, True):
        table = taeda.nn.Embedding(
            6, 2, sparse=flag, padding_idx=1, _weight=taeda.arange(12.0).reshape(6, 2)
        )
        for _ in range(2):
            (
                table(index).square().sum() + table.weight[2].sum() * 0
            ).backward() if not flag else table(index).square().sum().backward()
        grads.append(table.weight.grad)
    assert grads[1].is_sparse and 1 not in grads[1]._indices()[0].tolist()
    agree(grads[1], grads[0])
    bag = taeda.nn.EmbeddingBag(6, 2, mode="sum", sparse=True)
    bag(index).sum().backward()
    assert bag.weight.grad.is_sparse
    with pytest.raises(ValueError, match="max mode"):
        taeda.nn.EmbeddingBag(6, 2, mode="max", sparse=True)(index)
    with pytest.raises(RuntimeError, match="scale_grad_by_freq"):
        taeda.nn.Embedding(6, 2, scale_grad_by_freq=True, sparse=True)(index)


def test_sparse_and_dense_gradients_meet():
    for order in (0, 1):
        table = taeda.nn.Embedding(4, 2, sparse=True, _weight=taeda.ones(4, 2))
        parts = [lambda: table(taeda.tensor([1, 1])).sum(), lambda: table.weight.square().sum()]
        (parts[order]() + parts[1 - order]()).backward()
        close(table.weight.grad, taeda.tensor([[2.0] * 2, [4.0] * 2, [2.0] * 2, [2.0] * 2]))
        table.weight.grad = None
        parts[order]().backward()
        parts[1 - order]().backward()
        assert not table.weight.grad.is_sparse
        close(table.weight.grad, taeda.tensor([[2.0] * 2, [4.0] * 2, [2.0] * 2, [2.0] * 2]))
    table.weight.grad = None
    parts[0]().backward()
    held = table.weight.grad
    assert held is table.weight.grad
    held.zero_()
    assert table.weight.grad._nnz() == 0


OPTIMIZERS = {
    "SGD": [
        {},
        {"momentum": 0.9},
        {"momentum": 0.9, "nesterov": True},
        {"momentum": 0.9, "dampening": 0.5},
        {"maximize": True},
    ],
    "Adagrad": [{}, {"lr_decay": 0.1}, {"initial_accumulator_value": 0.5}, {"maximize": True}],
    "SparseAdam": [{}, {"betas": (0.5, 0.9)}, {"maximize": True}, {"eps": 0.1}],
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers(name):
    torch = pytest.importorskip("torch")
    for options in OPTIMIZERS[name]:
        results = []
        for t in (taeda, torch):
            w = t.nn.Parameter(t.arange(8.0).reshape(4, 2))
            other = t.nn.Parameter(t.ones(2))
            params = [w] if name == "SparseAdam" else [w, other]
            optimizer = getattr(t.optim, name)(params, lr=0.1, **options)
            for step in range(3):
                w.grad = t.sparse_coo_tensor(
                    [[3, 0, 3]], t.arange(6.0).reshape(3, 2) - step, (4, 2)
                )
                other.grad = t.ones(2)
                optimizer.step()
                assert optimizer.zero_grad(set_to_none=False) is None and w.grad._nnz() == 0
            results.append([w.detach().numpy(), other.detach().numpy()])
        for ours, theirs in zip(*results, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


def test_optimizers_refuse():
    def with_gradient(sparse_gradient=True):
        w = taeda.nn.Parameter(taeda.ones(3))
        w.grad = taeda.sparse_coo_tensor([[1]], [1.0], (3,)) if sparse_gradient else taeda.ones(3)
        return w

    for name in (
        "Adam",
        "AdamW",
        "RMSprop",
        "Adadelta",
        "Adamax",
        "NAdam",
        "RAdam",
        "Rprop",
        "ASGD",
    ):
        w = with_gradient()
        with pytest.raises(RuntimeError, match=f"{name} does not support sparse gradients"):
            getattr(taeda.optim, name)([w]).step()
        assert w.tolist() == [1.0] * 3
    for name in ("SGD", "Adagrad"):
        with pytest.raises(RuntimeError, match="weight_decay is not compatible"):
            getattr(taeda.optim, name)([with_gradient()], weight_decay=0.1).step()
    with pytest.raises(RuntimeError, match="does not support dense gradients"):
        taeda.optim.SparseAdam([with_gradient(False)]).step()
    for options in ({"lr": 0.0}, {"eps": 0.0}, {"betas": (1.0, 0.9)}):
        with pytest.raises(ValueError, match="SparseAdam: Invalid"):
            taeda.optim.SparseAdam([with_gradient()], **options)
    with pytest.raises(ValueError, match="requires dense parameter tensors"):
        taeda.optim.SparseAdam([taeda.eye(2).to_sparse()])
    optimizer = taeda.optim.SparseAdam([with_gradient()])
    optimizer.step()
    optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    optimizer.step()
    assert optimizer.state_dict()["state"][0]["step"] == 2


@pytest.mark.parametrize("layout", ["coo", "csr"])
@pytest.mark.parametrize("masked", [None, False, True])
def test_gradcheck_of_sparse_inputs(layout, masked):
    """masked=True moves the elements that a matrix has, otherwise its zeros too."""
    gradcheck, gradgradcheck = taeda.autograd.gradcheck, taeda.autograd.gradgradcheck
    x = taeda.eye(3, dtype=taeda.float64)
    x[0, 2] = 2
    x = (x.to_sparse() if layout == "coo" else x.to_sparse_csr()).requires_grad_()
    w = taeda.randn(3, 2, dtype=taeda.float64, requires_grad=True)
    moved = []

    def product(x, w):
        moved.append(x._nnz())
        return (x @ w).sin()

    assert gradcheck(product, (x, w), masked=masked)
    assert set(moved) == {4 if masked else 9}
    assert gradcheck(product, (x, w), masked=masked, fast_mode=True)
    assert gradgradcheck(product, (x, w), masked=masked)

    class Wrong(taeda.autograd.Function):
        @staticmethod
        def forward(ctx, dense):
            return dense**2

        @staticmethod
        def backward(ctx, gradient):
            return gradient

    with pytest.raises(RuntimeError, match="Jacobian"):
        gradcheck(lambda x: Wrong.apply(x.to_dense()), x, masked=masked)
    with pytest.raises(ValueError, match="a result is sparse"):
        gradcheck(lambda x: x * 2, x, masked=masked)
