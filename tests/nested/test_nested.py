"""Nested tensors of jagged layout beside PyTorch's."""

from __future__ import annotations

import re

import numpy as np
import pytest

import taeda
from tests.nested.sequences import LENGTHS, arrays, nested, quietly, same, weighted

# What both libraries do with `x`, (4, j, 6), and `y` of the same offsets.
EXPRESSIONS = """
x + y | x * 2.5 | 1 - x | -x | x / (y * y + 1) | x ** 2 | x.exp() | x.clamp(-1, 1) | x % 2.0
x.sigmoid() | L.tanh(x) | F.gelu(x) | F.silu(x) | F.relu(x) | F.leaky_relu(x) | F.softplus(x)
x > y | x == y | (x > 0).logical_not() | x.isnan() | L.where(x > 0, x, y) | L.maximum(x, y)
L.where(x > 0, x, 0.0) | x.masked_fill(x > 0, 0.0) | x.lerp(y, 0.5) | L.add(x, y, alpha=2)
x + L.arange(6.0).double() | L.arange(6.0).double() * x | x + L.ones(1, 6).double()
x * L.arange(24.0).double().reshape(4, 1, 6) | x * L.arange(4.0).double().reshape(4, 1, 1)
x + L.tensor(2.0) | x * L.arange(96.0).double().reshape(4, 4, 6) | x - x.mean(1, keepdim=True)
x.sum() | x.sum(1) | x.sum(-1) | x.sum((0, 1)) | x.sum(2, keepdim=True) | x.sum(1, keepdim=True)
x.mean() | x.mean(1) | x.mean(-1) | x.sum((0, 1, 2)) | x.amax(1) | x.amax(2) | x.amin(1)
x.max(1) | x.min(1) | x.max(2) | x.max() | x.argmax(1) | x.argmax(-1) | x.prod(2) | x.prod(1)
(x > 0).any(1) | (x > 0).all(1) | (x > 0).any() | (x > 0).sum(1) | x.softmax(1) | x.softmax(-1)
x.log_softmax(-1) | F.softmax(x, dim=-1) | x.transpose(1, 2) | x.transpose(1, 2) + 1
x.transpose(1, 2).contiguous() | x.transpose(1, 2).sum(1) | x.transpose(1, 2).sum(2)
x.unsqueeze(1) | x.unsqueeze(-1) | x.unsqueeze(-1).squeeze(-1) | x.select(2, 1) | x.select(0, 1)
x.narrow(2, 1, 3) | x.chunk(3, -1) | x.chunk(2, 0) | x.chunk(3, 0) | x.split(2, -1)
x.split([1, 5], -1) | L.cat([x, y], -1) | L.stack([x, y], -1) | L.stack([x, y], 2)
x.unflatten(-1, (2, 3)) | x.unflatten(-1, (2, 3)).flatten(2, 3) | x.view(4, -1, 2, 3)
x.view(4, x.size(1), 3, 2) | x.reshape(-1, -1, 2, 3) | x.reshape(4, x.size(1), 1, 6) | x.permute(0, 2, 1)
x.expand(4, x.size(1), 6) | x.unsqueeze(-1).expand(-1, -1, -1, 2) | x.mT | x.movedim(1, 2)
x.to_padded_tensor(0.0) | x.to_padded_tensor(-1.0, (4, 7, 6)) | x.transpose(1, 2).to_padded_tensor(2.0)
L.nested.to_padded_tensor(x, 0.0, output_size=(4, 3, 6)) | x.unbind() | x[0] | x[-1] | x[0, 1]
x[..., 0] | x[..., 1:3] | x[..., None] | x[1, :, 2] | x.detach() | x.clone() | x.float() | x.half()
x.to(L.float32) | x.cpu() | x.type_as(x.float()) | x.bool() | L.zeros_like(x) | L.ones_like(x)
L.full_like(x, 2.0) | L.zeros_like(x, dtype=L.int64) | x @ L.arange(12.0).double().reshape(6, 2)
L.matmul(x, L.arange(48.0).double().reshape(4, 6, 2)) | x.bmm(L.arange(48.0).double().reshape(4, 6, 2))
x.transpose(1, 2) @ y | F.linear(x, L.arange(12.0).double().reshape(2, 6))
F.linear(x, L.ones(2, 6).double(), L.ones(2).double()) | F.layer_norm(x, (6,)) | F.rms_norm(x, (6,))
F.layer_norm(x, (6,), L.arange(6.0).double(), L.ones(6).double()) | F.dropout(x, 0.5, training=False)
x.numel() | x.dim() | x.ndim | len(x) | x.is_contiguous() | x.is_nested | x.requires_grad
x.size(0) | x.size(2) | x.shape[1] == y.shape[1] | x.shape == y.shape | x.element_size() | x.nbytes
x.values() | x.offsets() | x.lengths() | x.transpose(1, 2).values() | x.is_same_size(y)
x._values | x._offsets | x._max_seqlen | x._min_seqlen | x.transpose(1, 2)._ragged_idx
"""
ALL = [e.strip() for line in EXPRESSIONS.strip().splitlines() for e in line.split(" | ")]


