"""Modules made without memory, then given it."""

import pytest

import taeda
from taeda import nn

MODULES = {
    "Linear": (2, 3),
    "Bilinear": (2, 3, 4),
    "Conv2d": (2, 3, 1),
    "ConvTranspose2d": (2, 3, 1),
    "BatchNorm1d": (3,),
    "SyncBatchNorm": (3,),
    "InstanceNorm2d": (3, 1e-5, 0.1, True, True),
    "LayerNorm": (3,),
    "RMSNorm": (3,),
    "GroupNorm": (1, 3),
    "PReLU": (3,),
    "Embedding": (4, 3, 1),
    "EmbeddingBag": (4, 3),
    "LSTM": (2, 3, 2),
    "GRU": (2, 3),
    "LSTMCell": (2, 3),
    "MultiheadAttention": (4, 2, 0.0, True, True),
    "TransformerEncoderLayer": (4, 2, 8),
    "Transformer": (4, 2, 1, 1, 8),
    "AdaptiveLogSoftmaxWithLoss": (8, 20, [3]),
}


def tensors(module):
    return [*module.parameters(), *module.buffers()]


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize("scheme", ["torch", "2026"])
def test_from_meta_to_memory(name, scheme):
    make, args = getattr(nn, name), MODULES[name]
    with nn.init.defaults(scheme):
        real = make(*args)
        assigned, copied = make(*args, device="meta"), make(*args, device="meta")
    assert all(t.is_meta for t in tensors(assigned)) and repr(assigned) == repr(real)
    assigned.load_state_dict(real.state_dict(), assign=True)
    copied.to_empty(device="cpu").load_state_dict(real.state_dict())
    for module in (assigned, copied):
        assert not any(t.is_meta for t in tensors(module))
        assert all(isinstance(p, nn.Parameter) and p.requires_grad for p in module.parameters())
        for a, b in zip(tensors(module), tensors(real), strict=True):
            assert taeda.equal(a, b)


def test_shapes_without_values():
    model = nn.TransformerEncoderLayer(4, 2, 8, device="meta")
    assert model(taeda.empty(3, 2, 4, device="meta")).shape == (3, 2, 4)
    output, (h, c) = nn.LSTM(2, 3, device="meta")(taeda.empty(4, 2, 2, device="meta"))
    assert output.is_meta and output.shape == (4, 2, 3) and h.shape == c.shape == (1, 2, 3)


def test_reset_after_to_empty():
    taeda.manual_seed(3)
    real = nn.Linear(3, 4)
    taeda.manual_seed(3)
    other = nn.Linear(3, 4, device="meta").to_empty(device="cpu")
    other.reset_parameters()
    assert taeda.equal(real.weight, other.weight)
