"""Attempts with fixed seeds: files by their structure, graphs, and saves that are killed.

`--campaign N` makes N times as many. Each prints how many it made (`pytest -s`).
"""

import io
import json
import pickle
import random
import re
import signal
import struct
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import taeda
import taeda.nn.functional as F
from tests.robustness.sample_files import npy_file, objects, tar_file, zip_file

ERRORS = (RuntimeError, ValueError, EOFError, pickle.UnpicklingError, NotImplementedError)
INTERNAL = re.compile(r"std::|vector::|basic_string|bad_\w+")


def outcome(load):
    """Whether it loads; it may raise only what is documented, with a message."""
    start = time.process_time()
    try:
        load()
        loaded = True
    except ERRORS as error:
        assert 8 < len(str(error)) < 3000 and not INTERNAL.search(str(error)), error
        loaded = False
    assert time.process_time() - start < 20
    return loaded


# ---- files --------------------------------------------------------------------------------------


class Streams:
    """Pickle streams from a grammar: most opcodes have what they need on the stack."""

    NAMES = (
        *(b"ctorch._utils\n_rebuild_tensor_v2\n", b"ctorch._utils\n_rebuild_parameter\n"),
        *(b"ctorch._utils\n_rebuild_sparse_tensor\n", b"ctorch\nSize\n", b"ctorch\ndevice\n"),
        *(b"ccollections\nOrderedDict\n", b"ccollections\nCounter\n", b"cbuiltins\nset\n"),
        *(b"ctorch._tensor\n_rebuild_from_type_v2\n", b"c_codecs\nencode\n", b"ctorch\nfloat32\n"),
        *(b"ctorch.serialization\n_get_layout\n", b"cbuiltins\nbytearray\n", b"cos\nsystem\n"),
        *(b"ctorch\nTensor\n", b"ctorch\nFloatStorage\n", b"cbuiltins\ncomplex\n"),
    )

    def __init__(self, pick):
        self.pick, self.stored = pick, 0

    def value(self, depth=0):
        pick = self.pick
        way = pick.randrange(18 if depth < 5 else 8)
        if way < 8:
            return pick.choice(
                [
                    *(
                        b"N",
                        b"\x88",
                        b"\x89",
                        b"K\x01",
                        b"K\x04",
                        b"M\xff\xff",
                        b"J\xff\xff\xff\xff",
                    ),
                    *(b"\x8a\x09" + b"\xff" * 8 + b"\x00", b"G\x7f\xf0" + bytes(6), b"X\1\0\0\0a"),
                    *(b"X\3\0\0\0cpu", b"X\6\0\0\0latin1", b"C\3abc", b")", b"]", b"}", b"\x8f"),
                    *(b"X\x10\0\0\0torch.sparse_coo", b"K\x02\x85", b"K\x01\x85", b"h\0"),
                ]
            )
        if way == 8:
            return b"(" + b"".join(self.value(depth + 1) for _ in range(pick.randrange(5))) + b"t"
        if way == 9:
            return b"](" + b"".join(self.value(depth + 1) for _ in range(pick.randrange(5))) + b"e"
        if way == 10:
            pairs = range(pick.randrange(4))
            return b"}(" + b"".join(self.value(depth + 1) * 2 for _ in pairs) + b"u"
        if way == 11:
            kind = pick.choice([b"FloatStorage", b"LongStorage", b"ByteStorage"])
            count = pick.choice([b"K\x04", b"K\x02", b"K\x08", b"K\x10", b"J\xff\xff\xff\x7f"])
            return (
                b"(X\7\0\0\0storagectorch\n" + kind + b"\nX\1\0\0\0000X\3\0\0\0cpu" + count + b"tQ"
            )
        if way == 12:
            size, stride = (pick.choice([b"K\2\x85", b")", b"K\2K\2\x86"]) for _ in range(2))
            begin = b"ctorch._utils\n_rebuild_tensor_v2\n(" + self.value(depth + 1)
            return begin + b"K\0" + size + stride + b"\x89ccollections\nOrderedDict\n)RtR"
        if way == 13:
            return self.value(depth + 1) + b"q" + bytes([pick.randrange(4)])
        if way == 14:
            return self.value(depth + 1) + self.value(depth + 1) + b"b"
        args = b"(" + b"".join(self.value(depth + 1) for _ in range(pick.randrange(5))) + b"t"
        return pick.choice(self.NAMES) + args + pick.choice([b"R", b"R", b"\x81"])

    def stream(self):
        return b"\x80\x02Nq\0" + b"0" + self.value() + b"."