# Where PyTorch has a derivative that is right.
DIFFERENTIATED = """
x + y | x / (y * y + 1) | x.sigmoid() | F.gelu(x) | x * L.arange(6.0).double() | x.lerp(y, 0.5)
x.sum() | x.softmax(-1) | F.layer_norm(x, (6,)) | x.unflatten(-1, (2, 3))
L.cat([x, y], -1) | x.chunk(3, -1) | x @ L.arange(12.0).double().reshape(6, 2) | x.unbind()
F.linear(x, L.ones(2, 6).double(), L.ones(2).double()) | x.to_padded_tensor(0.0)
"""
BOTH = [e.strip() for line in DIFFERENTIATED.strip().splitlines() for e in line.split(" | ")]


def values_of(library, seed):
    return library.tensor(np.concatenate(arrays(seed=seed))).requires_grad_()


def evaluate(library, expression, first, second):
    """An expression of `x` and `y` with these values."""
    make, known = library.nested.nested_tensor_from_jagged, {"min_seqlen": 1, "max_seqlen": 4}
    x = make(first, library.tensor(np.cumsum([0, *LENGTHS])), **known)
    y = make(second, x.offsets(), **known)
    names = {"L": library, "F": library.nn.functional, "x": x, "y": y}
    return eval(expression, names)


@pytest.mark.parametrize("expression", ALL)
def test_expressions(expression):
    torch = pytest.importorskip("torch")
    ours = evaluate(taeda, expression, values_of(taeda, 0), values_of(taeda, 1))
    theirs = quietly(evaluate, torch, expression, values_of(torch, 0), values_of(torch, 1))
    same(ours, theirs, 1e-3 if "half" in expression else 1e-5 if "float" in expression else 1e-9)


@pytest.mark.parametrize("expression", BOTH)
def test_gradients(expression):
    torch = pytest.importorskip("torch")

    def gradients(L):
        leaves = values_of(L, 0), values_of(L, 1)
        weighted(L, evaluate(L, expression, *leaves)).backward()
        return [leaf.grad for leaf in leaves]

    for a, b in zip(gradients(taeda), quietly(gradients, torch), strict=True):
        assert (a is None) == (b is None)
        if b is not None:
            same(a, b)


@pytest.mark.parametrize("expression", ALL)
def test_derivatives(expression):
    if "float" in expression or "half" in expression:
        expression = f"({expression}).double()"

    def dense(first, second):
        result = evaluate(taeda, expression, first, second)
        parts = result if isinstance(result, (tuple, list)) else [result]
        return [p.values() if getattr(p, "is_nested", False) else p for p in parts]

    leaves = values_of(taeda, 0), values_of(taeda, 1)
    found = enumerate(dense(*leaves))
    kept = [i for i, p in found if isinstance(p, taeda.Tensor) and p.requires_grad]
    if kept:
        loose = "float" in expression or "half" in expression
        tolerance = {"eps": 1e-1, "atol": 1e-1} if loose else {}

        def function(*leaves):
            parts = dense(*leaves)
            return tuple(parts[i] for i in kept)

        assert taeda.autograd.gradcheck(function, leaves, **tolerance)


