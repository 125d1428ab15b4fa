"""Files of safetensors, through the same `save` and `load`."""

from __future__ import annotations

import pytest

import taeda
from taeda.serialization import load, save


def tensors_by_name():
    return {
        "b": taeda.arange(6.0).reshape(2, 3).t(),
        "a": taeda.tensor([True, False, True]),
        "empty": taeda.empty(0, 2, dtype=taeda.int64),
        "scalar": taeda.tensor(2.5, dtype=taeda.float64),
        "half": taeda.ones(3, dtype=taeda.bfloat16),
    }


@pytest.mark.parametrize("mmap", [False, True])
def test_safetensors_roundtrip(tmp_path, mmap):
    path, original = tmp_path / "a.safetensors", tensors_by_name()
    save(original, path)
    loaded = load(path, mmap=mmap)
    assert loaded.keys() == original.keys()
    for name, tensor in original.items():
        assert loaded[name].dtype == tensor.dtype and loaded[name].tolist() == tensor.tolist()
        assert loaded[name].is_contiguous() and not loaded[name]._is_view()
    assert load(path, map_location="meta")["b"].shape == (3, 2)


def test_safetensors_files_of_the_reference_package(tmp_path):
    reference = pytest.importorskip("safetensors.numpy")
    path = tmp_path / "a.safetensors"
    original = {k: v for k, v in tensors_by_name().items() if k != "half"}
    save(original, path)
    for name, array in reference.load_file(path).items():
        assert array.tolist() == original[name].tolist()
    reference.save_file({k: v.contiguous().numpy() for k, v in original.items()}, path)
    for name, tensor in load(path).items():
        assert tensor.dtype == original[name].dtype and tensor.tolist() == original[name].tolist()


def test_damaged_safetensors_are_named(tmp_path):
    path = tmp_path / "a.safetensors"
    save(tensors_by_name(), path)
    whole = path.read_bytes()
    for content in (
        b"",
        whole[:5],
        whole[:-1],
        whole + b"\0",
        b"\xff" * 8 + whole[8:],
        whole.replace(b'"F64"', b'"F99"'),
        whole.replace(b"[3,2]", b"[9,2]"),
        (4).to_bytes(8, "little") + b"[[[[",
    ):
        path.write_bytes(content)
        with pytest.raises(RuntimeError, match="damaged, or no safetensors file"):
            load(path)


def test_what_safetensors_cannot_hold_is_refused(tmp_path):
    path = tmp_path / "a.safetensors"
    for obj, error in (
        ([taeda.ones(1)], TypeError),
        ({"a": 1}, TypeError),
        ({"a": taeda.ones(1, dtype=taeda.complex128)}, ValueError),
    ):
        with pytest.raises(error, match="save: "):
            save(obj, path)
    assert not path.exists()
