"""Files: what is saved is loaded, here and in PyTorch, and damage is named."""

from __future__ import annotations

import collections
import io
import os
import pickle
import random
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import taeda
from taeda import serialization
from taeda.serialization import load, save
from taeda.serialization._rebuild import rebuild_tensor_v3

DTYPES = [
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "bool",
]


class Point:
    """A class that no file may name by default."""

    def __init__(self, x):
        self.x = x


def roundtrip(obj, **options):
    file = io.BytesIO()
    save(obj, file)
    file.seek(0)
    return load(file, **options)


def sample():
    base = taeda.arange(10)
    linear = taeda.nn.Parameter(taeda.ones(2, 3))
    state = collections.OrderedDict(weight=linear.detach(), bias=taeda.zeros(2))
    state._metadata = collections.OrderedDict(version=1)
    return {
        "view": base[2:5],
        "transposed": base.view(2, 5).t(),
        "parameter": linear,
        "wants grad": taeda.ones(1, requires_grad=True),
        "state": state,
        "scalar": taeda.tensor(3.5),
        "empty": taeda.empty(0, 3),
        "meta": taeda.empty(2, 3, device="meta"),
        "size": taeda.Size([1, 2]),
        "dtype": taeda.float16,
        "device": taeda.device("cuda", 1),
        "plain": [1, -1, 2**70, 0.5, 1j, None, True, "é", b"ab", bytearray(b"x"), (1, (2,)), {3}],
        "counter": collections.Counter("abc"),
        5: {"nested": [{}, [], ()]},
    }


def assert_same(a, b, where="file"):
    if isinstance(a, taeda.Tensor):
        assert type(a) is type(b), where
        for trait in ("dtype", "device", "shape", "requires_grad"):
            assert getattr(a, trait) == getattr(b, trait), (where, trait)
        assert (a.stride(), a.storage_offset()) == (b.stride(), b.storage_offset()), where
        if a.device.type != "meta":
            assert a.tolist() == b.tolist(), where
    elif isinstance(a, dict):
        assert type(a) is type(b) and list(a) == list(b), where
        for key in a:
            assert_same(a[key], b[key], f"{where}[{key!r}]")
        assert getattr(a, "_metadata", None) == getattr(b, "_metadata", None), where
    elif type(a) in (list, tuple):
        assert type(a) is type(b) and len(a) == len(b), where
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            assert_same(x, y, f"{where}[{i}]")
    else:
        assert type(a) is type(b) and a == b, where


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("mmap", [False, True])
def test_roundtrip(tmp_path, protocol, mmap):
    original = sample()
    save(original, tmp_path / "a.pt", pickle_protocol=protocol)
    assert_same(original, load(tmp_path / "a.pt", mmap=mmap))


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype(dtype):
    original = taeda.tensor([[0, 1], [1, 0], [1, 1]]).to(getattr(taeda, dtype))
    assert_same(original, roundtrip(original))


def test_tensors_share_storages_again():
    base = taeda.zeros(6)
    a, b = roundtrip([base[:4], base[2:]])
    a[2] = 7
    assert b[0].item() == 7
    # They are tensors of their own, which may be changed in place whatever the other needs.
    a.requires_grad_()
    assert a.is_leaf and not a._is_view()


def test_one_object_stays_one_object():
    tensor = taeda.ones(2)
    a, b = roundtrip([tensor, tensor])
    assert a is b


def test_attributes_of_tensors_are_kept():
    tensor, parameter = taeda.ones(2), taeda.nn.Parameter(taeda.ones(2))
    tensor.note, parameter.group = "kept", [3]
    a, b = roundtrip([tensor, parameter])
    assert a.note == "kept" and b.group == [3]
    assert type(b) is taeda.nn.Parameter


def test_storages_with_a_dtype():
    x = taeda.arange(4.0)
    for weights_only in (True, False):
        (first,), whole = roundtrip(
            ((x.storage(),), {"x": x, "storage": x.storage()}), weights_only=weights_only
        )
        assert isinstance(first, taeda.storage.TypedStorage) and first.dtype == taeda.float32
        assert first.tolist() == [0, 1, 2, 3]
        whole["storage"][0] = 7.0
        assert whole["x"][0] == 7 and first[0] == 7
        again = roundtrip([first])[0]
        assert again.tolist() == [7, 1, 2, 3]


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_storages_with_a_dtype_pass_to_and_from_pytorch():
    torch = pytest.importorskip("torch")
    file = io.BytesIO()
    save((taeda.arange(3).storage(),), file)
    file.seek(0)
    (theirs,) = torch.load(file)
    assert theirs.tolist() == [0, 1, 2] and theirs.dtype == torch.int64
    file = io.BytesIO()
    torch.save(({"a": torch.arange(3.0).storage()},), file)
    file.seek(0)
    assert load(file)[0]["a"].tolist() == [0, 1, 2]