# Errors, with the type that PyTorch raises.
ERRORS = """
x.sum(0) | x.sum((1, 2)) | x.sum((0, 2)) | x.softmax(0) | x.transpose(0, 1) | x.unsqueeze(0)
x.squeeze(1) | x.squeeze(0) | x.select(1, 0) | x.narrow(1, 0, 1) | x.narrow(0, 0, 1) | x.chunk(2, 1)
x.split(1, 0) | L.cat([x, y], 0) | L.cat([x, y], 1) | L.stack([x, y], 0) | x.flatten(1, 2)
x.reshape(4, -1) | x.reshape(-1, 6) | x.permute(1, 0, 2) | x + nested(L, seed=3) | x + L.ones(4, 6)
x + y.unsqueeze(1) | x @ y | x @ y.transpose(1, 2) | x @ L.ones(6) | F.layer_norm(x, (4, 6)) | x[9]
x[None] | x.unbind(1) | bool(x) | x.item() | x.tril() | x.t() | x.size(3)
F.batch_norm(x, None, None, training=True) | x.size(1) > 3
L.nested.nested_tensor([], layout=L.jagged) | L.nested.nested_tensor([L.ones(2, 3), L.ones(3, 2)], layout=L.jagged)
L.nested.nested_tensor([L.ones(2, 3), L.ones(2)], layout=L.jagged) | L.nested.nested_tensor([1, 2], layout=L.jagged)
L.nested.nested_tensor([L.ones(2), L.ones(2).double()], layout=L.jagged) | L.nested.nested_tensor(3, layout=L.jagged)
L.nested.nested_tensor([L.ones(2)], layout=L.sparse_coo) | L.nested.as_nested_tensor(x)
L.nested.nested_tensor_from_jagged(L.ones(3)) | L.nested.nested_tensor_from_jagged(L.ones(5, 2), [0, 2, 5])
L.nested.nested_tensor_from_jagged(L.ones(5), L.tensor([0, 5]), jagged_dim=0)
L.nested.narrow(L.ones(2, 3), 0, 0, 1, layout=L.jagged) | L.nested.narrow(L.ones(2, 3), 1, 0, 1)
L.nested.narrow(L.ones(2, 3), 1, 0, L.tensor([1, 2]))
"""
WRONG = [e.strip() for line in ERRORS.strip().splitlines() for e in line.split(" | ")]


@pytest.mark.parametrize("expression", WRONG)
def test_errors(expression):
    torch = pytest.importorskip("torch")

    def error(library):
        x = nested(library)
        names = {"L": library, "F": library.nn.functional, "x": x, "y": x * 2, "nested": nested}
        with pytest.raises(Exception) as caught:
            eval(expression, names)
        return caught.type

    ours, theirs = error(taeda), quietly(error, torch)
    if theirs is AttributeError:  # PyTorch's has no method for it, in its own code
        theirs = (RuntimeError, NotImplementedError, TypeError)
    assert issubclass(ours, theirs)


