"""The formats beside PyTorch's zip archives: recognised, read, written, and looked at."""

from __future__ import annotations

import io
import os
import pickle
import struct
import subprocess
import sys
import tarfile
import time
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest

import taeda
from taeda import inspect
from taeda import safetensors as ours
from taeda.serialization import _files, load, save

NAMES = ["float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool"]


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tolist() == b.tolist()


# PyTorch's old formats


def old_file(torch, protocol=2):
    base = torch.arange(10.0)
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    original = {
        "views": [base[2:5], base.view(2, 5).t()],
        "parameter": torch.nn.Parameter(torch.zeros(3)),
        "optimizer": optimizer.state_dict(),
        "empty": torch.empty(0, 2),
        **{name: torch.ones(2).to(getattr(torch, name)) for name in [*NAMES, "complex64"]},
    }
    file = io.BytesIO()
    torch.save(original, file, pickle_protocol=protocol, _use_new_zipfile_serialization=False)
    return original, file.getvalue()


@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.parametrize("protocol", [2, 4])
def test_files_of_pytorch_before_1_6(tmp_path, protocol, weights_only):
    torch = pytest.importorskip("torch")
    original, raw = old_file(torch, protocol)
    path = tmp_path / "old.pt"
    path.write_bytes(raw)
    for source, options in ((io.BytesIO(raw), {}), (path, {}), (path, {"mmap": True})):
        loaded = load(source, weights_only=weights_only, **options)
        assert list(loaded) == list(original)
        a, b = loaded["views"]
        assert a.tolist() == [2, 3, 4] and b.stride() == (1, 5)
        assert a.untyped_storage()._cdata == b.untyped_storage()._cdata
        assert type(loaded["parameter"]) is taeda.nn.Parameter
        state, wanted = loaded["optimizer"]["state"][0], original["optimizer"]["state"][0]
        assert {k: v.tolist() for k, v in state.items()} == {
            k: v.tolist() for k, v in wanted.items()
        }
        for name in [*NAMES, "complex64"]:
            assert loaded[name].dtype is getattr(taeda, name)
            assert loaded[name].tolist() == original[name].tolist()
    assert load(path, map_location="meta")["views"][0].is_meta


def test_damaged_old_files_are_named(tmp_path):
    torch = pytest.importorskip("torch")
    _, raw = old_file(torch)
    for cut in range(20, len(raw), 97):
        with pytest.raises((RuntimeError, pickle.UnpicklingError), match="load: "):
            load(io.BytesIO(raw[:cut]))
    with pytest.raises(RuntimeError, match="load: "):
        load(io.BytesIO(raw + b"\0"))


def test_old_files_may_not_run_code():
    stream = b"".join(pickle.dumps(part, 2) for part in (0x1950A86A20F9469CFC6C, 1001, {}))
    with pytest.raises(pickle.UnpicklingError, match=r"posix\.system|os\.system"):
        load(io.BytesIO(stream + pickle.dumps(os.system, 2) + pickle.dumps([], 2)))


class Stands:
    """Pickled as a reference to tensor `key`."""

    def __init__(self, key):
        self.key = key


class Referring(pickle.Pickler):
    def persistent_id(self, obj):
        return obj.key if isinstance(obj, Stands) else None


def tar_file(torch):
    """A file as PyTorch 0.1.9 wrote it: two tensors, one over a view of the other's storage."""
    parts = {name: io.BytesIO() for name in ("storages", "tensors", "pickle")}
    for record in (1, (77, "cpu", torch.FloatStorage)):
        pickle.dump(record, parts["storages"], 2)
    parts["storages"].write(struct.pack("<q6f", 6, *range(6)))
    pickle.dump([(78, 77, 2, 3)], parts["storages"], 2)
    pickle.dump(2, parts["tensors"], 2)
    pickle.dump((5, 77, torch.FloatTensor), parts["tensors"], 2)
    parts["tensors"].write(struct.pack("<i4x5q", 2, 2, 3, 3, 1, 0))
    pickle.dump((6, 78, torch.FloatTensor), parts["tensors"], 2)
    parts["tensors"].write(struct.pack("<i4x3q", 1, 2, 1, 1))
    Referring(parts["pickle"], 2).dump(OrderedDict(a=Stands(5), b=[Stands(6)]))
    sizes = {"short": 2, "int": 4, "long": 8}
    info = {"protocol_version": 1000, "little_endian": True, "type_sizes": sizes}
    parts["sys_info"] = io.BytesIO(pickle.dumps(info, 2))
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        for name, part in parts.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(part.getvalue())
            part.seek(0)
            archive.addfile(entry, part)
    return file.getvalue()


