"""Whole modules in files pass between PyTorch and programs that have taeda in its place."""

from __future__ import annotations

import io
import subprocess
import sys

import pytest

import taeda
from taeda import nn, serialization

pytest.importorskip("torch", reason="exchanges files with PyTorch")

PROGRAM = """
import sys
import warnings

warnings.simplefilter("ignore")
if sys.argv[1] == "taeda":
    from taeda import compat

    compat.install()
import torch
from torch import nn
from torch.nn import functional as F

def x(*shape):
    values = torch.arange(torch.Size(shape).numel(), dtype=torch.float32)
    return (values / len(values) - 0.3).view(shape)

def modules():
    torch.manual_seed(0)
    yield nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.BatchNorm1d(3), nn.Dropout()), (x(3, 2),)
    yield nn.Sequential(nn.Conv2d(1, 2, 3, padding=1), nn.MaxPool2d(2), nn.Flatten()), (x(2, 1, 4, 4),)
    yield nn.Conv1d(1, 2, 3, padding="same", padding_mode="circular"), (x(2, 1, 4),)
    yield nn.ConvTranspose2d(1, 2, 3), (x(2, 1, 4, 4),)
    yield nn.MultiheadAttention(4, 2), (x(3, 1, 4),) * 3
    yield nn.LSTM(2, 3, 2, batch_first=True, bidirectional=True), (x(2, 3, 2),)
    yield nn.GRU(2, 3), (x(2, 3, 2),)
    yield nn.RNN(2, 3, nonlinearity="relu"), (x(2, 3, 2),)
    yield nn.LSTMCell(2, 3), (x(2, 2),)
    yield nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, activation="gelu"), 2), (x(3, 2, 4),)
    yield nn.Transformer(4, 2, 1, 1, 8), (x(3, 2, 4), x(3, 2, 4))
    yield nn.Embedding(5, 2, padding_idx=1), (torch.tensor([0, 1, 3]),)
    yield nn.Sequential(nn.PixelShuffle(2), nn.Upsample(scale_factor=2), nn.ZeroPad2d(1)), (x(1, 4, 2, 2),)
    yield nn.Sequential(nn.Unfold(2), nn.Fold(4, 2)), (x(1, 2, 4, 4),)
    yield nn.Sequential(nn.PReLU(), nn.GELU(), nn.Softmax(1), nn.LayerNorm(4)), (x(2, 4),)
    yield nn.Sequential(nn.GroupNorm(2, 4), nn.InstanceNorm1d(4), nn.ChannelShuffle(2)), (x(2, 4, 3),)
    yield nn.CrossEntropyLoss(label_smoothing=0.1), (x(2, 4), torch.tensor([0, 1]))
    yield nn.TripletMarginLoss(), (x(2, 4), x(2, 4) * 2, x(2, 4) * 3)
    yield nn.AdaptiveLogSoftmaxWithLoss(4, 5, [2]), (x(2, 4), torch.tensor([0, 4]))
    yield nn.ParameterDict({"a": nn.Parameter(torch.ones(2))}), None
    yield nn.ModuleDict({"a": nn.ModuleList([nn.ReLU()])}), None

def flat(value):
    if isinstance(value, torch.Tensor):
        return value.flatten().tolist()
    return [y for part in value for y in flat(part)] if isinstance(value, tuple) else []

with torch.no_grad():
    if sys.argv[2] == "write":
        things = [(m.eval(), a, flat(m(*a)) if a else []) for m, a in modules()]
        torch.save((things, [F.relu, F.gelu, F.cross_entropy, F.sigmoid]), sys.argv[3])
    else:
        things, functions = torch.load(sys.argv[3], weights_only=False)
        for module, arguments, expected in things:
            found = flat(module(*arguments)) if arguments else []
            near = [abs(a - b) < 1e-5 or a != a for a, b in zip(found, expected, strict=True)]
            assert all(near), (module, found, expected)
            module.double().train().zero_grad()
            assert repr(module) and not any(p.dtype != torch.float64 for p in module.parameters())
        print(len(things), *(f.__name__ for f in functions))
"""