# What PyTorch does not have: against each sequence by itself. `s` is a sequence.
MORE = [
    ("x.log_softmax(1)", "s.log_softmax(0)"),
    ("x.logsumexp(1)", "s.logsumexp(0)"),
    ("x.logsumexp(2)", "s.logsumexp(1)"),
    ("x.cumsum(2)", "s.cumsum(1)"),
    ("x.flip(2)", "s.flip(1)"),
    ("x.sort(-1)[0]", "s.sort(-1)[0]"),
    ("x.topk(2)[0]", "s.topk(2)[0]"),
    ("x.var(2)", "s.var(1)"),
    ("x.std(2, keepdim=True)", "s.std(1, keepdim=True)"),
    ("x.norm(dim=2)", "s.norm(dim=1)"),
    ("F.normalize(x, dim=-1)", "F.normalize(s, dim=-1)"),
    ("F.glu(x)", "F.glu(s)"),
    ("F.pad(x, (1, 2))", "F.pad(s, (1, 2))"),
    ("x.repeat(1, 1, 2)", "s.repeat(1, 2)"),
    ("x.repeat_interleave(2, 2)", "s.repeat_interleave(2, 1)"),
    ("x.index_select(2, taeda.tensor([4, 0]))", "s.index_select(1, taeda.tensor([4, 0]))"),
    ("x.gather(2, x.argsort(2))", "s.gather(1, s.argsort(1))"),
    ("x // 2", "s // 2"),
    ("taeda.addcmul(x, x, x)", "taeda.addcmul(s, s, s)"),
    ("x.unsqueeze(1).squeeze(1)", "s"),
    ("x.nansum(1)", "s.nansum(0)"),
    ("x.count_nonzero(1)", "s.count_nonzero(0)"),
    ("x[:, :, 1]", "s[:, 1]"),
    ("x[:, :, 1:4:2]", "s[:, 1:4:2]"),
    ("taeda.arange(6.0).double().reshape(1, 6) @ x.mT", "taeda.arange(6.0).double()[None] @ s.mT"),
    ("F.prelu(x, taeda.tensor([0.1]).double())", "F.prelu(s, taeda.tensor([0.1]).double())"),
    ("x.masked_fill(taeda.arange(6) > 2, 0.0)", "s.masked_fill(taeda.arange(6) > 2, 0.0)"),
]


@pytest.mark.parametrize(("expression", "alone"), MORE)
def test_beyond_pytorch(expression, alone):
    x = nested(taeda)
    leaves = [taeda.tensor(a, requires_grad=True) for a in arrays()]
    names = {"taeda": taeda, "F": taeda.nn.functional}
    found = eval(expression, names | {"x": x})
    expected = [eval(alone, names | {"s": s}) for s in leaves]
    assert len(found) == len(expected)
    for a, b in zip(found.unbind(), expected, strict=True):
        same(a, b)
    if not expected[0].requires_grad:
        return
    sum(p.sin().sum() for p in found.unbind()).backward()
    sum(p.sin().sum() for p in expected).backward()
    for a, leaf in zip(x.grad.unbind(), leaves, strict=True):
        same(a, leaf.grad)


def test_whole_batches():
    x = nested(taeda)
    parts = [taeda.tensor(a) for a in arrays()]
    for index in ([2, 0], slice(1, 3), taeda.tensor([3, 3, 1]), taeda.tensor([True, False] * 2)):
        numbers = taeda.arange(4)[index].tolist()
        taken = x[index]
        same(list(taken.unbind()), [parts[i] for i in numbers])
        taken.sum().backward()
    flat = taeda.cat([p.reshape(-1) for p in parts])
    y = nested(taeda, seed=1)
    z = taeda.nested.nested_tensor_from_jagged(y.values(), x.offsets())
    other = taeda.cat([p.reshape(-1) for p in y.unbind()])
    F = taeda.nn.functional
    for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"):
        same(getattr(F, name)(x, z), getattr(F, name)(flat, other))
    assert taeda.equal(x, x.clone()) and not taeda.equal(x, z) and taeda.allclose(x, x + 1e-12)
    same(x.masked_select(x > 0), flat[flat > 0])


def test_in_place():
    x = nested(taeda).detach()
    parts = x.clone().unbind()
    result = x.add_(1).mul_(2).masked_fill_(x > 3, 0.0)
    assert result is x
    same(list(x.unbind()), [((p + 1) * 2).masked_fill((p + 1) * 2 > 3, 0.0) for p in parts])
    same(x.copy_(x * 2).unbind()[0], x.unbind()[0])
    assert x.zero_().sum() == 0
    with pytest.raises(RuntimeError, match="add_.*dense"):
        taeda.ones(6).double().add_(x)
    leaf = nested(taeda)
    with pytest.raises(RuntimeError, match="in-place"):
        leaf.add_(1)


