"""Tensors from Python data, and memory shared with NumPy, buffers and DLPack."""

import array
import gc
import threading

import numpy as np
import pytest

import taeda


def raises(kind, message):
    return pytest.raises(kind, match=message)


# ---- taeda.tensor ----


@pytest.mark.parametrize(
    ("data", "dtype", "values"),
    [
        (1, taeda.int64, 1),
        (True, taeda.bool, True),
        (1.5, taeda.float32, 1.5),
        (1j, taeda.complex64, 1j),
        ([], taeda.float32, []),
        ([[], []], taeda.float32, [[], []]),
        ([1, 2], taeda.int64, [1, 2]),
        ((1, 2.0), taeda.float32, [1.0, 2.0]),
        ([True, 2], taeda.int64, [1, 2]),
        ([True, 1.5, 2j], taeda.complex64, [1, 1.5, 2j]),
        ([[1, 2], [3.0, 4]], taeda.float32, [[1, 2], [3, 4]]),
        (range(3), taeda.int64, [0, 1, 2]),
        (bytearray(b"ab"), taeda.int64, [97, 98]),
        (array.array("i", [1, 2]), taeda.int64, [1, 2]),
        (np.float64(1), taeda.float64, 1.0),
        (np.int16(3), taeda.int16, 3),
        (np.bool_(True), taeda.bool, True),
        ([np.float64(1), 2], taeda.float64, [1.0, 2.0]),
        ([np.int32(1), np.int32(2)], taeda.int32, [1, 2]),
        ([np.array([1, 2]), np.array([3, 4])], taeda.int64, [[1, 2], [3, 4]]),
    ],
    ids=repr,
)
def test_inference(data, dtype, values):
    x = taeda.tensor(data)
    assert x.dtype is dtype
    assert x.tolist() == values


def test_tensors_inside():
    assert taeda.tensor([taeda.tensor(1), 2.5]).tolist() == [1.0, 2.5]
    double = taeda.tensor(1.0, dtype=taeda.float64)
    assert taeda.tensor([double, 2]).dtype is taeda.float64
    assert taeda.tensor([taeda.tensor([1]), taeda.tensor([3])]).tolist() == [1, 3]
    with raises(TypeError, "only one element tensors"):
        taeda.tensor([taeda.ones(2), taeda.ones(2)])


def test_given_dtype():
    assert taeda.tensor(1.7, dtype=taeda.int64).item() == 1
    assert taeda.tensor(1.5, dtype=taeda.bool).item() is True
    assert taeda.tensor(-1, dtype=taeda.uint8).item() == 255
    assert taeda.tensor(70000, dtype=taeda.float16).item() == float("inf")
    assert taeda.tensor([1, 2], dtype=float).dtype is taeda.float64
    assert taeda.tensor(2**40, dtype=taeda.float64).item() == 2.0**40
    for value, dtype in ((300, taeda.uint8), (-300, taeda.uint8), (200, taeda.int8),
                         (300.5, taeda.uint8), (float("inf"), taeda.int32),
                         (float("nan"), taeda.int64)):  # fmt: skip
        name = str(dtype).removeprefix("taeda.")
        with raises(RuntimeError, f"value cannot be converted to type {name} without overflow"):
            taeda.tensor(value, dtype=dtype)


@pytest.mark.parametrize(
    ("data", "kind", "message"),
    [
        ([[1, 2], [3]], ValueError, r"expected sequence of length 2 at dim 1 \(got 1\)"),
        ([[1], 2], TypeError, "not a sequence"),
        ([1, [2]], TypeError, "'list' object cannot be interpreted"),
        ("a", TypeError, r"new\(\): invalid data type 'str'"),
        ([1, "a"], TypeError, r"new\(\): invalid data type 'str'"),
        (b"abc", TypeError, r"new\(\): invalid data type 'bytes'"),
        (2**70, ValueError, "Overflow when unpacking long long"),
        ([2**63], ValueError, "Overflow when unpacking long long"),
        (None, RuntimeError, "Could not infer dtype of NoneType"),
        ([None], RuntimeError, "Could not infer dtype of NoneType"),
        ({1: 2}, RuntimeError, "Could not infer dtype of dict"),
        ({1, 2}, RuntimeError, "Could not infer dtype of set"),
        (object(), RuntimeError, "Could not infer dtype of object"),
        (
            np.array(["a"]),
            TypeError,
            "can't convert np.ndarray of type numpy.str_. The only supported",
        ),
        (np.array([object()]), TypeError, "can't convert np.ndarray of type numpy.object_"),
        (np.zeros(2, np.longdouble), TypeError, "can't convert np.ndarray of type numpy.longdoub"),
    ],
    ids=lambda v: type(v).__name__,
)
def test_what_is_no_tensor(data, kind, message):
    with raises(kind, message):
        taeda.tensor(data)


