"""The mistakes that people make most: the type of the exception, and what its message must say.

Each line: what is called (`t` is taeda, or PyTorch beside it), the expected type, words of the
message. Where PyTorch is installed it must raise the same type.
"""

import importlib.util

import pytest

import taeda

HAS_TORCH = importlib.util.find_spec("torch") is not None

MISTAKES = [
    # shapes of products
    ("t.mm(x, y)", RuntimeError, "mm 2x3 4x5"),
    ("x @ y", RuntimeError, "matmul 2x3 4x5"),
    ("t.mm(x, x.double().t())", RuntimeError, "mm dtype float32 float64"),
    ("t.bmm(x, x)", RuntimeError, "bmm 3D [2, 3]"),
    ("t.mv(x, t.ones(2))", RuntimeError, "mv 2x3 (2)"),
    ("t.dot(v, t.ones(4))", RuntimeError, "dot 3 4"),
    ("nn.Linear(4, 2)(x)", RuntimeError, "linear [2, 3] [2, 4]"),
    ("nn.Linear(3, 2)(x.long())", RuntimeError, "linear int64 float32"),
    ("t.einsum('ij,jk', x, y)", RuntimeError, "einsum 3 4"),
    # layers
    ("nn.Conv2d(3, 4, 3)(t.ones(1, 2, 8, 8))", RuntimeError, "conv2d [1, 2, 8, 8] 3 channels"),
    ("nn.Conv2d(3, 4, 9)(t.ones(1, 3, 8, 8))", RuntimeError, "conv2d (8 x 8) (9 x 9)"),
    ("nn.Conv2d(3, 4, 3)(t.ones(3, 8))", RuntimeError, "conv2d 3D 4D [3, 8]"),
    ("nn.Conv2d(3, 4, 3, padding='full')", ValueError, "padding full same valid"),
    ("F.max_pool2d(t.ones(1, 1, 4, 4), 2, padding=2)", RuntimeError, "max_pool2d pad=2"),
    ("nn.BatchNorm1d(3)(t.ones(2, 4))", RuntimeError, "batch_norm 3 4"),
    ("nn.BatchNorm2d(3)(t.ones(2, 3))", ValueError, "4D 2D"),
    ("nn.LayerNorm(4)(x)", RuntimeError, "layer_norm [4] [2, 3]"),
    ("nn.LSTM(3, 2)(t.ones(4, 1, 5))", RuntimeError, "3 5"),
    ("F.dropout(x, 2)", ValueError, "dropout 0 1 2"),
    ("nn.Linear(1, 1).nothing", AttributeError, "Linear nothing"),
    ("nn.Module()(1)", NotImplementedError, "Module forward"),
    ("setattr(nn.Linear(1, 1), 'weight', t.ones(1))", TypeError, "Tensor weight Parameter"),
    ("nn.Sequential(1)", TypeError, "int Module"),
    ("F.pad(v, (1,))", RuntimeError, "pad even 1"),
    # joining, viewing, broadcasting
    ("t.cat([x, y])", RuntimeError, "cat 3 5 1"),
    ("t.cat(x)", TypeError, "cat tensors tuple Tensor"),
    ("t.stack([x, v])", RuntimeError, "stack [2, 3] [3] 1"),
    ("x.view(4)", RuntimeError, "view [4] 6"),
    ("x.view(-1, -1)", RuntimeError, "view [-1, -1]"),
    ("x.t().view(6)", RuntimeError, "view [6] [3, 2] reshape"),
    ("x.reshape(1.5)", TypeError, "reshape shape float"),
    ("x.expand(2, 4)", RuntimeError, "expand 4 3 1"),
    ("x + t.ones(4)", RuntimeError, "add 3 4 1"),
    ("x.permute(0)", RuntimeError, "permute [2, 3] [0]"),
    ("x.permute(0, 0)", RuntimeError, "permute [0, 0]"),
    ("x.transpose(0, 2)", IndexError, "transpose [-2, 1] 2"),
    ("x.unsqueeze(5)", IndexError, "unsqueeze [-3, 2] 5"),
    ("x.flatten(1, 0)", RuntimeError, "flatten 1 0"),
    ("x.split([1, 3])", RuntimeError, "split 2 [1, 3]"),
    ("v.add_(x)", RuntimeError, "add_ [3] [2, 3]"),
    # indexing
    ("x[5]", IndexError, "5 dimension 0 size 2"),
    ("x[[0], [7]]", IndexError, "7 dimension 1 size 3"),
    ("x[[0, 5]]", IndexError, "5 dimension 0 size 2"),
    ("x[0, 0, 0]", IndexError, "too many 2"),
    ("x[1.0]", IndexError, "integers slices float"),
    ("x[t.tensor([True])]", IndexError, "mask [1] [2, 3]"),
    ("x[::-1]", ValueError, "step"),
    ("x.index_select(0, t.tensor([9]))", IndexError, "index_select 9 dimension 0 size 2"),
    ("x.gather(0, t.ones(1, 3))", RuntimeError, "gather index int64"),
    ("x.gather(0, t.full((1, 3), 5))", RuntimeError, "gather 5 dimension 0 size 2"),
    ("nn.Embedding(3, 2)(v)", RuntimeError, "embedding indices Long Float"),
    ("nn.Embedding(3, 2)(t.tensor([3]))", IndexError, "embedding 3"),
    ("v.topk(4)", RuntimeError, "topk 4 3"),
    ("F.one_hot(t.tensor([3]), 2)", RuntimeError, "one_hot 2 3"),
    # losses
    ("F.cross_entropy(x, t.ones(2, dtype=t.int32))", RuntimeError, "Long Int"),
    ("F.cross_entropy(x, t.tensor([0, 3]))", IndexError, "3 out of bounds"),
    ("F.cross_entropy(x, t.tensor([0, 1, 2]))", ValueError, "batch_size (2) (3)"),
    ("F.cross_entropy(x, t.tensor([0, 1]), reduction='avg')", ValueError, "avg reduction"),
    ("F.binary_cross_entropy(x, t.ones(2))", ValueError, "[2] [2, 3]"),
    # gradients
    ("backward_twice(t)", RuntimeError, "second time freed"),
    ("(leaf * 2).backward()", RuntimeError, "scalar [2]"),
    ("t.ones(1).backward()", RuntimeError, "does not require grad"),
    ("(leaf * 2).backward(v)", RuntimeError, "[3] [2]"),
    ("leaf.add_(1)", RuntimeError, "add_ leaf in-place"),
    ("leaf.numpy()", RuntimeError, "numpy detach"),
    ("saved_then_changed(t)", RuntimeError, "ExpBackward0 version inplace"),
    ("t.ones(2, dtype=t.int64, requires_grad=True)", RuntimeError, "floating"),
    ("t.ones(2).long().requires_grad_()", RuntimeError, "floating int64"),
    ("setattr(leaf, 'grad', v)", RuntimeError, "[3] [2]"),
    # numbers, dtypes, devices
    ("x.item()", RuntimeError, "6 elements Scalar"),
    ("bool(x)", RuntimeError, "Boolean ambiguous"),
    ("float(v)", ValueError, "one element [3]"),
    ("x.sum(2)", IndexError, "sum [-2, 1] 2"),
    ("x.sum((0, 0))", RuntimeError, "sum 0 multiple"),
    ("t.tensor([1, 2]).mean()", RuntimeError, "mean dtype Long"),
    ("t.ones(0).max()", RuntimeError, "max dim"),
    ("~x", TypeError, "invert float32"),
    ("x & x", NotImplementedError, "bitwise_and Float"),
    ("x + 'a'", TypeError, "+ Tensor str"),
    ("t.ones(2).long().div_(2)", RuntimeError, "div_ Float Long"),
    ("t.ones(1, dtype=t.uint8).fill_(300)", RuntimeError, "fill_ 300 uint8 overflow"),
    ("t.tensor([[1, 2], [3]])", ValueError, "length 2 1"),
    ("t.ones(1, device='gpu')", RuntimeError, "device gpu cpu"),
    ("t.ones(1, dtype='float32')", TypeError, "ones dtype str"),
    ("t.ones(-1)", RuntimeError, "ones negative -1"),
    ("t.arange(1, 0)", RuntimeError, "arange bound step"),
    ("t.sum(x, dimension=1)", TypeError, "sum dimension"),
    ("t.exp(1.0)", TypeError, "exp input Tensor float"),
    ("t.multinomial(v, 4)", RuntimeError, "multinomial 4 3"),
    ("t.normal(v, -v)", RuntimeError, "normal std 0"),
    # modules' states and optimizers
    ("nn.Linear(1, 1).load_state_dict({'w': v})", RuntimeError, "Linear Missing weight w"),
    (
        "nn.Linear(1, 1).load_state_dict({'weight': x, 'bias': t.ones(1)})",
        RuntimeError,
        "Linear weight [2, 3] [1, 1]",
    ),
    ("t.optim.SGD([], lr=0.1)", ValueError, "SGD empty"),
    ("t.optim.SGD(leaf, lr=0.1)", TypeError, "SGD Tensor"),
    ("t.optim.SGD([leaf], lr=-1)", ValueError, "SGD -1"),
    ("t.optim.SGD([leaf * 2], lr=1)", ValueError, "SGD leaf"),
    ("t.load('/nonexistent/file.pt')", FileNotFoundError, "/nonexistent/file.pt"),
]