def test_random():
    x = nested(taeda, lengths=[50, 30])
    dropped = taeda.nn.functional.dropout(x, 0.5)
    kept = dropped.values() != 0
    same(dropped.values(), x.values() * 2 * kept)
    assert 100 < int(kept.sum()) < 380
    for name in ("rand_like", "randn_like", "empty_like"):
        made = getattr(taeda, name)(x)
        assert made.shape == x.shape and not made.requires_grad
    assert len(set(taeda.rand_like(x).values().flatten().tolist())) == 80 * 6


# ---- holes --------------------------------------------------------------------------------------


def test_holes():
    dense = taeda.arange(40.0, dtype=taeda.float64).reshape(4, 5, 2).requires_grad_()
    starts, lengths = taeda.tensor([0, 1, 2, 0]), taeda.tensor([2, 3, 1, 5])
    x = taeda.nested.narrow(dense, 1, starts, lengths, layout=taeda.jagged)
    parts = [dense[i, s : s + n] for i, (s, n) in enumerate(((0, 2), (1, 3), (2, 1), (0, 5)))]
    assert x.lengths().tolist() == [2, 3, 1, 5] and not x.is_contiguous()
    assert x.values().data_ptr() == dense.data_ptr()
    same(list(x.unbind()), parts)
    same(list((x + 1).unbind()), [p + 1 for p in parts])
    same(list((x * taeda.arange(4.0).double().reshape(4, 1, 1)).unbind()),
         [p * i for i, p in enumerate(parts)])  # fmt: skip
    same(x.sum(1), taeda.stack([p.sum(0) for p in parts]))
    same(x.sum(), sum(p.sum() for p in parts))
    same(x.to_padded_tensor(0.0)[1, :3], parts[1])
    packed = x.contiguous()
    assert packed.is_contiguous() and packed.offsets().tolist() == [0, 2, 5, 6, 11]
    same(list(x.softmax(1).unbind()), [p.softmax(0) for p in parts])
    (x.softmax(1) * x).sum().backward()
    grad, dense.grad = dense.grad, None
    sum((p.softmax(0) * p).sum() for p in parts).backward()
    same(grad, dense.grad)


@pytest.mark.parametrize("lengths", [[0, 3], [3, 0, 2], [0, 0]])
def test_empty_sequences(lengths):
    x = nested(taeda, lengths)
    parts = [taeda.tensor(a) for a in arrays(lengths)]
    same(list(x.unbind()), parts)
    same(x.sum(1), taeda.stack([p.sum(0) for p in parts]))
    same(list(x.softmax(1).unbind()), [p.softmax(0) for p in parts])
    assert x.to_padded_tensor(0.0).shape == (len(lengths), max(lengths), 6)
    (x.softmax(1) * 2).sum().backward()


# ---- making them --------------------------------------------------------------------------------

