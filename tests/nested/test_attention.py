"""Networks on nested tensors: against PyTorch, and against each sequence by itself."""

from __future__ import annotations

import numpy as np
import pytest

import taeda
from tests.nested.sequences import LENGTHS, arrays, nested, quietly, same

F = taeda.nn.functional


def heads(library, seed, lengths=LENGTHS, count=2):
    x = nested(library, lengths, (8,), seed=seed)
    return x, x.unflatten(-1, (count, 8 // count)).transpose(1, 2)


@pytest.mark.parametrize("lengths", [[2, 4, 1, 4], [3, 3], [1, 9, 2], [5, 0, 2], [7, 6, 7]])
@pytest.mark.parametrize("causal", [False, True])
def test_attention(lengths, causal):
    leaves, qkv = zip(*(heads(taeda, seed, lengths) for seed in range(3)), strict=True)
    found = F.scaled_dot_product_attention(*qkv, is_causal=causal)
    assert found.shape == (len(lengths), 2, leaves[0].size(1), 4)
    alone = [[taeda.tensor(a, requires_grad=True) for a in arrays(lengths, (8,), seed=s)]
             for s in range(3)]  # fmt: skip
    split = [[t.unflatten(-1, (2, 4)).transpose(0, 1) for t in parts] for parts in alone]
    expected = [F.scaled_dot_product_attention(*parts, is_causal=causal)
                for parts in zip(*split, strict=True)]  # fmt: skip
    same(list(found.unbind()), expected)
    sum(p.sin().sum() for p in found.unbind()).backward()
    sum(p.sin().sum() for p in expected).backward()
    for leaf, parts in zip(leaves, alone, strict=True):
        same(list(leaf.grad.unbind()), [p.grad for p in parts])


def test_attention_beside_pytorch():
    torch = pytest.importorskip("torch")

    def both(library):
        _, q = heads(library, 0)
        qkv = [q, q * 2, q.cos()]
        attend = library.nn.functional.scaled_dot_product_attention
        return attend(*qkv), attend(*qkv, scale=0.5)

    same(both(taeda), quietly(both, torch), 1e-6)


@pytest.mark.parametrize("keys", [[3, 1, 5, 2], [4, 4, 4, 4]])
def test_cross_attention(keys):
    _, q = heads(taeda, 0)
    (_, k), (_, v) = heads(taeda, 1, keys), heads(taeda, 2, keys)
    v = taeda.nested.nested_tensor_from_jagged(v.values(), k.offsets(), jagged_dim=2)
    found = F.scaled_dot_product_attention(q, k, v)
    expected = [F.scaled_dot_product_attention(*parts)
                for parts in zip(q.unbind(), k.unbind(), v.unbind(), strict=True)]  # fmt: skip
    same(list(found.unbind()), expected)
    causal = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    expected = [F.scaled_dot_product_attention(*parts, is_causal=True)
                for parts in zip(q.unbind(), k.unbind(), v.unbind(), strict=True)]  # fmt: skip
    same(list(causal.unbind()), expected)


def test_shared_heads_and_dropout():
    _, q = heads(taeda, 0, count=4)
    key = nested(taeda, LENGTHS, (2, 2), seed=1).transpose(1, 2)
    key = taeda.nested.nested_tensor_from_jagged(key.values(), q.offsets(), jagged_dim=2)
    found = F.scaled_dot_product_attention(q, key, key, enable_gqa=True)
    wide = key.repeat_interleave(2, 1)
    same(found, F.scaled_dot_product_attention(q, wide, wide))
    dropped = F.scaled_dot_product_attention(q, wide, wide, dropout_p=0.5)
    assert not taeda.equal(dropped, found) and dropped.shape == found.shape
    with pytest.raises(NotImplementedError, match=r"scaled_dot_product_attention.*nested"):
        F.scaled_dot_product_attention(q, wide, wide, attn_mask=taeda.ones(4, 4))
    with pytest.raises(RuntimeError, match=r"scaled_dot_product_attention.*the key is of shape"):
        F.scaled_dot_product_attention(q, taeda.ones(4, 4, 3, 2).double(), wide)
    with pytest.raises(RuntimeError, match="same sequences"):
        F.scaled_dot_product_attention(q, heads(taeda, 1, [2, 4], 4)[1], wide)


def block(library):
    """A transformer block as packages write it."""
    nn = library.nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(11, 8)
            self.norm, self.second = nn.LayerNorm(8), nn.RMSNorm(8)
            self.qkv, self.out = nn.Linear(8, 24), nn.Linear(8, 8, bias=False)
            self.mlp = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Dropout(0.0), nn.Linear(16, 8))
            self.position = nn.Parameter(library.zeros(1, 1, 8))

        def attend(self, x):
            q, k, v = self.qkv(self.norm(x)).chunk(3, dim=-1)
            q, k, v = (t.contiguous().unflatten(-1, [2, 4]).transpose(1, 2) for t in (q, k, v))
            mixed = nn.functional.scaled_dot_product_attention(q, k, v)
            return self.out(mixed.transpose(1, 2).flatten(-2))

        def forward(self, tokens):
            x = self.embed(tokens) + self.position
            x = x + self.attend(x)
            x = x + self.mlp(self.second(x))
            pooled = x.to_padded_tensor(0.0).sum(1)
            return nn.functional.cross_entropy(pooled, library.tensor([1, 0, 3, 2])), x

    return Block().double()


def test_transformer():
    torch = pytest.importorskip("torch")
    ours, theirs = block(taeda), block(torch)
    rng = np.random.default_rng(0)
    state = {k: rng.standard_normal(tuple(v.shape)) / 3 for k, v in ours.state_dict().items()}
    numbers = [rng.integers(0, 11, n) for n in LENGTHS]
    losses = []
    for library, model in ((taeda, ours), (torch, theirs)):
        model.load_state_dict({k: library.tensor(v) for k, v in state.items()})
        parts = [library.tensor(n) for n in numbers]
        tokens = library.nested.nested_tensor(parts, layout=library.jagged)
        loss, x = quietly(model, tokens)
        quietly(loss.backward)
        losses.append((loss, x))
    same(losses[0], losses[1], 1e-6)
    for (name, a), b in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        assert a.grad is not None, name
        np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-5, atol=1e-7)


