"""Storages: typed ones, and memory shared with other processes."""

from __future__ import annotations

import copy
import os
import pickle
import sys

import pytest

import taeda
from taeda.storage import TypedStorage, UntypedStorage


def test_typed_storage_shares_the_tensor_s_memory():
    x = taeda.arange(6.0).reshape(2, 3)
    storage = x[1].storage()
    assert isinstance(storage, TypedStorage) and storage == x.storage()
    assert (len(storage), storage.size(), storage.nbytes(), storage.element_size()) == (6, 6, 24, 4)
    assert storage.dtype is taeda.float32 and storage.device == x.device
    assert storage.data_ptr() == x.data_ptr() and storage.type() == "taeda.FloatStorage"
    storage[0] = 10
    storage[-1] = 20
    storage[2:4] = 7
    assert x.tolist() == [[10, 1, 7], [7, 4, 20]] and storage[5] == 20 and list(storage)[1] == 1
    assert storage.fill_(3).tolist() == [3.0] * 6 and x.sum() == 18
    storage.copy_(TypedStorage(range(6), dtype=taeda.int64))
    assert x.flatten().tolist() == [0, 1, 2, 3, 4, 5]
    assert storage.untyped() == x.untyped_storage()
    assert "of size 6]" in repr(storage) and repr(storage).startswith(" 0.0\n 1.0\n")


def test_making_typed_storages():
    assert TypedStorage().size() == 0 and TypedStorage(3).nbytes() == 12
    assert TypedStorage([1, 2], dtype=taeda.int16).tolist() == [1, 2]
    wrapped = TypedStorage(wrap_storage=UntypedStorage(16), dtype=taeda.float64)
    assert wrapped.size() == 2
    double = TypedStorage([1.5]).double()
    assert double.dtype is taeda.float64 and double.tolist() == [1.5] and double.double() is double
    assert TypedStorage([1.5, 2.5]).int().tolist() == [1, 2]
    assert TypedStorage(2, device="meta").device.type == "meta"
    resized = TypedStorage([1.0, 2.0]).resize_(3)
    assert resized.size() == 3 and resized.tolist()[:2] == [1, 2]


def test_copies_of_typed_storages():
    x = taeda.ones(3)
    storage = x.storage()
    for other in (storage.clone(), copy.copy(storage), pickle.loads(pickle.dumps(storage))):
        assert other != storage and other.tolist() == [1, 1, 1] and other.dtype is taeda.float32
    y, s = copy.deepcopy([x, storage])
    s[0] = 5
    assert y[0] == 5 and x[0] == 1


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda s: s[5], IndexError, "index 5 out of range for storage of size 3"),
        (lambda s: s[-4], IndexError, "out of range"),
        (lambda s: s["a"], TypeError, "can't index a TypedStorage with str"),
        (lambda s: s[0:1], RuntimeError, "slices"),
        (lambda s: s.copy_(TypedStorage(2)), RuntimeError, "the sizes differ: 3 and 2"),
        (lambda s: TypedStorage(1, 2), TypeError, "expected a size"),
        (lambda s: TypedStorage(wrap_storage=3), TypeError, "must be UntypedStorage, not int"),
        (
            lambda s: TypedStorage(wrap_storage=s.untyped(), device="meta"),
            RuntimeError,
            "is on .*, not on meta",
        ),
        (lambda s: TypedStorage(-1), RuntimeError, "negative"),
    ],
)
def test_errors_of_typed_storages(call, error, message):
    with pytest.raises(error, match=message):
        call(taeda.ones(3).storage())


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # of fork, among threads
@pytest.mark.parametrize("size", [0, 3, 5000])
def test_share_memory(size):
    x = taeda.arange(float(size))
    view, array = x[: size // 2], x.numpy()
    assert not x.is_shared()
    assert x.share_memory_() is x and x.is_shared() and view.is_shared()
    assert x.share_memory_() is x and x.storage().is_shared()
    assert x.tolist() == list(range(size)) == array.tolist()
    child = os.fork()
    if child == 0:
        x.add_(1)
        os._exit(0)
    os.waitpid(child, 0)
    assert x.tolist() == [i + 1 for i in range(size)]
    with pytest.raises(RuntimeError, match="not resizable"):
        x.untyped_storage().resize_(100)
    del x, view


def test_share_memory_of_modules_and_borrowed_memory():
    layer = taeda.nn.Linear(2, 2).share_memory()
    assert layer.weight.is_shared() and isinstance(layer.weight, taeda.nn.Parameter)
    numpy = pytest.importorskip("numpy")
    array = numpy.ones(3)
    x = taeda.from_numpy(array).share_memory_()
    array[0] = 7
    assert x.tolist() == [1, 1, 1]


def test_map():
    x = taeda.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert x.t().map_(taeda.tensor([10.0, 20.0]), lambda a, b: a * b).tolist() == [
        [10, 60],
        [20, 80],
    ]
    assert x.tolist() == [[10, 20], [60, 80]]
    assert taeda.tensor([1, 2]).map_(taeda.tensor([1, 2]), lambda a, b: 2.5).tolist() == [2, 2]
    assert taeda.zeros(0).map_(taeda.zeros(0), max).shape == (0,)
    for call, error, message in (
        (lambda: x.map_(3, max), TypeError, "must be Tensor, not int"),
        (lambda: x.map_(x.long(), max), TypeError, "expected a tensor of taeda.float32"),
        (lambda: x.map_(x, 3), TypeError, "not callable"),
        (lambda: x.map_(taeda.ones(3), max), RuntimeError, "expand"),
        (lambda: x.clone().requires_grad_().map_(x, max), RuntimeError, "requires grad"),
    ):
        with pytest.raises(error, match=message):
            call()
    assert x.tolist() == [[10, 20], [60, 80]]


def test_a_smaller_storage_stays_readable_to_its_tensors():
    for count in (3, 1000, 5_000_000):
        x = taeda.ones(count)
        storage = x.untyped_storage()
        storage.resize_(8)
        assert len(storage) == 8 and x[:2].tolist() == [1, 1]
        assert x.sum() <= count  # what was cut off has some value; PyTorch would crash
        with pytest.raises(RuntimeError, match="out of bounds for storage of size 8"):
            x[1:].view(-1)
        storage.resize_(4 * count + 400)
        assert x.fill_(2).sum() == 2 * count and len(storage) == 4 * count + 400


def test_the_size_of_a_storage_counts_its_bytes():
    x = taeda.ones(1000)
    for storage in (x.storage(), x.untyped_storage()):
        assert 4000 < sys.getsizeof(storage) < 4200
        assert sys.getsizeof(storage) - sys.getsizeof(type(storage)(0)) == 4000