@pytest.mark.parametrize("weights_only", [True, False])
def test_files_of_the_first_pytorch(tmp_path, weights_only):
    torch = pytest.importorskip("torch")
    path = tmp_path / "old.pt"
    path.write_bytes(tar_file(torch))
    loaded, theirs = load(path, weights_only=weights_only), torch.load(path, weights_only=False)
    assert type(loaded) is OrderedDict and loaded["a"].tolist() == theirs["a"].tolist()
    assert loaded["b"][0].tolist() == theirs["b"][0].tolist() == [3.0, 4.0]
    loaded["a"][1, 0] = 9
    assert loaded["b"][0].tolist() == [9.0, 4.0]
    path.write_bytes(path.read_bytes()[:1500])
    with pytest.raises(RuntimeError, match="load: .* damaged"):
        load(path)


def test_dtypes_over_storages_of_bytes():
    """PyTorch writes its newest dtypes over untyped storages; what we know of them is read."""
    torch = pytest.importorskip("torch")
    file = io.BytesIO()
    bytes_ = torch.arange(4, dtype=torch.uint8).untyped_storage()
    torch.save([bytes_, torch.strided, torch.FloatTensor], file)
    file.seek(0)
    storage, layout, kind = load(file)
    assert storage.tolist() == [0, 1, 2, 3]
    assert layout is taeda.strided and kind is taeda.FloatTensor
    again = io.BytesIO()
    save([layout, kind], again)
    again.seek(0)
    assert torch.load(again) == [torch.strided, torch.FloatTensor]
    if hasattr(taeda, "uint16"):
        file = io.BytesIO()
        torch.save(torch.tensor([1, 65535], dtype=torch.uint16), file)
        file.seek(0)
        assert load(file).tolist() == [1, 65535]


# NumPy's formats


def test_npz_both_ways(tmp_path):
    path = tmp_path / "a.npz"
    original = {name: taeda.tensor([[0, 1], [1, 0]]).to(getattr(taeda, name)) for name in NAMES}
    original |= {
        "transposed": taeda.arange(6).reshape(2, 3).t(),
        "scalar": taeda.tensor(2.5),
        "empty": taeda.empty(0, 3),
        "layer.weight": taeda.nn.Parameter(taeda.ones(2)),
        "complex": taeda.tensor([1 + 2j]),
    }
    save(original, path)
    with np.load(path) as arrays:
        assert set(arrays) == set(original)
        for name, tensor in original.items():
            assert arrays[name].tolist() == tensor.tolist()
            assert str(arrays[name].dtype) == str(tensor.dtype).removeprefix("taeda.")
    loaded = load(path)
    assert list(loaded) == list(original)
    for name, tensor in original.items():
        assert same(loaded[name], tensor) and loaded[name].is_contiguous()
    loaded["scalar"].fill_(1)
    assert load(path, map_location="meta")["empty"].is_meta
    first = path.read_bytes()
    save(original, path)
    assert path.read_bytes() == first


def test_arrays_of_other_orders_are_read(tmp_path):
    swapped = np.arange(6.0).reshape(2, 3).astype(">f8")
    np.savez_compressed(tmp_path / "a.npz", swapped=swapped, fortran=np.asfortranarray(swapped))
    for tensor in load(tmp_path / "a.npz").values():
        assert tensor.tolist() == swapped.tolist() and tensor.dtype is taeda.float64


@pytest.mark.parametrize("mmap", [False, True])
def test_npy_both_ways(tmp_path, mmap):
    path = tmp_path / "a.npy"
    for tensor in (taeda.arange(6).reshape(2, 3), taeda.tensor(1.5), taeda.ones(3, 2).t()):
        save(tensor, path)
        assert np.load(path).tolist() == tensor.tolist()
        loaded = load(path, mmap=mmap)
        assert same(loaded, tensor)
        loaded.fill_(0)
        assert np.load(path).tolist() == tensor.tolist()