def test_storages():
    storage = taeda.tensor([1, 2, 3], dtype=taeda.uint8).untyped_storage()
    assert bytes(roundtrip(storage).tolist()) == b"\1\2\3"


def test_optimizer_state_roundtrip():
    parameters = [taeda.nn.Parameter(taeda.ones(3)), taeda.nn.Parameter(taeda.ones(2))]
    optimizer = taeda.optim.Adam(parameters, lr=0.1)
    for p in parameters:
        p.grad = taeda.ones_like(p)
    optimizer.step()
    state = optimizer.state_dict()
    assert_same(state, roundtrip(state))


def test_paths_strings_and_file_objects(tmp_path):
    path = tmp_path / "a.pt"
    save([1], str(path))
    assert load(path) == [1]
    with open(path, "rb") as file:
        assert load(file) == [1]
    with open(path, "wb") as file:
        save([2], file)
    assert load(str(path)) == [2]
    with pytest.raises(TypeError, match="f must be a path"):
        save([1], 3)
    with pytest.raises(AttributeError, match="seekable"):
        load(3)
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "missing.pt")
    with pytest.raises(RuntimeError, match="parent directory"):
        save([1], tmp_path / "no" / "a.pt")
    with pytest.raises(ValueError, match="mmap=True needs a path"):
        load(io.BytesIO(), mmap=True)


def test_archives_are_zip_files_with_aligned_entries(tmp_path):
    save([taeda.ones(3), taeda.zeros(5, dtype=taeda.int8)], tmp_path / "name.pt")
    raw = (tmp_path / "name.pt").read_bytes()
    with zipfile.ZipFile(tmp_path / "name.pt") as archive:
        assert archive.testzip() is None
        names = [entry.filename for entry in archive.infolist()]
        assert names == [
            f"name/{part}" for part in ("data.pkl", "byteorder", "data/0", "data/1", "version")
        ]
        assert archive.read("name/byteorder") == sys.byteorder.encode()
        for entry in archive.infolist():
            assert entry.compress_type == zipfile.ZIP_STORED
            name, extra = struct.unpack_from("<2H", raw, entry.header_offset + 26)
            assert (entry.header_offset + 30 + name + extra) % 64 == 0
    again = tmp_path / "again.pt"
    save([1], again)
    first = again.read_bytes()
    save([1], again)
    assert again.read_bytes() == first, "the same content gives the same bytes"


# With PyTorch


def test_pytorch_reads_our_files(tmp_path):
    torch = pytest.importorskip("torch")
    path = tmp_path / "ours.pt"
    original = sample()
    original |= {name: taeda.ones(2, 2).to(getattr(taeda, name)) for name in DTYPES}
    save(original, path)
    for mmap in (False, True):
        theirs = torch.load(path, weights_only=True, mmap=mmap)
        assert list(theirs) == list(original)
        assert theirs["view"].tolist() == [2, 3, 4] and theirs["view"].storage_offset() == 2
        assert theirs["transposed"].stride() == (1, 5)
        assert theirs["view"].untyped_storage()._cdata == (
            theirs["transposed"].untyped_storage()._cdata
        )
        assert type(theirs["parameter"]) is torch.nn.Parameter
        assert theirs["wants grad"].requires_grad
        assert theirs["state"]._metadata == {"version": 1}
        assert theirs["size"] == torch.Size([1, 2]) and theirs["dtype"] is torch.float16
        assert theirs["device"] == torch.device("cuda", 1)
        assert theirs["meta"].is_meta and theirs["empty"].shape == (0, 3)
        for name in DTYPES:
            assert theirs[name].dtype is getattr(torch, name)
            assert theirs[name].tolist() == original[name].tolist()