def test_arguments_of_tensor():
    x = taeda.tensor([1.0], requires_grad=True)
    assert x.requires_grad
    assert x.is_leaf
    assert taeda.tensor([1], device="meta").is_meta
    with raises(RuntimeError, "floating point and complex"):
        taeda.tensor(1, requires_grad=True)
    with raises(TypeError, r"tensor\(\): argument 'dtype' must be taeda.dtype, not int"):
        taeda.tensor(1, dtype=3)
    with raises(TypeError, "must be real number, not complex"):
        taeda.tensor(1j, dtype=taeda.float32)
    with raises(TypeError, "foo"):
        taeda.tensor(1, foo=2)
    with raises(RuntimeError, "pin_memory=True"):
        taeda.tensor(1, pin_memory=True)
    with pytest.warns(UserWarning, match="recommended to use sourceTensor.detach"):
        y = taeda.tensor(x)
    assert y.data_ptr() != x.data_ptr()


def test_new_tensor():
    x = taeda.zeros(2, dtype=taeda.int64)
    assert x.new_tensor([1.5]).tolist() == [1]
    assert x.new_tensor([1.5], dtype=taeda.float32).tolist() == [1.5]
    assert x.new([3, 4]).tolist() == [3, 4]
    assert x.new_zeros(2, 3).dtype is taeda.int64


def test_large_list():
    values = [float(i) for i in range(100_000)]
    assert taeda.tensor(values).sum(dtype=taeda.float64).item() == sum(values)


# ---- NumPy ----

DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64",
          "complex64", "complex128"]  # fmt: skip


@pytest.mark.parametrize("name", DTYPES)
def test_round_trip(name):
    a = np.arange(6).reshape(2, 3).astype(name)
    x = taeda.from_numpy(a)
    assert x.dtype is getattr(taeda, name)
    assert x.shape == (2, 3)
    b = x.numpy()
    assert b.dtype == a.dtype
    assert (a == b).all()
    a[0, 1] = 0
    assert b[0, 1] == x[0, 1].item() == 0


def test_strides_are_kept():
    a = np.arange(24.0).reshape(4, 6)
    x = taeda.from_numpy(a[::2, 1:5])
    assert x.stride() == (12, 1)
    assert x.tolist() == a[::2, 1:5].tolist()
    assert taeda.from_numpy(a.T).tolist() == a.T.tolist()
    assert x.t().numpy().tolist() == a[::2, 1:5].T.tolist()
    assert taeda.from_numpy(np.zeros((0, 3))).shape == (0, 3)
    assert taeda.zeros(0, 3).numpy().shape == (0, 3)
    assert taeda.from_numpy(np.array(3.5)).item() == 3.5
    assert taeda.tensor(2).numpy().shape == ()


def test_memory_outlives_both_sides():
    a = np.arange(1000.0)
    x = taeda.from_numpy(a)
    del a
    gc.collect()
    assert x[999].item() == 999
    b = taeda.arange(1000.0).numpy()
    gc.collect()
    assert b[999] == 999


def test_array_is_released_on_another_thread():
    class Array(np.ndarray):
        pass

    import weakref

    a = np.zeros(3).view(Array)
    ref = weakref.ref(a)
    holder = [taeda.from_numpy(a)]
    del a
    thread = threading.Thread(target=holder.clear)
    thread.start()
    thread.join()
    gc.collect()
    assert ref() is None


def test_what_numpy_cannot_share():
    with raises(TypeError, r"expected np.ndarray \(got list\)"):
        taeda.from_numpy([1])
    with raises(ValueError, "stride in the given numpy array is negative"):
        taeda.from_numpy(np.arange(3)[::-1])
    with raises(ValueError, "byte order different from the native"):
        taeda.from_numpy(np.zeros(3, ">f4"))
    fields = np.zeros(2, dtype=[("a", "i4"), ("b", "f8")])
    with raises(ValueError, "not a multiple of the element byte size"):
        taeda.from_numpy(fields["b"])
    frozen = np.zeros(2)
    frozen.flags.writeable = False
    with pytest.warns(UserWarning, match="not writable"):
        taeda.from_numpy(frozen)
    with raises(RuntimeError, r"Can't call numpy\(\) on Tensor that requires grad"):
        taeda.ones(1, requires_grad=True).numpy()
    assert taeda.ones(1, requires_grad=True).numpy(force=True).tolist() == [1]
    with raises(TypeError, "unsupported ScalarType bfloat16"):
        taeda.zeros(1, dtype=taeda.bfloat16).numpy()
    with raises(TypeError, "meta"):
        taeda.zeros(1, device="meta").numpy()