def test_what_numpys_formats_cannot_hold_is_refused(tmp_path):
    path = tmp_path / "a.npz"
    with pytest.raises(TypeError, match="a dict of named tensors"):
        save([taeda.ones(1)], path)
    with pytest.raises(TypeError, match="must be a tensor"):
        save({"a": 1}, path)
    with pytest.raises(ValueError, match="bfloat16"):
        save({"a": taeda.ones(1, dtype=taeda.bfloat16)}, path)
    with pytest.raises(TypeError, match="must be a tensor"):
        save([1], tmp_path / "a.npy")
    assert os.listdir(tmp_path) == []
    np.savez(path, text=np.array(["a"]))
    with pytest.raises(RuntimeError, match=r"'text' in .* dtype <U1"):
        load(path)
    np.savez(path, objects=np.array([{}], dtype=object))
    with pytest.raises(RuntimeError, match="load: "):
        load(path)
    with pytest.raises(ValueError, match="not for npz"):
        load(path, mmap=True)


def test_damaged_arrays_are_named(tmp_path):
    path = tmp_path / "a.npz"
    values = taeda.arange(1000.0)
    save({"a": values}, path)
    whole = path.read_bytes()
    at = whole.index(values[5:9].clone().numpy().tobytes())
    for content in (whole[:-9], whole[:200], whole[:at] + b"\xff" + whole[at + 1 :]):
        path.write_bytes(content)
        with pytest.raises(RuntimeError, match="load: .* damaged"):
            load(path)
    save(values, tmp_path / "a.npy")
    whole = (tmp_path / "a.npy").read_bytes()
    for cut in (7, 50, len(whole) - 1):
        (tmp_path / "a.npy").write_bytes(whole[:cut])
        for mmap in (False, True):
            with pytest.raises(RuntimeError, match="load: "):
                load(tmp_path / "a.npy", mmap=mmap)


# The front door


def test_files_are_known_by_what_they_hold(tmp_path):
    original = {"a": taeda.arange(3.0)}
    for suffix in (".pt", ".safetensors", ".npz"):
        save(original, tmp_path / f"a{suffix}")
        renamed = tmp_path / "renamed"
        os.replace(tmp_path / f"a{suffix}", renamed)
        assert load(renamed)["a"].tolist() == [0, 1, 2], suffix
        assert load(io.BytesIO(renamed.read_bytes()))["a"].tolist() == [0, 1, 2], suffix
    save(original["a"], tmp_path / "a.npy")
    assert load(io.BytesIO((tmp_path / "a.npy").read_bytes())).tolist() == [0, 1, 2]


# safetensors


def test_safetensors_module_against_the_package(tmp_path):
    theirs = pytest.importorskip("safetensors.numpy")
    reference = pytest.importorskip("safetensors")
    path = tmp_path / "a.safetensors"
    tensors = {"b": taeda.arange(6.0).reshape(2, 3), "a": taeda.tensor(3), "c": taeda.empty(0)}
    ours.save_file(tensors, path, metadata={"x": "1"})
    for name, array in theirs.load_file(path).items():
        assert array.tolist() == tensors[name].tolist()
    assert {k: v.tolist() for k, v in theirs.load(ours.save(tensors)).items()} == {
        k: v.tolist() for k, v in tensors.items()
    }
    theirs.save_file({k: v.numpy() for k, v in tensors.items()}, path, metadata={"x": "1"})
    assert all(same(v, tensors[k]) for k, v in ours.load_file(path).items())
    assert all(same(v, tensors[k]) for k, v in ours.load(path.read_bytes()).items())
    with reference.safe_open(path, "np") as a, ours.safe_open(path, "taeda") as b:
        assert sorted(a.keys()) == b.keys() and a.metadata() == b.metadata()
        assert a.offset_keys() == b.offset_keys()
        for name in tensors:
            assert a.get_tensor(name).tolist() == b.get_tensor(name).tolist()
            x, y = a.get_slice(name), b.get_slice(name)
            assert x.get_shape() == y.get_shape() and x.get_dtype() == y.get_dtype()
        x, y = a.get_slice("b"), b.get_slice("b")
        for index in (slice(0, 1), (slice(None), slice(1, 2)), 1, (..., 0), (0, 1)):
            assert x[index].tolist() == y[index].tolist()
        with pytest.raises(ours.SafetensorError, match="does not contain a tensor 'zz'"):
            b.get_tensor("zz")
    with pytest.raises(ours.SafetensorError, match="closed"):
        b.keys()