def test_what_pytorch_has_not_conjugated_yet_is_read(tmp_path):
    torch = pytest.importorskip("torch")
    z = torch.complex(torch.arange(6.0).reshape(2, 3), torch.ones(2, 3))
    lazy = {
        "conj": z.conj(),
        "transposed": z.mH,
        "imag": z.conj().imag,
        "both": torch._neg_view(z.conj()),
        "leaf": z.conj().detach().requires_grad_(),
        "half": torch._neg_view(torch.ones(2)),
    }
    path = tmp_path / "a.pt"
    for name, value in lazy.items():
        torch.save(value, path)
        read = taeda.load(path)
        assert read.tolist() == value.tolist(), name
        assert read.requires_grad == value.requires_grad

    torch.save(torch.zeros(1, dtype=torch.complex64).conj().expand(2**20, 2**20), path)
    with pytest.raises(RuntimeError, match="conjugated"):
        taeda.load(path)
    for marks in ({"conj": 1}, {"hard": True}, {"conj": True}, [1]):
        begin = taeda.ones(2).untyped_storage(), 0, (2,), (1,), False, collections.OrderedDict()
        with pytest.raises(pickle.UnpicklingError, match="valid checkpoint"):
            rebuild_tensor_v3(*begin, taeda.float32, marks)
    begin = taeda.ones(2).untyped_storage(), 0, (1,), (1,), False, collections.OrderedDict()
    with pytest.raises(pickle.UnpicklingError, match="negated"):
        rebuild_tensor_v3(*begin, taeda.uint64, {"neg": True})


def test_we_read_pytorchs_files(tmp_path):
    torch = pytest.importorskip("torch")
    path = tmp_path / "theirs.pt"
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.randn(5, 3)).sum().backward()
    optimizer.step()
    base = torch.arange(10)
    original = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "views": [base[2:5], base.view(2, 5).t()],
        "parameter": torch.nn.Parameter(torch.ones(2)),
        "things": [torch.Size([1]), torch.bfloat16, torch.device("cpu"), {1, 2}, b"x", 1j, 2**65],
        **{name: torch.ones(2, 2).to(getattr(torch, name)) for name in DTYPES},
    }
    torch.save(original, path)
    for options in ({}, {"mmap": True}, {"weights_only": False}):
        ours = load(path, **options)
        assert list(ours) == list(original)
        for name, value in original["model"].items():
            assert ours["model"][name].tolist() == value.tolist()
        assert set(ours["model"]._metadata) == set(original["model"]._metadata)
        assert ours["optimizer"]["param_groups"] == original["optimizer"]["param_groups"]
        for key, state in original["optimizer"]["state"].items():
            for name, value in state.items():
                assert ours["optimizer"]["state"][key][name].tolist() == value.tolist()
        a, b = ours["views"]
        assert a.tolist() == [2, 3, 4] and b.stride() == (1, 5)
        assert a.untyped_storage()._cdata == b.untyped_storage()._cdata
        assert type(ours["parameter"]) is taeda.nn.Parameter
        assert ours["things"] == [
            taeda.Size([1]), taeda.bfloat16, taeda.device("cpu"), {1, 2}, b"x", 1j, 2**65,
        ]  # fmt: skip
        for name in DTYPES:
            assert ours[name].dtype == getattr(taeda, name)
            assert ours[name].tolist() == original[name].tolist()


def test_files_from_machines_of_the_other_byte_order():
    values = taeda.tensor([1.0, 2.0, 3.0])
    complexes = taeda.tensor([1 + 2j])
    file = io.BytesIO()
    save([values, complexes], file)
    swapped = io.BytesIO()
    other = b"big" if sys.byteorder == "little" else b"little"
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(swapped, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name.startswith("archive/data/"):
                data = b"".join(data[i : i + 4][::-1] for i in range(0, len(data), 4))
            new.writestr(name, other if name.endswith("byteorder") else data)
    swapped.seek(0)
    a, b = load(swapped)
    assert a.tolist() == [1.0, 2.0, 3.0] and b.tolist() == [1 + 2j]


def test_compressed_archives_are_read():
    file, packed = io.BytesIO(), io.BytesIO()
    save([taeda.ones(100)], file)
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
    packed.seek(0)
    assert load(packed)[0].tolist() == [1.0] * 100


# map_location


def test_map_location():
    tensor = taeda.ones(2)
    assert roundtrip(tensor, map_location="meta").device.type == "meta"
    assert roundtrip(tensor, map_location=taeda.device("cpu")).tolist() == [1, 1]
    assert roundtrip(tensor, map_location={"cpu": "cpu"}).tolist() == [1, 1]
    seen = []

    def keep(storage, location):
        seen.append((storage.nbytes(), location))
        return storage

    assert roundtrip(tensor, map_location=keep).tolist() == [1, 1]
    assert seen == [(8, "cpu")]
    assert roundtrip(tensor, map_location=lambda storage, location: None).tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="nowhere"):
        roundtrip(tensor, map_location="nowhere")
    with pytest.raises(TypeError, match="map_location must be"):
        roundtrip(tensor, map_location=3)


