"""summary's numbers, against numbers worked out by hand."""

from __future__ import annotations

import pytest

import taeda
from taeda import nn

from .models import cases

CASES = cases()


def measured(name):
    model, x, _ = CASES[name]
    return taeda.summary(model, x)


def test_mlp():
    found = measured("mlp")
    assert found.total.parameters == 4 * 16 + 16 + 16 * 16 + 16 + 16 * 3 + 3
    assert found.total.macs == 5 * (4 * 16 + 16 * 16 + 16 * 3)
    assert found.total.activations == 2 * 5 * 16 * 4  # the two ReLUs' results
    assert found["2"].output == (5, 16) and found["2"].parameters == 16 * 16 + 16
    assert found["1"].activations == 5 * 16 * 4 and found["0"].activations == 0
    assert found.parameter_bytes == 4 * found.total.parameters and found.buffer_bytes == 0


def test_resnet():
    found, w, n = measured("resnet18"), 8, 2
    stem = 3 * w * 49 + 2 * w
    blocks, macs, size, before = 0, n * 32 * 32 * 3 * w * 49, 16, w
    for i in range(4):
        after = w * 2**i
        size = size if i == 0 else size // 2
        convs = [9 * before * after, 9 * after * after, 9 * after * after, 9 * after * after]
        shortcut = 0 if i == 0 else before * after
        norms = 2 * after * (4 + (i > 0))
        blocks += sum(convs) + shortcut + norms
        macs += n * size * size * (sum(convs) + shortcut)
        before = after
        assert found[f"layer{i + 1}"].output == (n, after, size, size)
    assert found.total.parameters == stem + blocks + 8 * w * 10 + 10
    assert found.total.macs == macs + n * 8 * w * 10
    # of a batch norm: its input, and the mean and the deviation of each channel
    assert found["bn1"].activations == 4 * (n * w * 32 * 32 + 2 * w)
    assert found["relu"].activations == 4 * n * w * 32 * 32
    assert found["layer1.0"].calls == found["layer1.0.conv1"].calls == 1
    assert found["layer1.0.relu"].calls == 2
    # running means and variances of 9 + 11 norms, and a count of 8 bytes for each
    channels = w + 4 * (w + 2 * w + 4 * w + 8 * w) + (2 * w + 4 * w + 8 * w)
    assert found.buffer_bytes == 4 * 2 * channels + 8 * 20


def test_gpt():
    found, n, t, c, vocabulary = measured("gpt"), 2, 10, 16, 32
    block = 2 * 2 * c + (3 * c * c + 3 * c) + (c * c + c) + (4 * c * c + 4 * c) + (4 * c * c + c)
    assert found["blocks.0"].parameters == block
    assert found.total.parameters == vocabulary * c + 12 * c + 3 * block + 2 * c  # the head is tied
    products = n * t * 12 * c * c
    attention = 2 * n * t * t * c  # scores, and the values that they weigh
    assert found["blocks.0.attn"].macs == n * t * 4 * c * c + attention
    assert found["blocks.0"].macs == products + attention
    assert found.total.macs == 3 * (products + attention) + n * t * c * vocabulary
    assert found["head"].output == (n, t, vocabulary)
    assert found["blocks.0.mlp.1"].activations == 4 * n * t * 4 * c  # GELU keeps its input


def test_lstm():
    found, n, t, c, letters = measured("lstm"), 3, 7, 12, 20
    layer = 4 * c * c + 4 * c * c + 8 * c
    assert found["lstm"].parameters == 2 * layer
    assert found["lstm"].macs == 2 * n * t * (4 * c * c + 4 * c * c)
    assert found.total.macs == found["lstm"].macs + n * t * c * letters
    assert found["lstm"].output == ((n, t, c), (2, n, c), (2, n, c))
    assert found.total.parameters == letters * c + 2 * layer + c * letters + letters


def test_nothing_is_changed():
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Dropout())
    model[0].weight.requires_grad_(False)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    stream = taeda.get_rng_state()
    with taeda.no_grad():
        found = taeda.summary(model, taeda.ones(2, 1, 5, 5))
    assert all(taeda.equal(before[name], value) for name, value in model.state_dict().items())
    assert taeda.equal(stream, taeda.get_rng_state())
    assert found.total.parameters - found.total.trainable == 18
    assert model[0].bias.grad is None and model[0]._call_hooks is None


class Several(nn.Module):
    def __init__(self):
        super().__init__()
        self.shared, self.unused = nn.Linear(3, 3), nn.Linear(1, 1)

    def forward(self, a, b=None):
        return {"sum": self.shared(a) + self.shared(b), "first": a}


def test_inputs_outputs_and_calls():
    x = taeda.ones(2, 3)
    for given in ((x, x), {"a": x, "b": x}):
        found = taeda.summary(Several(), given)
        assert found["shared"].calls == 2 and found["shared"].macs == 2 * 2 * 9
        assert found.total.output == ((2, 3), (2, 3)) and found["unused"].calls == 0
    text = repr(taeda.summary(Several(), (x, x), depth=0))
    assert "shared" not in text and "(2, 3), (2, 3)" in text
    assert "not called" in repr(found) and "<table" in found._repr_html_()
    assert found.to_dict()["layers"][1]["path"] == "shared"
    with pytest.raises(KeyError, match="no module 'none'"):
        found["none"]
    with pytest.raises(TypeError, match="model must be a Module"):
        taeda.summary(x, x)
    with pytest.raises(ValueError, match="depth"):
        taeda.summary(Several(), (x, x), depth=-1)
    with pytest.raises(RuntimeError):
        taeda.summary(nn.Linear(2, 2), taeda.ones(3))
    assert nn.Module._call_hooks is None  # the hooks are gone after an error, too