def test_safetensors_rules(tmp_path):
    path, base = tmp_path / "a.safetensors", taeda.arange(6.0)
    for tensors, error, words in (
        ([base], ValueError, "dict"),
        ({"a": 1}, ValueError, "must be a tensor"),
        ({"a": base.reshape(2, 3).t()}, ValueError, "not contiguous"),
        ({"a": base, "b": base[2:3]}, RuntimeError, "share memory"),
        ({1: base}, TypeError, "named tensors"),
    ):
        with pytest.raises(error, match=words):
            ours.save_file(tensors, path)
    with pytest.raises(TypeError, match="metadata"):
        ours.save_file({"a": base}, path, metadata={"a": 1})
    assert not path.exists()
    ours.save_file({"a": base[:3], "b": base[3:]}, path)
    assert ours.load_file(path)["b"].tolist() == [3, 4, 5]
    with ours.safe_open(path, "pt", device="meta") as file:
        assert file.get_tensor("a").is_meta and file.metadata() is None
        assert file.get_slice("a")[:2].shape == (2,)
    with pytest.raises(ours.SafetensorError, match="framework"):
        ours.safe_open(path, "np")


# Mapping


def mapped_kilobytes(path):
    """Of a file's mappings: what is in memory, and what of it was written to."""
    found = {"Rss:": 0, "Private_Dirty:": 0}
    inside = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        key, _, rest = line.partition(" ")
        if not key.endswith(":"):
            inside = line.endswith(str(path))
        elif inside and key in found:
            found[key] += int(rest.split()[0])
    return found["Rss:"], found["Private_Dirty:"]


def test_mapping_reads_nothing_and_shares_pages(tmp_path):
    path = tmp_path / "big.pt"
    count = 64 << 20  # a quarter of a gigabyte
    save({"big": taeda.ones(count), "small": taeda.zeros(3)}, path)
    loaded = load(path, mmap=True)
    resident, _ = mapped_kilobytes(path)
    assert resident < 1 << 12
    assert loaded["big"].shape == (count,) and loaded["big"][-1].item() == 1
    again = load(path, mmap=True)
    assert again["big"].sum().item() == count
    resident, dirty = mapped_kilobytes(path)
    # Read through one of the two mappings only, and never copied.
    assert dirty == 0 and 1 << 18 <= resident < 1.1 * (1 << 18)


# Saving, killed


KILLED = """
import os, signal, sys
import taeda
from taeda.serialization import _files, _zip
path, where, when = sys.argv[1], sys.argv[2], int(sys.argv[3])
def die(*args, **kwargs):
    os.kill(os.getpid(), signal.SIGKILL)
if where == "put":
    put, count = _zip.ArchiveWriter._put, [0]
    def counted(self, data, size):
        if count[0] == when:
            die()
        count[0] += 1
        put(self, data, size)
    _zip.ArchiveWriter._put = counted
elif where in ("fsync", "replace"):
    setattr(os, where, die)
elif where == "after":
    _files._sync_folder = die
taeda.save({str(i): taeda.full((1000,), 2.0) for i in range(4)}, path)
"""


@pytest.mark.skipif(os.name != "posix", reason="uses signals")
def test_a_killed_save_leaves_a_whole_file(tmp_path):
    path, unnamed = tmp_path / "a.pt", _files._open_unnamed(str(tmp_path))
    if unnamed is not None:
        os.close(unnamed)
    points = [("put", n) for n in range(0, 15, 2)]
    points += [("fsync", 0), ("replace", 0), ("after", 0), ("never", 0)]
    for where, when in points:
        save({str(i): taeda.ones(1000) for i in range(4)}, path)
        done = subprocess.run([sys.executable, "-c", KILLED, str(path), where, str(when)])
        assert done.returncode == (0 if where == "never" else -9), (where, when)
        new = where in ("after", "never")
        loaded = load(path)
        assert {t.sum().item() for t in loaded.values()} == {2000.0 if new else 1000.0}, where
        # What is being written has no name yet, but for a moment at the end.
        left = {p.name for p in tmp_path.iterdir()} - {"a.pt"}
        assert left <= {".a.pt.0.saving"}
        assert where == "replace" or not left or not unnamed
    save(1, path)
    assert os.listdir(tmp_path) == ["a.pt"]


def test_saving_where_files_must_have_names(tmp_path, monkeypatch):
    """Files that a killed save left are removed, those of a running one are not."""
    monkeypatch.setattr(_files, "_open_unnamed", lambda folder: None)
    path = tmp_path / "a.pt"
    (tmp_path / ".a.pt.0.saving").write_bytes(b"left over")
    with _files.replacing(path) as first:
        first.write(b"1")
        assert sorted(os.listdir(tmp_path)) == [".a.pt.0.saving"]
        with _files.replacing(path) as second:
            second.write(b"2")
            assert sorted(os.listdir(tmp_path)) == [".a.pt.0.saving", ".a.pt.1.saving"]
        assert path.read_bytes() == b"2"
    assert path.read_bytes() == b"1" and os.listdir(tmp_path) == ["a.pt"]
    with pytest.raises(ZeroDivisionError), _files.replacing(path):
        raise ZeroDivisionError
    assert path.read_bytes() == b"1" and os.listdir(tmp_path) == ["a.pt"]