MAKE = """
N.nested_tensor([[1, 2], [3]], layout=L.jagged) | N.nested_tensor([a, b], layout=L.jagged, dtype=L.float64)
N.nested_tensor(d, layout=L.jagged) | N.as_nested_tensor(d, layout=L.jagged) | N.as_nested_tensor((a, b), layout=L.jagged)
N.nested_tensor([a, a], layout=L.jagged) | N.nested_tensor([a.T, b.T], layout=L.jagged)
N.nested_tensor([L.ones(0, 3), a], layout=L.jagged) | N.nested_tensor([a[None], b[None]], layout=L.jagged)
N.nested_tensor_from_jagged(b, L.tensor([0, 1, 4])) | N.nested_tensor_from_jagged(b, lengths=L.tensor([1, 3]))
N.nested_tensor_from_jagged(b, L.tensor([0, 2, 4]), L.tensor([1, 2]))
N.nested_tensor_from_jagged(b.T, L.tensor([0, 2, 4]), jagged_dim=2)
N.nested_tensor_from_jagged(b, L.tensor([0, 1, 4]), min_seqlen=1, max_seqlen=3)
N.nested_tensor_from_jagged(b, L.tensor([0, 1, 4], dtype=L.int32))
N.narrow(d, 1, 0, 1, layout=L.jagged) | N.narrow(d, 1, L.tensor([0, 1]), 1, layout=L.jagged)
N.narrow(d, 1, 0, L.tensor([1, 2]), layout=L.jagged) | N.narrow(d, 0, 0, 1)
N.masked_select(d, d > 3) | N.masked_select(b, L.tensor([True, False, True])) | N.masked_select(b[0], b[0] > 0)
N.nested_tensor([a, b]) | N.nested_tensor([a, b[:, :2]]) | N.as_nested_tensor([a, b]) | N.as_nested_tensor(d)
N.nested_tensor([a, b[:, :2]]).to_padded_tensor(0.5) | N.nested_tensor([a, b[:, :2]]) * 2
N.nested_tensor([a, b]) + N.nested_tensor([b[:2], b]) | N.nested_tensor([a, b]).to_padded_tensor(-1.0)
F.linear(N.nested_tensor([a, b]), L.ones(2, 3)) | N.nested_tensor([a, b]) @ N.nested_tensor([a, b]).transpose(1, 2)
N.nested_tensor([a, b]).values() | N.nested_tensor([a, b]).size(-1) | L.cat([N.nested_tensor([a, b])] * 2)
F.scaled_dot_product_attention(*[N.nested_tensor([a, b])] * 3) | N.nested_tensor([a, b]).chunk(3, -1)
F.softmax(N.nested_tensor([a, b]), -1) | N.nested_tensor([a, b]).transpose(1, 2) | N.nested_tensor([a, b])[1, 2]
N.nested_tensor([a, b]).reshape(2, -1, 3, 1) | N.nested_tensor([a, b]).sum(-1, keepdim=True) | N.nested_tensor([a, b]) > 1
"""
MAKERS = [e.strip() for line in MAKE.strip().splitlines() for e in line.split(" | ")]


@pytest.mark.parametrize("expression", MAKERS)
def test_making(expression):
    torch = pytest.importorskip("torch")

    def made(L):
        b = L.arange(12.0).reshape(4, 3)
        d = L.arange(12.0).reshape(2, 2, 3)
        names = {"L": L, "N": L.nested, "F": L.nn.functional, "a": b[1:3], "b": b, "d": d}
        return eval(expression, names)

    ours, theirs = made(taeda), quietly(made, torch)
    same(ours, theirs, 1e-5)
    if not hasattr(theirs, "is_nested") or not theirs.is_nested:
        return
    text = [re.sub(r"j\d+", "j", repr(x)).replace("taeda", "torch") for x in (ours, theirs)]
    if "attention" not in expression and "softmax" not in expression:
        assert text[0] == text[1]


def test_no_sequences():
    empty = taeda.nested.nested_tensor([])
    assert len(empty) == 0 and empty.unbind() == () and repr(empty) == "nested_tensor([\n\n])"


def test_gradients_of_parts():
    parts = [taeda.tensor(a, requires_grad=True) for a in arrays()]
    x = taeda.nested.as_nested_tensor(parts, layout=taeda.jagged)
    (x * x).sum().backward()
    for p in parts:
        same(p.grad, 2 * p)
    copied = taeda.nested.nested_tensor(parts, layout=taeda.jagged)
    assert not copied.requires_grad and copied.is_leaf
    assert copied.values().data_ptr() != parts[0].data_ptr()
    one = taeda.nested.nested_tensor(parts[:1], layout=taeda.jagged)
    assert one.values().data_ptr() != parts[0].data_ptr()
    wide = taeda.arange(12.0).reshape(2, 2, 3).requires_grad_()
    taeda.nested.as_nested_tensor(wide, layout=taeda.jagged).sum().backward()
    assert wide.grad.tolist() == taeda.ones(2, 2, 3).tolist()