def damaged_zip(pick, whole):
    """One field of a header or of the directory is another number."""
    data = bytearray(whole)
    magic = pick.choice([b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06"])
    places = [m.start() for m in re.finditer(re.escape(magic), data)]
    at = pick.choice(places) + pick.choice(range(4, 30, 2))
    size = pick.choice([2, 4])
    number = pick.choice([0, 1, 8, 12, 14, 99, 2**15, 2**16 - 1, 2**31, 2**32 - 1, len(data)])
    data[at : at + size] = (number % 256**size).to_bytes(size, "little")
    return bytes(data)


def damaged_tar(pick, whole):
    data = bytearray(whole)
    at = 512 * pick.randrange(len(data) // 512)
    way = pick.randrange(4)
    if way == 0:
        data[at + 156] = pick.choice(b"0123456789SLKxgVMA\0")
    elif way == 1:
        data[at + 124 : at + 136] = pick.choice(
            [b"77777777777\0", b"00000000000 ", b"\x80" + bytes(11)]
        )
    else:
        place = at + pick.randrange(120)
        data[place : place + 8] = pick.randbytes(8)
    return bytes(data)


def made_safetensors(pick):
    def number():
        return pick.choice([0, 1, 2, 4, 8, -1, 2**31, 2**63, 2**64, 10**30, 1.5, "4", None, []])

    tensors = {}
    at = 0
    for name in pick.sample(["a", "b", "", "\0", "__metadata__", "x" * 300], pick.randrange(1, 4)):
        shape, size = pick.choice([([2], 8), ([0], 0), ([], 4), ([1, 2], 8)])
        entry = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + size]}
        at += size
        for _ in range(pick.randrange(2)):
            way = pick.randrange(4)
            if way == 0:
                entry["dtype"] = pick.choice(["F64", "X", "", None, 5, "BOOL"])
            elif way == 1:
                entry["shape"] = [number() for _ in range(pick.choice([0, 1, 2, 65]))]
            elif way == 2:
                entry["data_offsets"] = [number() for _ in range(pick.choice([1, 2, 2, 3]))]
            else:
                entry.pop(pick.choice(list(entry)))
        tensors[name] = entry
    text = json.dumps(tensors).encode()
    size = len(text) if pick.random() < 0.9 else pick.choice([0, 2**40 - 1, 2**63])
    return size.to_bytes(8, "little") + text + bytes(at)


def made_npy(pick, whole):
    header = whole[10:128]
    old = pick.choice([b"<f8", b"(3, 4)", b"False", b"'descr'", b"shape"])
    new = pick.choice(
        [b"|O", b"<i9", b"(2**40,)", b"(-1, 4)", b"()", b"(" * 40, b"True", b"None", b"99" * 30]
    )
    changed = header.replace(old, new)
    return whole[:8] + struct.pack("<H", len(changed)) + changed + whole[128:]


def test_files_by_structure(campaign):
    pick = random.Random(1)
    whole = [zip_file(thing) for thing in objects().values()]
    tar, array = tar_file(), npy_file(taeda.ones(3, 4).double().numpy())
    makers = {
        "streams": lambda: packed(Streams(pick).stream()),
        "zip": lambda: damaged_zip(pick, pick.choice(whole)),
        "tar": lambda: damaged_tar(pick, tar),
        "safetensors": lambda: made_safetensors(pick),
        "npy": lambda: made_npy(pick, array),
    }
    tried = {name: [0, 0] for name in makers}
    for name, make in makers.items():
        for _ in range(1500 * campaign):
            data = make()
            loaded = outcome(lambda data=data: taeda.load(io.BytesIO(data)))
            tried[name][0] += 1
            tried[name][1] += loaded
    print("files (tried, loaded):", tried)
    assert all(0 < loaded < count for count, loaded in tried.values()), tried


def packed(stream):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as out:
        out.writestr("a/data.pkl", stream)
        out.writestr("a/data/0", bytes(16))
    return file.getvalue()


# ---- graphs -------------------------------------------------------------------------------------

FUNCTIONS = [
    *(lambda x, y: x * y, lambda x, y: x @ y.T, lambda x, y: F.softmax(x, 1) * y),
    *(lambda x, y: F.gelu(x) + y**3, lambda x, y: taeda.cat([x, y]).sin()),
    *(lambda x, y: F.layer_norm(x, x.shape[-1:]) * y, lambda x, y: x.cumsum(0) / (y + 3)),
    *(lambda x, y: x.sort(1)[0] * y, lambda x, y: taeda.where(x > 0, x * y, y.exp())),
    *(
        lambda x, y: x.max(1)[0] * y.sum(1),
        lambda x, y: F.conv1d(x[None], y[:, None, :2], groups=1),
    ),
    *(lambda x, y: taeda.linalg.inv(x @ x.T + 9 * taeda.eye(x.shape[0])) @ y,),
    *(lambda x, y: x.logsumexp(1) + y.prod(1), lambda x, y: x[[0, 1, 0]] * y[:3].tanh()),
]


def changed(x, pick):
    """Something done to a tensor that a graph has saved."""
    d = x.detach()
    ways = [
        *(lambda: x.data.mul_(2), lambda: d.mul_(2), lambda: d.resize_(0), lambda: d.zero_()),
        *(lambda: setattr(x, "data", taeda.ones(1)), lambda: x.untyped_storage().resize_(0)),
        *(lambda: setattr(x, "data", taeda.ones(x.shape, device="meta")), lambda: d.t_()),
        *(lambda: setattr(x, "data", x.data.double()), lambda: setattr(x, "data", x.data.T)),
        *(lambda: d.set_(taeda.ones(2)), lambda: d.set_(), lambda: x.data.unsqueeze_(0)),
        *(lambda: x._exchange_data(taeda.ones(7)), lambda: d.resize_(50, 50)),
        lambda: x._exchange_data(taeda.ones(x.shape, device="meta")),
        lambda: setattr(x, "data", taeda.ones(x.shape).to_sparse()),
        lambda: x.requires_grad_(False),
    ]
    pick.choice(ways)()


def test_graphs_whose_saved_tensors_change(campaign):
    pick = random.Random(2)
    tried = wrong = 0
    kinds = [
        taeda.ones(1),
        taeda.ones(4, 4).double(),
        taeda.ones(0),
        taeda.ones(4, 4, device="meta"),
    ]
    for _ in range(2500 * campaign):
        x, y = (taeda.randn(4, 4, requires_grad=True) for _ in range(2))
        f = pick.choice(FUNCTIONS)
        a, b = (x * 1, y * 1) if pick.random() < 0.5 else (x, y)
        tried += 1
        try:
            if pick.random() < 0.3:
                other = pick.choice(kinds)
                hooks = taeda.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t, o=other: o)
                with hooks:
                    z = f(a, b)
            else:
                z = f(a, b)
                for _ in range(pick.choice([1, 1, 2])):
                    changed(pick.choice([a, b, x, y, z]), pick)
            again = pick.random() < 0.3
            grads = taeda.autograd.grad(z.sum(), [x, y], create_graph=again, allow_unused=True)
            if again and grads[0] is not None and grads[0].requires_grad:
                taeda.autograd.grad(grads[0].sum(), [x, y], allow_unused=True)
        except (*ERRORS, TypeError, IndexError) as error:
            assert str(error) and not INTERNAL.search(str(error)), error
            wrong += 1
    print("graphs (tried, refused):", tried, wrong)
    assert 0 < wrong < tried