@pytest.mark.skipif(
    taeda.cuda.is_available() if hasattr(taeda, "cuda") else False, reason="has GPU"
)
def test_a_missing_device_is_named():
    with pytest.raises(RuntimeError, match="CUDA is not available; map_location='cpu'"):
        roundtrip(taeda.ones(2), map_location="cuda")


# What a file may do


def test_unknown_classes_are_refused_unless_allowed():
    with pytest.raises(
        pickle.UnpicklingError, match=r"Point.*add_safe_globals.*weights_only=False"
    ):
        roundtrip(Point(3))
    with serialization.safe_globals([Point]):
        assert roundtrip(Point(3)).x == 3
        assert Point in serialization.get_safe_globals()
    assert Point not in serialization.get_safe_globals()
    serialization.add_safe_globals([(Point, "elsewhere.Name"), Point])
    try:
        assert roundtrip(Point(3)).x == 3
        assert (Point, "elsewhere.Name") in serialization.get_safe_globals()
    finally:
        serialization.clear_safe_globals()
    with pytest.raises(pickle.UnpicklingError):
        roundtrip(Point(3))
    assert roundtrip(Point(3), weights_only=False).x == 3


def archive_with(stream):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", stream)
        archive.writestr("archive/version", b"3\n")
    file.seek(0)
    return file


@pytest.mark.parametrize(
    "stream",
    [
        b"cos\nsystem\n(S'true'\ntR.",
        b"cos\nsystem\n(X\4\0\0\0truetR.",
        b"c__builtin__\neval\n(X\1\0\0\x001tR.",
        b"cbuiltins\ngetattr\n.",
        b"ctaeda.serialization\nsave\n.",
        b"ctorch\nsave\n.",
        b"(X\4\0\0\0trueios\nsystem\n.",
        b"\x80\4\x8c\2os\x8c\6system\x93.",
        b"\x82\1.",  # the extension registry
        b"c__builtin__\nbytearray\n\x8a\5\0\0\0\0\x7f\x85R.",  # half a terabyte
        b"c_codecs\nencode\n(X\1\0\0\0aX\3\0\0\0hextR.",
        b"ctorch\nTensor\n)R.",
        b"ctorch\nTensor\n)\x81.",
        b"]}b.",
        b"c__builtin__\nset\n]\x85R}b.",
        b"ctorch._tensor\n_rebuild_from_type_v2\n(c__builtin__\nset\nctorch\nTensor\n]\x85}tR.",
        b"(X\1\0\0\0ae.",
        b"N",
        b"",
        b"NN.",
        b"h\5.",
        b"X\xff\xff\xff\xffabc.",
        b"\x8d\xff\xff\xff\xff\xff\xff\xff\x7fabc.",
        b"\x80\x09N.",
        b"(X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\x000X\3\0\0\0cpuK\1tQ.",
    ],
)
def test_hostile_streams_are_refused(stream, monkeypatch):
    monkeypatch.setattr(os, "system", lambda command: pytest.fail("the file ran code"))
    with pytest.raises((pickle.UnpicklingError, RuntimeError), match="load: "):
        load(archive_with(stream))


def test_nothing_a_file_names_is_imported():
    with pytest.raises(pickle.UnpicklingError):
        load(archive_with(b"cthis_module_must_stay_out\nname\n."))
    assert "this_module_must_stay_out" not in sys.modules


def test_tensors_must_fit_their_storages():
    file = io.BytesIO()
    save(taeda.ones(4), file)
    for old, new in ((b"K\4\x85", b"K\5\x85"), (b"K\1\x85", b"K\2\x85"), (b"QK\0", b"QK\1")):
        changed = io.BytesIO()
        with zipfile.ZipFile(file) as a, zipfile.ZipFile(changed, "w") as b:
            for name in a.namelist():
                data = a.read(name)
                if name.endswith("data.pkl"):
                    assert old in data
                    data = data.replace(old, new)
                b.writestr(name, data)
        changed.seek(0)
        with pytest.raises(pickle.UnpicklingError, match="elements of a storage"):
            load(changed)