def test_places_are_checked():
    from_jagged = taeda.nested.nested_tensor_from_jagged
    values = taeda.ones(5, 2)
    for offsets in ([0, 3, 2, 5], [0, 6], [-1, 5]):
        with pytest.raises(RuntimeError, match="must not decrease"):
            from_jagged(values, taeda.tensor(offsets))
    with pytest.raises(RuntimeError, match="1-D tensor of integers"):
        from_jagged(values, taeda.tensor([0.0, 5.0]))
    with pytest.raises(RuntimeError, match="one more than lengths"):
        from_jagged(values, taeda.tensor([0, 5]), taeda.tensor([1, 2]))
    with pytest.raises(RuntimeError, match="no dimension 3"):
        from_jagged(values, taeda.tensor([0, 5]), jagged_dim=3)
    with pytest.raises(RuntimeError, match="within the 3"):
        taeda.nested.narrow(taeda.ones(2, 3), 1, 0, taeda.tensor([1, 4]), layout=taeda.jagged)
    with pytest.raises(RuntimeError, match="accelerator|pin"):
        taeda.nested.nested_tensor([values], layout=taeda.jagged, pin_memory=True)
    with pytest.raises(RuntimeError, match="do not bound"):
        from_jagged(values, taeda.tensor([0, 2, 5]), max_seqlen=2)
    with pytest.raises(RuntimeError, match="output_size"):
        nested(taeda).to_padded_tensor(0.0, (3, 4, 6))
    with pytest.raises(NotImplementedError, match="nested tensor is needed"):
        values.to_padded_tensor(0.0)


@pytest.mark.parametrize("lengths", [[3, 3], [2, 3]])
def test_padded_is_a_copy(lengths):
    x = nested(taeda, lengths).detach()
    padded = x.to_padded_tensor(0.0)
    wide = x.to_padded_tensor(0.0, (2, 3, 6))
    before = x.values().clone()
    padded.zero_(), wide.zero_()
    same(x.values(), before)
    known = taeda.nested.nested_tensor_from_jagged(
        x.values(), taeda.tensor([0, lengths[0], sum(lengths)]), min_seqlen=1, max_seqlen=5
    )
    assert known.to_padded_tensor(0.0).shape == (2, 5, 6)
    same(known.sum(1), x.sum(1))


def test_changed_offsets_are_other_sequences():
    offsets, values = taeda.tensor([0, 2, 5]), taeda.arange(5)
    first = taeda.nested.nested_tensor_from_jagged(values, offsets)
    again = taeda.nested.nested_tensor_from_jagged(values, offsets)
    assert first.shape == again.shape
    offsets[1] = 3
    changed = taeda.nested.nested_tensor_from_jagged(values, offsets)
    assert changed.unbind()[0].tolist() == [0, 1, 2] and changed.shape != first.shape


# ---- the size that is a symbol ------------------------------------------------------------------

SYMBOL = """
j == j | j == 2 | j != 2 | j > 1 | j >= 2 | j > 0 | bool(j) | isinstance(j, L.SymInt) | isinstance(j, int)
len({j, j}) | [j] == [x.size(1)] | j == other.size(1) | (2 * j) == (j * 2) | (2 * j) == j
"""


@pytest.mark.parametrize(
    "expression", [e.strip() for e in SYMBOL.replace("\n", "|").split("|") if e.strip()]
)
def test_symbol(expression):
    torch = pytest.importorskip("torch")

    def found(L):
        x = nested(L)
        names = {"L": L, "x": x, "j": x.size(1), "other": nested(L)}
        return eval(expression, names)

    assert found(taeda) == quietly(found, torch)


def test_symbol_is_no_number():
    x = nested(taeda)
    j = x.size(1)
    number = repr(j)
    assert number.startswith("j") and repr(3 * j) == f"3*{number}" == repr(
        x.unsqueeze(-1).stride(0) and 3 * j
    )
    assert x.shape.numel() == 24 * j and x.stride() == (6 * j, 6, 1)
    assert repr(x.shape) == f"taeda.Size([4, {number}, 6])" and x.shape[:2] + (3,) == (4, j, 3)
    for wrong in (int, float, range, lambda n: n + 1, lambda n: n // 2, lambda n: 3 < n < 5):
        with pytest.raises((TypeError, ValueError)):
            wrong(j)
    for use in (taeda.zeros, taeda.ones(4).reshape, taeda.arange):
        with pytest.raises(TypeError, match="NestedInt|ragged"):
            use(j)