# ---- saves that are killed ----------------------------------------------------------------------

SAVING = """
import sys, taeda
x = {"a": taeda.full((1 << 19,), float(sys.argv[2])), "b": [1, 2]}
print("ready", flush=True)
while True:
    taeda.save(x, sys.argv[1])
"""


def test_saves_that_are_killed(tmp_path, campaign):
    pick, path = random.Random(3), tmp_path / "x.pt"
    taeda.save({"a": taeda.zeros(1 << 19), "b": [1, 2]}, path)
    attempts = 12 * campaign
    for k in range(attempts):
        command = [sys.executable, "-c", SAVING, str(path), str(k)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert process.stdout.readline() == b"ready\n"
        time.sleep(pick.random() * 0.1)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        a = taeda.load(path)["a"]
        assert a.numel() == 1 << 19 and (a == a[0]).all()
        left = [p.name for p in tmp_path.iterdir() if p != path]
        assert left in ([], [".x.pt.0.saving"])
    taeda.save({"a": taeda.ones(3)}, path)
    assert [p.name for p in tmp_path.iterdir()] == ["x.pt"]
    print("saves killed:", attempts)


def test_a_new_file_gets_its_name_in_one_step(tmp_path, monkeypatch):
    """No temporary name in between, whatever happens."""
    import os

    monkeypatch.setattr(os, "replace", None)
    taeda.save(taeda.ones(2), tmp_path / "x.pt")
    assert taeda.load(tmp_path / "x.pt").tolist() == [1.0, 1.0]
    assert [p.name for p in Path(tmp_path).iterdir()] == ["x.pt"]