def test_saving_at_the_same_time(tmp_path):
    path = tmp_path / "a.pt"
    (tmp_path / ".a.pt.0.saving").mkdir()  # not a file of ours: left alone
    with _files.replacing(path) as first:
        first.write(b"1")
        with _files.replacing(path) as second:
            second.write(b"2")
        assert path.read_bytes() == b"2"
        os.chmod(path, 0o600)
    assert path.read_bytes() == b"1"
    save(3, path)
    assert sorted(os.listdir(tmp_path)) == [".a.pt.0.saving", "a.pt"]


@pytest.mark.skipif(os.name != "posix", reason="uses signals")
def test_saves_killed_at_any_time(tmp_path):
    path = tmp_path / "a.pt"
    code = (
        "import sys, taeda\n"
        "n = 0\n"
        "while True:\n"
        "    n += 1\n"
        "    taeda.save({str(i): taeda.full((50_000,), float(n)) for i in range(4)}, sys.argv[1])\n"
        "    print(n, flush=True)\n"
    )
    for delay in (0.0, 0.003, 0.011, 0.02):
        child = subprocess.Popen([sys.executable, "-c", code, path], stdout=subprocess.PIPE)
        child.stdout.readline()
        time.sleep(delay)
        child.kill()
        child.stdout.close()
        child.wait()
        values = {value for tensor in load(path).values() for value in tensor.tolist()}
        assert len(values) == 1, "a file of two saves"


# Looking at files


def test_inspect(tmp_path, capsys):
    base = taeda.arange(10.0)
    path = tmp_path / "a.pt"
    save({"model": {"w": base[2:5], "v": base.view(2, 5)}, "epoch": 3, "x": Stands(4)}, path)
    report = inspect.inspect_file(path)
    assert [(row.name, row.dtype, row.shape, row.nbytes) for row in report.tensors] == [
        ("model.w", "float32", (3,), 12),
        ("model.v", "float32", (2, 5), 40),
    ]
    assert report.stored == 40 and report.damage == []
    assert ("epoch", "3") in report.others and ("x.key", "4") in report.others
    assert inspect.main([str(path)]) == 0
    printed = capsys.readouterr().out
    assert "model.v  float32  [2, 5]  40 B  shares memory with model.w" in printed
    assert "2 tensors, 13 elements, 40 B" in printed and "checksums: all fit" in printed
    damaged = bytearray(path.read_bytes())
    at = damaged.index(base.numpy().tobytes())
    damaged[at] ^= 1
    path.write_bytes(damaged)
    assert inspect.inspect_file(path).damage == ["data/0"]
    assert inspect.inspect_file(path, check=False).damage is None
    assert inspect.main([str(path)]) == 1
    assert "DAMAGED, they do not fit data/0" in capsys.readouterr().out


def test_inspect_every_format(tmp_path, capsys):
    state = {"b": taeda.ones(2, 3), "a": taeda.zeros(4, dtype=taeda.int64)}
    for suffix in ("pt", "npz", "safetensors"):
        save(state, tmp_path / f"x.{suffix}")
        report = inspect.inspect_file(tmp_path / f"x.{suffix}")
        assert {(r.name, r.dtype, r.shape) for r in report.tensors} == {
            ("b", "float32", (2, 3)),
            ("a", "int64", (4,)),
        }
    save(state["b"], tmp_path / "x.npy")
    assert inspect.inspect_file(tmp_path / "x.npy").tensors[0].shape == (2, 3)
    (tmp_path / "x.txt").write_text("hello")
    assert inspect.main([str(tmp_path / name) for name in ("x.txt", "none", "x.npy")]) == 1
    printed = capsys.readouterr().out
    assert "x.txt: inspect: " in printed and "No such file" in printed and "1 tensors" in printed


def test_inspect_is_a_command(tmp_path):
    save({"w": taeda.ones(3)}, tmp_path / "a.pt")
    command = [sys.executable, "-m", "taeda.inspect", str(tmp_path / "a.pt")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "w  float32  [3]  12 B" in done.stdout
