"""Files with mutated bytes: one clear error or a value, never a crash or a huge allocation."""

import io
import pickle
import random
import re
import zipfile

import pytest

import taeda
from taeda import nn

ERRORS = (RuntimeError, ValueError, EOFError, TypeError, KeyError, pickle.UnpicklingError)
OPCODES = b"(.0123NFGIJKLMPQRSTUVXabcdeghijloprstuq}]\x80\x85\x86\x87\x88\x89\x8a\x8c\x93\x94"
EXTREMES = [0, 1, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**63 - 1, 2**63, 2**64 - 1]


def files():
    model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))
    optimizer = taeda.optim.Adam(model.parameters())
    model(taeda.randn(5, 4)).sum().backward()
    optimizer.step()
    base = taeda.arange(20.0)
    things = [
        model.state_dict(),
        optimizer.state_dict(),
        taeda.randn(3, 4, dtype=taeda.complex64),
        {"views": (base[2:], base[::2]), "rest": [1, 2.5, None, True, "x", b"y", {3}, 2**70]},
        nn.Parameter(taeda.ones(3)),
    ]
    made = []
    for thing in things:
        buffer = io.BytesIO()
        taeda.save(thing, buffer)
        made.append(buffer.getvalue())
    return made


def mutated(data, pick):
    data = bytearray(data)
    for _ in range(pick.choice([1, 1, 2, 4])):
        at = pick.randrange(len(data) or 1)
        way = pick.randrange(7)
        if way == 0:
            data[at : at + 1] = bytes([pick.randrange(256)])
        elif way == 1:
            del data[at : at + pick.choice([1, 2, 10, 100])]
        elif way == 2:
            data[at:at] = pick.randbytes(pick.choice([1, 2, 8]))
        elif way == 3:
            del data[at:]
        elif way == 4:
            size = pick.choice([4, 8])
            extreme = pick.choice(EXTREMES) % 256**size
            data[at : at + size] = extreme.to_bytes(size, "little")
        elif way == 5:
            data[at : at + 1] = bytes([pick.choice(OPCODES)])
        else:
            other = pick.randrange(len(data) or 1)
            data[at : at + 4] = data[other : other + 4]
    return bytes(data)


def with_a_damaged_entry(data, pick):
    """The zip archive is whole again, with checksums that fit: what is in it is damaged."""
    archive = zipfile.ZipFile(io.BytesIO(data))
    names = archive.namelist()
    victim = pick.choice([n for n in names if n.endswith("data.pkl")] * 4 + names)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as out:
        for name in names:
            entry = archive.read(name)
            out.writestr(name, mutated(entry, pick) if name == victim else entry)
    return buffer.getvalue()


@pytest.fixture
def little_memory():
    """Far more than the files hold, far less than what damaged sizes may ask for."""
    before = taeda._C.cpu_memory_stats()
    taeda._C.cpu_set_memory_limit(before["reserved"] + (64 << 20))
    yield
    taeda._C.cpu_set_memory_limit(before["limit"])


def attempt(load):
    """Whether it loaded; what it raised instead must be clear."""
    try:
        repr(load())
    except ERRORS as e:
        assert len(str(e)) > 10, type(e)
        assert not re.search(r"std::|vector::", str(e)), e
        return False
    return True


@pytest.mark.parametrize("damage", [mutated, with_a_damaged_entry])
def test_damaged_checkpoints(damage, little_memory):
    pick = random.Random(7)
    loaded = 0
    for original in files():
        for _ in range(300):
            data = damage(original, pick)
            loaded += attempt(lambda: taeda.load(io.BytesIO(data)))
    assert loaded < 900  # of 1500: damage in the middle of values cannot be seen


@pytest.mark.parametrize("suffix", [".safetensors", ".npy", ".npz"])
def test_damaged_arrays(suffix, tmp_path, little_memory):
    path = tmp_path / f"file{suffix}"
    x = taeda.arange(12.0).view(3, 4)
    taeda.save(x if suffix == ".npy" else {"x": x, "y": x.long()}, path)
    original, pick = path.read_bytes(), random.Random(3)
    header = original[:200]  # where the damage can be seen
    for _ in range(300):
        path.write_bytes(mutated(header, pick) + original[200:])
        attempt(lambda: taeda.load(path))
