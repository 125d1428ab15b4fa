"""What layers say of input that does not fit: which layer, which argument, which shapes."""

import ast
import re
from pathlib import Path

import pytest

import taeda
from taeda import nn

z = taeda.zeros
CASES = [
    (
        nn.Linear(4, 3),
        (z(2, 5),),
        RuntimeError,
        r"linear\(\) got input of shape \[2, 5\].*\[3, 4\]",
    ),
    (nn.Bilinear(2, 3, 4), (z(1, 2), z(1, 4)), RuntimeError, r"input2 size .* got 4 .* expected 3"),
    (nn.Bilinear(2, 3, 4), (z(1, 2), z(2, 3)), RuntimeError, r"\[1, 2\] and \[2, 3\]"),
    (nn.Conv2d(3, 4, 3), (z(1, 2, 5, 5),), RuntimeError, "expected input.*3 channels"),
    (nn.BatchNorm2d(3), (z(1, 4, 5, 5),), RuntimeError, r"batch_norm\(\): weight should contain 4"),
    (nn.BatchNorm2d(3, eps=0.0), (z(1, 3, 5, 5),), ValueError, "eps must be positive"),
    (nn.LayerNorm(4), (z(2, 5),), RuntimeError, r"normalized_shape=\[4\]"),
    (nn.GroupNorm(2, 4), (z(2, 5, 3),), RuntimeError, "num_groups=2"),
    (nn.Embedding(3, 4), (taeda.tensor([5]),), IndexError, "index 5 for a table of 3 rows"),
    (nn.LSTM(3, 4), (z(2, 2, 5),), RuntimeError, "LSTM: input.size.*Expected 3, got 5"),
    (nn.GRUCell(3, 4), (z(2, 5),), RuntimeError, "GRUCell: input has inconsistent input_size"),
    (nn.AdaptiveAvgPool2d(2), (z(3),), RuntimeError, r"3D or 4D input, got shape \[3\]"),
    (nn.CircularPad1d(1), (z(1, 2, 3, 4),), ValueError, "expected 2D or 3D input"),
    (
        nn.FractionalMaxPool2d(2, 3),
        (z(3, 3),),
        RuntimeError,
        "expected input with 3 or 4 dimensions",
    ),
    (nn.FractionalMaxPool2d(2, 3), (z(1, 2, 3, 3),), RuntimeError, r"do not fit .* \[3, 3\]"),
]


@pytest.mark.parametrize(("layer", "given", "error", "match"), CASES)
def test_layers(layer, given, error, match):
    with pytest.raises(error, match=match) as caught:
        layer(*given)
    if hasattr(caught.value, "__notes__"):
        assert caught.value.__notes__ == [f"in {type(layer).__name__}"]


ATTENTION = [
    ((z(3, 2, 4), z(3, 2, 5), z(3, 2, 5)), {}, RuntimeError, r"key \[3, 2, 5\]"),
    ((z(3, 2, 4), z(3, 1, 4), z(3, 1, 4)), {}, AssertionError, r"key \[3, 1, 4\]"),
    ((z(3, 2, 4), z(3, 2, 4), z(4, 2, 4)), {}, AssertionError, r"value \[4, 2, 4\]"),
    ((z(3, 4), z(3, 2, 4), z(3, 2, 4)), {}, AssertionError, "2D, 3D and 3D"),
    ((z(3, 2, 4),) * 3, {"attn_mask": z(3, 4)}, RuntimeError, r"should be \(3, 3\)"),
    ((z(3, 2, 4),) * 3, {"attn_mask": z(3, 3, 3)}, RuntimeError, r"should be \(4, 3, 3\)"),
    ((z(3, 2, 4),) * 3, {"attn_mask": z(1, 3, 3, 3)}, AssertionError, "got 4-D"),
    ((z(3, 2, 4),) * 3, {"key_padding_mask": z(3, 3)}, AssertionError, r"\(2, 3\), got \(3, 3\)"),
    ((z(3, 2, 4),) * 3, {"is_causal": True}, RuntimeError, "Need attn_mask"),
]


@pytest.mark.parametrize(("given", "kwargs", "error", "match"), ATTENTION)
def test_attention(given, kwargs, error, match):
    with pytest.raises(error, match=match):
        nn.MultiheadAttention(4, 2)(*given, **kwargs)


def test_the_path_is_named():
    model = nn.Sequential()
    model.encoder = nn.ModuleList([nn.TransformerEncoderLayer(4, 2, 8)])
    model.forward = lambda x: model.encoder[0](x)
    with pytest.raises(AssertionError, match="embedding dimension of 4, but got 5") as caught:
        model(z(3, 2, 5))
    if hasattr(caught.value, "__notes__"):
        assert caught.value.__notes__ == ["in encoder.0.self_attn (MultiheadAttention)"]


def module_and_arguments(call: str):
    """The layer of a call such as `nn.ReLU()(z(2))`, made, and what it is called with."""
    names = {"nn": nn, "t": taeda, "z": z, "o": taeda.ones}
    names["i"] = lambda *shape: z(*shape, dtype=taeda.int64)
    tree = ast.parse(call, mode="eval").body
    if not isinstance(tree, ast.Call) or not isinstance(tree.func, ast.Call):
        return None
    try:
        layer, *args = (
            eval(compile(ast.Expression(part), "", "eval"), names)
            for part in (tree.func, *tree.args)
        )
        kwargs = {
            k.arg: eval(compile(ast.Expression(k.value), "", "eval"), names) for k in tree.keywords
        }
    except Exception:
        return None  # the layer itself was refused
    callable_here = isinstance(layer, nn.Module) and "Parameter" not in type(layer).__name__
    return (layer, args, kwargs) if callable_here else None


@pytest.mark.skipif(not hasattr(Exception(), "add_note"), reason="notes came with Python 3.11")
@pytest.mark.filterwarnings("ignore")
def test_every_kind_of_layer_is_named_by_its_path():
    class Model(nn.Module):
        def __init__(self, layer):
            super().__init__()
            self.blocks = nn.ModuleList([nn.Identity(), nn.ModuleDict({"inner": layer})])

        def forward(self, *args, **kwargs):
            return self.blocks[1]["inner"](*args, **kwargs)

    calls = (Path(__file__).parents[1] / "conformance" / "bad_input.txt").read_text().splitlines()
    kinds = set()
    for call in calls:
        made = module_and_arguments(call)
        if made is None:
            continue
        layer, args, kwargs = made
        try:
            Model(layer)(*args, **kwargs)
        except Exception as error:
            kind = type(layer).__name__
            assert re.fullmatch(
                rf"in blocks\.1\.inner(\.[\w.]+ \(\w+\)| \({kind}\))", error.__notes__[-1]
            ), (call, error.__notes__)
            kinds.add(kind)
    assert len(kinds) > 100