def test_numpy_calls_on_tensors():
    x = taeda.arange(3.0)
    assert np.asarray(x).tolist() == [0, 1, 2]
    assert np.array(x, dtype=np.float64).dtype == np.float64
    assert np.shares_memory(np.asarray(x), x.numpy())
    assert not np.shares_memory(np.array(x), x.numpy())
    assert isinstance(np.sqrt(x), taeda.Tensor)
    assert isinstance(x + np.ones(3), taeda.Tensor)
    assert (np.float64(2) * x).dtype is taeda.float32
    assert (x * np.float32(2)).tolist() == (np.int64(2) * x).tolist() == [0, 2, 4]


def test_numpy_numbers_as_arguments():
    x = taeda.arange(6.0)
    assert x.view(np.int64(2), np.int32(3)).shape == (2, 3)
    assert x.sum(dim=np.int64(0)).item() == 15
    assert x.clamp(np.float32(1), np.float64(3)).tolist() == [1, 1, 2, 3, 3, 3]
    assert x.view(2, 3).sum(0, keepdim=np.bool_(True)).shape == (1, 3)


# ---- as_tensor, asarray ----


def test_as_tensor_shares_where_it_can():
    a, x = np.zeros(2), taeda.zeros(2)
    assert taeda.as_tensor(x) is x
    assert taeda.as_tensor(x, dtype=taeda.float64).dtype is taeda.float64
    taeda.as_tensor(a)[0] = 5
    assert a[0] == 5
    assert taeda.as_tensor(a, taeda.float32).dtype is taeda.float32
    assert taeda.as_tensor([1, 2]).tolist() == [1, 2]


def test_asarray():
    a = np.zeros(2)
    taeda.asarray(a)[0] = 5
    taeda.asarray(a, copy=True)[1] = 5
    assert a.tolist() == [5, 0]
    assert taeda.asarray([1, 2]).dtype is taeda.int64
    assert taeda.asarray(bytearray(b"abcd"), dtype=taeda.uint8).tolist() == [97, 98, 99, 100]
    x = taeda.zeros(1)
    assert taeda.asarray(x) is x
    assert taeda.asarray(x, requires_grad=True).requires_grad
    with raises(ValueError, "can't alias arbitrary sequence"):
        taeda.asarray([1], copy=False)
    with raises(ValueError, "can't alias tensor"):
        taeda.asarray(a, dtype=taeda.float32, copy=False)


# ---- memory that somebody looks at ----

VIEWS = {
    "numpy": lambda x: x.numpy(),
    "a view's numpy": lambda x: x[5:].numpy(),
    "dlpack": lambda x: x.__dlpack__(),
    "buffer": lambda x: memoryview(x.untyped_storage()),
}


@pytest.mark.parametrize("how", VIEWS)
def test_memory_that_somebody_looks_at_is_not_resized(how):
    x = taeda.ones(100)
    view = VIEWS[how](x)
    for resize in (lambda: x.resize_(10_000), lambda: x.untyped_storage().resize_(0)):
        with raises(RuntimeError, "not resizable: an array or a buffer refers to it"):
            resize()
    assert x.tolist() == [1.0] * 100
    del view
    assert x.resize_(10_000)[:100].tolist() == [1.0] * 100


def test_arrays_keep_their_memory_when_the_tensor_gets_another():
    for change in (
        lambda x: x.set_(taeda.zeros(3)),
        lambda x: setattr(x, "data", taeda.zeros(3)),
    ):
        x = taeda.ones(100_000)
        array, capsule = x.numpy(), x.__dlpack__()
        change(x)
        others = [taeda.full((100_000,), 7.0) for _ in range(3)]  # would take freed memory
        assert (array == 1).all() and len(others) == 3
        assert taeda.from_dlpack(capsule).min() == 1


# ---- buffers ----