def backward_twice(t):
    a = t.ones(2, requires_grad=True)
    loss = (a * a).sum()
    loss.backward()
    loss.backward()


def saved_then_changed(t):
    b = t.ones(2, requires_grad=True).exp()
    b.mul_(2)
    b.sum().backward()


def make(source, t):
    names = {
        "t": t,
        "nn": t.nn,
        "F": t.nn.functional,
        "x": t.ones(2, 3),
        "y": t.ones(4, 5),
        "v": t.ones(3),
        "leaf": t.ones(2, requires_grad=True),
        "backward_twice": backward_twice,
        "saved_then_changed": saved_then_changed,
    }
    return eval(source, names)


@pytest.mark.parametrize(("source", "error", "words"), MISTAKES, ids=[m[0] for m in MISTAKES])
def test_message(source, error, words):
    with pytest.raises(error) as caught:
        make(source, taeda)
    assert type(caught.value) is error
    message = str(caught.value)
    # "[2, 3]" is one word
    for word in words.replace(", ", ",").split():
        assert word.replace(",", ", ") in message or word in message, f"{word!r} in {message!r}"


@pytest.mark.skipif(not HAS_TORCH, reason="PyTorch is not installed")
@pytest.mark.parametrize(("source", "error", "words"), MISTAKES, ids=[m[0] for m in MISTAKES])
def test_pytorch_raises_the_same(source, error, words):
    import torch

    with pytest.raises(error) as caught:
        make(source, torch)
    assert type(caught.value) is error
