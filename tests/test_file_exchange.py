"""Objects of many shapes pass to PyTorch and back, bit for bit; so do whole models' state dicts."""

from __future__ import annotations

import io
from collections import Counter, OrderedDict

import pytest

import taeda

torch = pytest.importorskip("torch")

DTYPES = "float16 bfloat16 float32 float64 complex64 complex128 int8 int16 int32 int64 uint8 bool"


def stepped(lib, make):
    """The state of an optimizer after a step."""
    model = lib.nn.Linear(3, 2)
    optimizer = make(lib.optim, model.parameters())
    model(lib.ones(2, 3)).sum().backward()
    optimizer.step()
    return optimizer.state_dict()


def objects(lib):
    """The same objects of either library, by name."""
    lib.manual_seed(0)
    base = lib.arange(24.0)
    model = lib.nn.Sequential(lib.nn.Conv2d(3, 4, 3), lib.nn.BatchNorm2d(4), lib.nn.Linear(4, 2))
    adam = stepped(lib, lambda optim, p: optim.Adam(p, amsgrad=True))
    one = lib.nn.Parameter(lib.ones(1))
    things = {
        "matrix": lib.ones(2, 3),
        "scalar": lib.tensor(3),
        "empty": lib.empty(0),
        "empty in three dimensions": lib.empty(2, 0, 3),
        "permuted": base.view(2, 3, 4).permute(2, 0, 1),
        "strided": base[::2],
        "views": (base[2:], base[:5], base),
        "expanded": lib.ones(1).expand(5),
        "meta": lib.empty(3, device="meta"),
        "parameter": lib.nn.Parameter(base),
        "frozen parameter": lib.nn.Parameter(base, requires_grad=False),
        "wants a gradient": lib.ones(2, requires_grad=True),
        "state": model.state_dict(),
        "state of an LSTM": lib.nn.LSTM(3, 4, 2, bidirectional=True).state_dict(),
        "state of a transformer": lib.nn.TransformerEncoderLayer(8, 2, 16).state_dict(),
        "SGD": stepped(lib, lambda optim, p: optim.SGD(p, 0.1, momentum=0.9)),
        "Adam": adam,
        "RMSprop": stepped(lib, lambda optim, p: optim.RMSprop(p)),
        "Adagrad": stepped(lib, lambda optim, p: optim.Adagrad(p)),
        "scheduler": lib.optim.lr_scheduler.StepLR(lib.optim.SGD([one], 0.1), 2).state_dict(),
        "checkpoint": {"model": model.state_dict(), "optimizer": adam, "epoch": 3},
        "random state": lib.get_rng_state(),
        "nested": {"a": {"b": [1, (2, {"c": base})]}},
        "ordered": OrderedDict(x=base, y=base),
        "counter": Counter("hello"),
        "set": {1, 2, 3},
        "plain": [None, True, 1, 2.5, "é", b"x", 1 + 2j, 2**80, -1],
        "size": lib.Size([1, 2]),
        "dtype": lib.float16,
        "device": lib.device("cpu"),
        "layout": {"layout": lib.strided},
        "tuple": (),
        "list": [],
        "dict": {},
        "bytes": bytearray(b"abc"),
        "one tensor many times": dict.fromkeys(range(300), base),
    }
    return things | {name: lib.ones(2, 3).to(getattr(lib, name)) for name in DTYPES.split()}


NAMES = list(objects(taeda))


def content(value):
    """All there is to a value, in terms that belong to neither library."""
    kind = type(value).__name__
    if kind in ("Tensor", "Parameter"):
        where = (kind, str(value.dtype).partition(".")[2], tuple(value.shape), value.stride())
        if value.device.type == "meta":
            return where
        plain = value.detach()
        plain = plain.float() if where[1] == "bfloat16" else plain
        return (*where, value.requires_grad, plain.numpy().tobytes())
    if isinstance(value, dict):
        return kind, [(content(k), content(v)) for k, v in value.items()]
    if isinstance(value, (list, tuple)):
        return kind, [content(item) for item in value]
    return str(value).rpartition(".")[2] if kind in ("dtype", "layout") else (kind, str(value))


def passed(value, writer, reader):
    file = io.BytesIO()
    writer.save(value, file)
    file.seek(0)
    return reader.load(file)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NAMES)
def test_objects_pass_both_ways(name):
    ours, theirs = objects(taeda)[name], objects(torch)[name]
    assert content(passed(ours, taeda, torch)) == content(ours)
    assert content(passed(theirs, torch, taeda)) == content(theirs)


def resnet18():
    shapes, width = {"conv1.weight": (64, 3, 7, 7)}, 64

    def norm(name, size):
        for part in ("weight", "bias", "running_mean", "running_var"):
            shapes[f"{name}.{part}"] = (size,)
        shapes[f"{name}.num_batches_tracked"] = ()

    norm("bn1", 64)
    for layer, size in enumerate((64, 128, 256, 512), 1):
        for block in (0, 1):
            name = f"layer{layer}.{block}"
            shapes[f"{name}.conv1.weight"] = (size, width, 3, 3)
            norm(f"{name}.bn1", size)
            shapes[f"{name}.conv2.weight"] = (size, size, 3, 3)
            norm(f"{name}.bn2", size)
            if size != width:
                shapes[f"{name}.downsample.0.weight"] = (size, width, 1, 1)
                norm(f"{name}.downsample.1", size)
            width = size
    return {**shapes, "fc.weight": (1000, 512), "fc.bias": (1000,)}


def gpt2(width=96, layers=12):  # GPT-2's own is 768 wide
    shapes = {"wte.weight": (50257, width), "wpe.weight": (1024, width)}
    for layer in range(layers):
        for name, *shape in (
            ("ln_1.weight", 1), ("ln_1.bias", 1), ("attn.c_attn.weight", 1, 3),
            ("attn.c_attn.bias", 3), ("attn.c_proj.weight", 1, 1), ("attn.c_proj.bias", 1),
            ("ln_2.weight", 1), ("ln_2.bias", 1), ("mlp.c_fc.weight", 1, 4),
            ("mlp.c_fc.bias", 4), ("mlp.c_proj.weight", 4, 1), ("mlp.c_proj.bias", 1),
        ):  # fmt: skip
            shapes[f"h.{layer}.{name}"] = tuple(width * n for n in shape)
    return {**shapes, "ln_f.weight": (width,), "ln_f.bias": (width,)}


@pytest.mark.parametrize("shapes", [resnet18(), gpt2()], ids=["resnet18", "gpt2"])
def test_whole_models_load(shapes, tmp_path):
    state = OrderedDict(
        (name, torch.randn(shape) if shape else torch.tensor(7)) for name, shape in shapes.items()
    )
    if "wte.weight" in state:
        state["lm_head.weight"] = state["wte.weight"]  # tied
    path = tmp_path / "model.pth"
    torch.save(state, path)
    for mmap in (False, True):
        loaded = taeda.load(path, mmap=mmap)
        assert list(loaded) == list(state)
        assert all(content(loaded[name]) == content(state[name]) for name in state)
        if "lm_head.weight" in loaded:
            assert loaded["lm_head.weight"].data_ptr() == loaded["wte.weight"].data_ptr()