def test_frombuffer():
    data = bytearray(b"abcdefgh")
    x = taeda.frombuffer(data, dtype=taeda.uint8)
    assert x.tolist() == list(b"abcdefgh")
    data[0] = 0
    assert x[0].item() == 0
    with raises(BufferError, "exports"):
        data.append(1)
    assert taeda.frombuffer(data, dtype=taeda.int16, count=2, offset=2).tolist() == [25699, 26213]
    with pytest.warns(UserWarning, match="not writable"):
        taeda.frombuffer(b"abcd", dtype=taeda.uint8)
    for arguments, message in [
        ({"count": 30}, "requested buffer length"),
        ({"offset": 9}, "must be non-negative and no greater than buffer length"),
        ({"count": 0}, "must not be 0"),
        ({"dtype": taeda.float64, "offset": 1}, "must be a multiple of element size"),
    ]:
        with raises(ValueError, message):
            taeda.frombuffer(data, **{"dtype": taeda.uint8, **arguments})
    with raises(ValueError, "does not implement Python buffer protocol"):
        taeda.frombuffer([1], dtype=taeda.uint8)
    with raises(TypeError, "dtype"):
        taeda.frombuffer(data)


# ---- DLPack ----


@pytest.mark.parametrize("name", DTYPES)
def test_dlpack_with_numpy(name):
    a = np.arange(6).reshape(2, 3).astype(name)
    x = taeda.from_dlpack(a)
    assert x.dtype is getattr(taeda, name)
    a[0, 0] = 1
    assert x.tolist() == a.tolist()
    b = np.from_dlpack(x.t())
    assert b.tolist() == a.T.tolist()
    assert np.shares_memory(a, b)


def test_dlpack_among_tensors():
    x = taeda.arange(6).view(2, 3)[:, 1:]
    for source in (x, x.__dlpack__(), x.__dlpack__(max_version=(1, 0)), taeda.to_dlpack(x)):
        y = taeda.from_dlpack(source)
        assert y.tolist() == x.tolist()
        assert y.data_ptr() == x.data_ptr()
    assert x.__dlpack_device__() == (1, 0)
    assert taeda.from_dlpack(taeda.ones(1, dtype=taeda.bfloat16)).dtype is taeda.bfloat16
    assert taeda.from_dlpack(x.__dlpack__(copy=True)).data_ptr() != x.data_ptr()
    del x, source
    gc.collect()
    assert y.tolist() == [[1, 2], [4, 5]]


def test_dlpack_refusals():
    capsule = taeda.to_dlpack(taeda.ones(1))
    taeda.from_dlpack(capsule)
    with raises(RuntimeError, "can be read once"):
        taeda.from_dlpack(capsule)
    with raises(BufferError, "require gradient"):
        taeda.ones(1, requires_grad=True).__dlpack__()
    with raises(BufferError, "meta"):
        taeda.zeros(1, device="meta").__dlpack__()
    with raises((TypeError, BufferError), "DLPack"):
        taeda.from_dlpack(np.zeros(1, np.longdouble))
    with raises(AttributeError, "__dlpack__"):
        taeda.from_dlpack([1])


def test_dlpack_to_a_device_or_as_a_copy():
    x = taeda.arange(3.0)
    for copy, shared in ((None, True), (False, True), (True, False)):
        y = taeda.from_dlpack(ext_tensor=x, device="cpu", copy=copy)
        assert (y.data_ptr() == x.data_ptr()) is shared and y.tolist() == [0, 1, 2]
    a = np.arange(3.0)
    y = taeda.from_dlpack(a, device=taeda.device("cpu"), copy=True)
    y.zero_()
    assert a.tolist() == [0, 1, 2]
    for kwargs in ({"device": "cpu"}, {"copy": False}):
        with raises(AssertionError, "capsule"):
            taeda.from_dlpack(x.__dlpack__(), **kwargs)
    with raises(TypeError, "copy"):
        taeda.from_dlpack(x, copy="x")
    with raises(TypeError, "device"):
        taeda.from_dlpack(x, device=2.5)
    with raises(TypeError, "positional|1"):
        taeda.from_dlpack(x, "cpu")
    with raises(ValueError, "copy=False"):
        taeda.from_dlpack(x, device="meta", copy=False)
    assert taeda.from_dlpack(x, device="meta").is_meta


def test_capsule_that_nobody_reads():
    for _ in range(100):
        taeda.ones(1000).__dlpack__()
        taeda.ones(1000).__dlpack__(max_version=(1, 0))


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int64])
def test_arrays_over_tensors(kind):
    """As in PyTorch, `array / tensor` is the tensor's reciprocal times the array."""
    x = taeda.tensor([[2.0, 4.0]])
    quotient = np.array([[1, 2], [3, 4]], kind) / x
    assert isinstance(quotient, taeda.Tensor)
    assert quotient.dtype == (x.reciprocal() * np.ones(1, kind)).dtype
    assert quotient.tolist() == [[0.5, 0.5], [1.5, 1.0]]