# Damage


def test_damage_is_named_or_harmless(tmp_path):
    original = sample()
    path, rng = tmp_path / "a.pt", random.Random(0)
    save(original, path)
    whole = path.read_bytes()
    named = 0
    for _ in range(300):
        broken = bytearray(whole)
        broken[rng.randrange(len(broken))] ^= 1 << rng.randrange(8)
        path.write_bytes(broken)
        try:
            loaded = load(path)
        except RuntimeError as error:
            assert str(error).startswith("load: ")
            named += 1
        else:
            assert_same(original, loaded)
    assert named > 100
    for _ in range(50):
        path.write_bytes(whole[: rng.randrange(1, len(whole))])
        with pytest.raises(RuntimeError, match="load: "):
            load(path)


def test_each_kind_of_damage(tmp_path):
    path = tmp_path / "a.pt"
    save([taeda.arange(1000.0)], path)
    whole = path.read_bytes()
    cases = [
        (b"", EOFError, "empty"),
        (b"hello", RuntimeError, "not a checkpoint"),
        (pickle.dumps([1]), RuntimeError, "not a checkpoint"),
        (whole[:-1], RuntimeError, "damaged or cut short"),
        (whole + b"\0", RuntimeError, "damaged or cut short"),
    ]
    at = whole.index(taeda.arange(1000.0)[5:9].clone().numpy().tobytes())
    cases.append((whole[:at] + b"\xff" + whole[at + 1 :], RuntimeError, "checksum"))
    for content, error, words in cases:
        path.write_bytes(content)
        with pytest.raises(error, match=words):
            load(path)


def test_damaged_streams_end_in_one_kind_of_error(tmp_path):
    path, rng = tmp_path / "a.pt", random.Random(1)
    save(sample(), path)
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    stream = entries["a/data.pkl"]
    for _ in range(400):
        broken = bytearray(stream)
        for _ in range(rng.choice([1, 1, 4])):
            broken[rng.randrange(len(broken))] = rng.randrange(256)
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in entries.items():
                archive.writestr(name, bytes(broken) if name == "a/data.pkl" else data)
        try:
            load(path)
        except (pickle.UnpicklingError, RuntimeError) as error:
            assert "load: " in str(error) or type(error) is RuntimeError


# Saving


def test_a_failed_save_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "a.pt"
    save([1], path)

    def full(*args):
        raise OSError("No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        save([2], path)
    monkeypatch.undo()
    assert load(path) == [1]
    assert os.listdir(tmp_path) == ["a.pt"]
    with pytest.raises((TypeError, AttributeError, pickle.PicklingError)):
        save([lambda: 0], path)
    assert load(path) == [1]
    assert os.listdir(tmp_path) == ["a.pt"]


@pytest.mark.skipif(os.name != "posix", reason="uses POSIX modes and links")
def test_saving_keeps_modes_and_links(tmp_path):
    path, link = tmp_path / "a.pt", tmp_path / "link.pt"
    save([1], path)
    os.chmod(path, 0o640)
    link.symlink_to(path)
    save([2], link)
    assert load(path) == [2] and link.is_symlink()
    assert os.stat(path).st_mode & 0o777 == 0o640


def test_one_storage_with_two_dtypes_cannot_be_saved():
    bits = taeda.ones(2)
    with pytest.raises(RuntimeError, match="one storage is used both as"):
        save([bits, bits.view(taeda.int32)], io.BytesIO())


def test_changes_to_mapped_tensors_are_not_written_back(tmp_path):
    save(taeda.zeros(3), tmp_path / "a.pt")
    mapped = load(tmp_path / "a.pt", mmap=True)
    mapped.fill_(5)
    assert mapped.tolist() == [5, 5, 5]
    assert load(tmp_path / "a.pt").tolist() == [0, 0, 0]


def test_importing_the_package_does_not_import_pickle_machinery():
    code = "import sys, taeda; print([m for m in ('zipfile', 'mmap') if m in sys.modules])"
    root = str(Path(taeda.__path__[0]).parent)
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": root},
    )
    if done.returncode:
        pytest.skip("the package is not importable from a fresh process here")
    assert done.stdout.strip() == "[]"