@pytest.mark.parametrize(("writer", "reader"), [("taeda", "torch"), ("torch", "taeda")])
def test_whole_modules_pass_both_ways(tmp_path, writer, reader):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    for lib, action in ((writer, "write"), (reader, "read")):
        done = subprocess.run(
            [sys.executable, str(program), lib, action, str(tmp_path / "modules.pt")],
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
    names = ["relu", "gelu", "cross_entropy", "sigmoid"]
    assert done.stdout.split() == ["21", *names]


def test_tensors_of_plain_pickles_can_be_read(tmp_path):
    write = (
        "import pickle, sys, torch\n"
        "things = [torch.arange(3.0), torch.nn.Parameter(torch.ones(2)), torch.tensor([1, 2])[1:]]\n"
        "pickle.dump(things, open(sys.argv[1], 'wb'))\n"
    )
    read = (
        "import pickle, sys\n"
        "from taeda import compat\n"
        "compat.install()\n"
        "print(*(x.tolist() for x in pickle.load(open(sys.argv[1], 'rb'))))\n"
    )
    for program in (write, read):
        command = [sys.executable, "-c", program, str(tmp_path / "things.pkl")]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[0.0, 1.0, 2.0] [1.0, 1.0] [2]"


def saved(module):
    file = io.BytesIO()
    taeda.save(module, file)
    file.seek(0)
    return file


def test_allowed_names_are_those_that_programs_list():
    from taeda.nn.modules.activation import MultiheadAttention
    from taeda.nn.modules.linear import NonDynamicallyQuantizableLinear

    lists = {
        nn.Linear(2, 2): [nn.Linear],
        nn.LSTM(2, 2): [nn.LSTM],
        nn.MultiheadAttention(4, 2): [MultiheadAttention, NonDynamicallyQuantizableLinear],
        nn.TransformerEncoderLayer(4, 2, 8): [
            *(nn.TransformerEncoderLayer, nn.MultiheadAttention, NonDynamicallyQuantizableLinear),
            *(nn.Linear, nn.LayerNorm, nn.Dropout, nn.functional.relu),
        ],
    }
    for module, allowed in lists.items():
        names = serialization.get_unsafe_globals_in_checkpoint(saved(module))
        assert len(names) == len(allowed)
        with serialization.safe_globals(allowed):
            assert not serialization.get_unsafe_globals_in_checkpoint(saved(module))
            again = taeda.load(saved(module))
        assert type(again) is type(module) and list(again.state_dict()) == list(module.state_dict())
        assert all(vars(again)[k] is v for k, v in again._parameters.items())


def test_names_are_at_pytorchs_places():
    import importlib

    for place, names in {
        "activation": "MultiheadAttention",
        "channelshuffle": "ChannelShuffle",
        "container": "ParameterDict ParameterList",
        "fold": "Fold Unfold",
        "linear": "NonDynamicallyQuantizableLinear",
        "loss": "CTCLoss TripletMarginLoss CosineEmbeddingLoss LinearCrossEntropyLoss",
        "module": "Module",
        "pixelshuffle": "PixelShuffle PixelUnshuffle",
        "rnn": "RNNCell LSTMCell GRUCell RNNCellBase",
        "upsampling": "Upsample UpsamplingNearest2d UpsamplingBilinear2d",
    }.items():
        module = importlib.import_module(f"taeda.nn.modules.{place}")
        theirs = importlib.import_module(f"torch.nn.modules.{place}")
        for name in names.split():
            assert getattr(module, name).__name__ == getattr(theirs, name).__name__ == name


def test_the_old_format_is_accepted_and_the_new_one_written():
    file = io.BytesIO()
    with pytest.warns(UserWarning, match=r"format of PyTorch before 1\.6"):
        taeda.save({"a": taeda.ones(2)}, file, _use_new_zipfile_serialization=False)
    file.seek(0)
    assert taeda.load(file)["a"].tolist() == [1.0, 1.0]


def test_options_of_the_format():
    import mmap

    assert serialization.get_default_load_endianness() is None
    serialization.set_default_load_endianness(serialization.LoadEndianness.BIG)
    assert serialization.get_default_load_endianness() is serialization.LoadEndianness.BIG
    serialization.set_default_load_endianness(None)
    with pytest.raises(TypeError, match="expected a LoadEndianness"):
        serialization.set_default_load_endianness("big")
    with serialization.set_default_mmap_options(mmap.MAP_SHARED):
        assert serialization.get_default_mmap_options() == mmap.MAP_SHARED
    assert serialization.get_default_mmap_options() == mmap.MAP_PRIVATE
    with pytest.raises(ValueError, match="MAP_PRIVATE or"):
        serialization.set_default_mmap_options(77)
    assert serialization.get_crc32_options() is True
    serialization.set_crc32_options(False)
    assert serialization.get_crc32_options() is False
    serialization.set_crc32_options(True)
