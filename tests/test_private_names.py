"""Names that PyTorch keeps private and that packages use all the same."""

from __future__ import annotations

import pytest

import taeda
from taeda.compat.private.associative_scan import associative_scan


@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 8, 13])
@pytest.mark.parametrize("reverse", [False, True])
def test_associative_scan(n, reverse):
    x = taeda.arange(2.0 * n).reshape(2, n) % 5 + 1
    for dim, y in ((1, x), (-1, x), (0, x.T)):
        got = associative_scan(lambda a, b: a + b, y, dim, reverse, "generic")
        want = y.flip(dim).cumsum(dim).flip(dim) if reverse else y.cumsum(dim)
        assert taeda.equal(got, want)


def test_associative_scan_of_a_tree():
    # x[i] = a[i] * x[i - 1] + b[i], by the composition of its steps
    a, b = taeda.rand(9, 2), taeda.rand(9, 2)

    def compose(first, second):
        return {"a": first["a"] * second["a"], "b": first["b"] * second["a"] + second["b"]}

    got = associative_scan(compose, {"a": a, "b": b}, 0, combine_mode="generic")["b"]
    x = taeda.zeros(2)
    for i in range(9):
        x = a[i] * x + b[i]
        taeda.testing.assert_close(got[i], x)
    leaf = taeda.rand(5, dtype=taeda.float64, requires_grad=True)
    assert taeda.autograd.gradcheck(
        lambda x: associative_scan(lambda a, b: a * b, x, 0, combine_mode="generic"), leaf
    )
    for bad in (
        lambda: associative_scan(compose, {"a": a, "b": b[:3]}, 0, combine_mode="generic"),
        lambda: associative_scan(compose, {"a": a, "b": b}, 0),
        lambda: associative_scan(compose, [], 0, combine_mode="generic"),
    ):
        with pytest.raises(ValueError, match="associative_scan"):
            bad()
    with pytest.raises(RuntimeError, match="tree"):
        associative_scan(lambda p, q: (p, q), a, 0, combine_mode="generic")


def test_classes_that_need_what_is_missing():
    for make in (taeda.cuda.Stream, taeda.cuda.Event, taeda.cuda.CUDAGraph):
        with pytest.raises(RuntimeError, match="not compiled with CUDA"):
            make()
    with taeda.cuda.stream(None):
        pass
    with pytest.raises(TypeError, match="Stream or None"):
        taeda.cuda.stream(1)
    assert taeda.cuda.default_generators == ()


def test_storages_of_files(tmp_path):
    path = tmp_path / "bytes"
    path.write_bytes(bytes(range(16)))
    storage = taeda.UntypedStorage.from_file(path, False, 12)
    assert storage.nbytes() == 12 and storage[3] == 3 and storage[-1] == 11
    part = storage[4:8]
    assert part.tolist() == [4, 5, 6, 7] and part.data_ptr() == storage.data_ptr() + 4
    part[0] = 99
    assert storage[4] == 99 and path.read_bytes()[4] == 4  # private
    del storage
    assert part.tolist() == [99, 5, 6, 7] and not part.resizable()
    assert taeda.asarray(part, dtype=taeda.uint8).tolist() == [99, 5, 6, 7]
    shared = taeda.UntypedStorage.from_file(str(path), shared=True, nbytes=20)
    shared[0] = 42
    assert path.read_bytes()[0] == 42 and len(path.read_bytes()) == 20
    x = taeda.from_file(path, size=2, dtype=taeda.int64)
    assert x.shape == (2,) and x.dtype == taeda.int64
    y = taeda.from_file(tmp_path / "new", shared=True, size=3)
    y += 1
    assert taeda.from_file(tmp_path / "new", size=3).tolist() == [1, 1, 1]
    assert taeda.UntypedStorage.from_file(path).nbytes() == 0
    for call, message in [
        (lambda: taeda.UntypedStorage.from_file(path, False, 30), "smaller than the required"),
        (lambda: taeda.UntypedStorage.from_file(tmp_path / "none", False, 3), "unable to open"),
        (lambda: part[::2], "step of 2"),
        (lambda: taeda.UntypedStorage.from_file(path, False, -1), "negative"),
    ]:
        with pytest.raises(RuntimeError, match=message):
            call()
    with pytest.raises(IndexError):
        part[4]
    with pytest.raises(TypeError):
        part["a"]


def test_records_of_checkpoints(tmp_path):
    path = tmp_path / "x.pt"
    taeda.save({"x": taeda.arange(3.0)}, path)
    reader = taeda.PyTorchFileReader(path)
    assert {"data.pkl", "data/0", "version"} <= set(reader.get_all_records())
    assert reader.has_record("data/0") and not reader.has_record("none")
    assert reader.get_record_size("data/0") == 12 and len(reader.get_record("data/0")) == 12
    read = reader.get_storage_from_record
    assert read("data/0", 2, taeda.float32).tolist() == [0, 1]
    assert read("data/0", 12, taeda.UntypedStorage).dtype == taeda.uint8
    assert read("data/0", 0, taeda.float32).shape == (0,)
    for call, message in [
        (lambda: reader.get_record("none"), "failed locating"),
        (lambda: read("data/0", 4, taeda.float32), "12 bytes"),
        (lambda: taeda.PyTorchFileReader(tmp_path / "none"), "cannot read"),
    ]:
        with pytest.raises(RuntimeError, match=message):
            call()


def test_pinned_memory_is_asked_of_what_has_it():
    from taeda.utils.data.pin_memory import pin_memory

    class Batch:
        def pin_memory(self):
            return "pinned"

    assert pin_memory({"a": [Batch(), 1], "b": (Batch(), "text")}) == {
        "a": ["pinned", 1],
        "b": ("pinned", "text"),
    }