def test_training_without_padding():
    """Parameters get the gradients that they get from each sequence by itself."""
    model = block(taeda)
    parts = [taeda.tensor(n) for n in ([1, 2, 3], [4], [5, 6], [7, 8, 9, 10])]
    tokens = taeda.nested.nested_tensor(parts, layout=taeda.jagged)
    loss, x = model(tokens)
    loss.backward()
    found = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    alone = []
    for part in parts:
        y = model.embed(part[None]) + model.position
        y = y + model.attend(y)
        alone.append((y + model.mlp(model.second(y)))[0])
    same(list(x.unbind()), alone)
    pooled = taeda.stack([y.sum(0) for y in alone])
    F.cross_entropy(pooled, taeda.tensor([1, 0, 3, 2])).backward()
    for a, p in zip(found, model.parameters(), strict=True):
        same(a, p.grad)


def test_modes_and_hooks_see_nested_tensors():
    names = []

    class Names(taeda.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            names.append((func.__name__, args[0].is_nested))
            return func(*args, **(kwargs or {}))

    x = nested(taeda).detach()
    with Names():
        (x + 1).sum(1)
    assert names[:1] == [("add", True)] and ("sum", True) in names
    seen = []
    layer = taeda.nn.Linear(6, 3).double()
    layer.register_forward_hook(lambda module, args, out: seen.append((args[0], out)))
    layer(x)
    assert all(t.is_nested for t in seen[0])


def test_autocast():
    x = nested(taeda, dtype="float32")
    layer = taeda.nn.Linear(6, 3)
    with taeda.autocast("cpu", dtype=taeda.bfloat16):
        y = layer(x)
        assert y.dtype == taeda.bfloat16 and y.softmax(-1).is_nested
    y.float().sum().backward()
    assert layer.weight.grad.dtype == taeda.float32


def test_checkpoint():
    from taeda.utils.checkpoint import checkpoint

    x, layer = nested(taeda), taeda.nn.Linear(6, 6).double()
    checkpoint(lambda t: layer(t).tanh(), x, use_reentrant=False).sum().backward()
    grad = x.grad.values()
    x.grad = None
    layer(x).tanh().sum().backward()
    same(grad, x.grad.values())


@pytest.mark.parametrize("norm_first", [False, True])
def test_layers_of_transformers(norm_first):
    layer = taeda.nn.TransformerEncoderLayer(
        6, 2, 12, dropout=0.0, batch_first=True, norm_first=norm_first
    )
    model = taeda.nn.TransformerEncoder(layer.double(), 2, enable_nested_tensor=False)
    x = nested(taeda)
    alone = [taeda.tensor(a, requires_grad=True) for a in arrays()]
    found = model(x)
    expected = [model(part[None])[0] for part in alone]
    same(list(found.unbind()), expected)
    sum(p.sin().sum() for p in found.unbind()).backward()
    grads = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    sum(p.sin().sum() for p in expected).backward()
    same(grads, [p.grad for p in model.parameters()], 1e-8)
    same(list(x.grad.unbind()), [p.grad for p in alone])
    strided = nested(taeda, layout=taeda.strided)
    same(list(model(strided).unbind()), expected)


def test_multihead_attention():
    x, memory = nested(taeda), nested(taeda, [3, 2, 4, 1], (5,), seed=1)
    layer = taeda.nn.MultiheadAttention(6, 3, batch_first=True, kdim=5, vdim=5).double()
    found, weights = layer(x, memory, memory, need_weights=False)
    pairs = zip(x.unbind(), memory.unbind(), strict=True)
    same(list(found.unbind()), [layer(a[None], b[None], b[None])[0][0] for a, b in pairs])
    assert weights is None
    layer = taeda.nn.MultiheadAttention(6, 3, batch_first=True).double()
    found, _ = layer(x, x, x, need_weights=False, is_causal=True)
    for a, b in zip(found.unbind(), x.unbind(), strict=True):
        mask = taeda.ones(len(b), len(b)).triu(1).bool()
        same(a, layer(b[None], b[None], b[None], attn_mask=mask, is_causal=True)[0][0])
    with pytest.raises(NotImplementedError, match="MultiheadAttention of nested.*need_weights"):
        layer(x, x, x)
    with pytest.raises(NotImplementedError, match="no key_padding_mask"):
        layer(x, x, x, need_weights=False, key_padding_mask=taeda.ones(4, 4).bool())
    with pytest.raises(NotImplementedError, match="batch_first"):
        taeda.nn.MultiheadAttention(6, 3).double()(x, x, x, need_weights=False)
    with pytest.raises(NotImplementedError, match="add_zero_attn"):
        other = taeda.nn.MultiheadAttention(6, 3, batch_first=True, add_zero_attn=True).double()
        other(x, x, x, need_weights=False)
