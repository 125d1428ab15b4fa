"""The objects beside Tensor: dtypes, devices, sizes, generators."""

import inspect

import pytest

import taeda
from taeda import Tensor


def raises(kind, message):
    return pytest.raises(kind, match=message)


def test_dtype_objects():
    assert repr(taeda.float32) == "taeda.float32"
    assert taeda.float is taeda.float32
    assert taeda.long is taeda.int64
    assert taeda.float16.is_floating_point
    assert taeda.complex64.is_complex
    assert taeda.complex64.to_real() is taeda.float32
    assert taeda.float64.to_complex() is taeda.complex128
    assert not taeda.uint8.is_signed
    assert taeda.int16.itemsize == 2
    with raises(TypeError, "cannot create"):
        taeda.dtype()
    with raises(RuntimeError, "int32 has no complex counterpart"):
        taeda.int32.to_complex()


def test_device_objects():
    d = taeda.device("cuda:1")
    assert (d.type, d.index, str(d)) == ("cuda", 1, "cuda:1")
    assert repr(taeda.device("cpu")) == "device(type='cpu')"
    assert d == taeda.device("cuda", 1) == taeda.device(type="cuda", index=1)
    assert d != taeda.device("cuda")
    assert hash(d) == hash(taeda.device(d))
    assert taeda.device("cpu") != "cpu"
    for text in ("gpu", "cpu:x", "cpu:-1", "cuda:01", ""):
        with raises(RuntimeError, "[Dd]evice string"):
            taeda.device(text)
    with raises(RuntimeError, "must not include an index"):
        taeda.device("cpu:0", 1)
    with raises(TypeError, "not NoneType"):
        taeda.device(None)


def test_default_device():
    with taeda.device("meta"):
        assert taeda.zeros(2).is_meta
        assert taeda.tensor([1]).is_meta
        assert not taeda.zeros(2, device="cpu").is_meta
        assert taeda.get_default_device().type == "meta"
        assert not taeda.zeros_like(taeda.ones(2, device="cpu")).is_meta
    assert not taeda.zeros(2).is_meta
    taeda.set_default_device("meta")
    try:
        assert taeda.rand(2).is_meta
    finally:
        taeda.set_default_device(None)
    assert not taeda.rand(2).is_meta


def test_default_dtype():
    taeda.set_default_dtype(taeda.float64)
    try:
        assert taeda.tensor(1.5).dtype is taeda.zeros(1).dtype is taeda.float64
        assert taeda.tensor(1j).dtype is taeda.complex128
    finally:
        taeda.set_default_dtype(taeda.float32)
    with raises(TypeError, "only floating-point types"):
        taeda.set_default_dtype(taeda.int64)


def test_size_objects():
    s = taeda.Size([2, 3])
    assert repr(s) == "taeda.Size([2, 3])"
    assert s == (2, 3)
    assert hash(s) == hash((2, 3))
    assert s.numel() == 6
    for t in (s[:1], s + (1,), (1,) + s, s * 2, 2 * s):
        assert isinstance(t, taeda.Size)
    assert s[-1] == 3
    assert taeda.Size([taeda.tensor(3)]) == (3,)
    with raises(TypeError, r"takes an iterable of 'int' \(item 1 is 'str'\)"):
        taeda.Size([1, "a"])
    with raises(TypeError, "can only concatenate tuple"):
        s + [1]


def test_generators():
    g = taeda.Generator()
    assert g.manual_seed(3) is g
    assert g.initial_seed() == 3
    assert g.manual_seed(-1).initial_seed() == 2**64 - 1
    assert g.device == taeda.device("cpu")
    state = g.get_state()
    first = taeda.rand(3, generator=g).tolist()
    assert taeda.rand(3, generator=g.set_state(state)).tolist() == first
    twin = g.clone_state()
    assert taeda.rand(2, generator=g).tolist() == taeda.rand(2, generator=twin).tolist()
    for bad, kind, message in (
        ("a", RuntimeError, "expected a long, but got str"),
        (2**64, ValueError, "from -2"),
    ):
        with raises(kind, message):
            g.manual_seed(bad)
    with raises(TypeError, "ByteTensor"):
        g.set_state(taeda.zeros(3))
    with raises(RuntimeError, "state size to be 3"):
        g.set_state(taeda.zeros(3, dtype=taeda.uint8))


def test_default_generator():
    taeda.manual_seed(7)
    assert taeda.initial_seed() == 7
    state = taeda.get_rng_state()
    a = taeda.rand(4).tolist()
    taeda.set_rng_state(state)
    assert taeda.rand(4).tolist() == a
    with taeda.random.fork_rng():
        b = taeda.rand(4).tolist()
    assert taeda.rand(4).tolist() == b


def test_limits():
    f = taeda.finfo(taeda.float32)
    assert (f.bits, f.eps, f.dtype) == (32, 2.0**-23, "float32")
    assert taeda.tensor(f.max).item() == f.max
    assert taeda.finfo(taeda.float64).max == 1.7976931348623157e308
    assert taeda.finfo(taeda.bfloat16).eps == 2.0**-7
    assert taeda.finfo(taeda.complex64) == f
    i = taeda.iinfo(taeda.uint8)
    assert (i.min, i.max, i.bits) == (0, 255, 8)
    assert taeda.iinfo(taeda.int64).min == -(2**63)
    with raises(TypeError, "floating-point dtype"):
        taeda.finfo(taeda.int32)
    with raises(TypeError, "integer dtype"):
        taeda.iinfo(taeda.float32)


def test_signatures():
    parameters = inspect.signature(taeda.sum).parameters
    assert list(parameters) == ["input", "dim", "keepdim", "dtype"]
    assert parameters["keepdim"].default is False
    assert "self" in inspect.signature(Tensor.sum).parameters
    assert taeda.softmax.__name__ == "softmax"
    assert Tensor.softmax.__qualname__ == "Tensor.softmax"
    assert taeda.softmax.__doc__.startswith("softmax(")


def test_names_of_devices_that_no_build_has():
    for name in ("mps", "xpu", "hpu", "xla", "mtia"):
        d = taeda.device(name, 1)
        assert (d.type, d.index, str(taeda.device(name))) == (name, 1, name)
        assert taeda.device(name) != taeda.device("cpu")
        error = AssertionError if name in ("xpu", "mtia") else RuntimeError  # as in PyTorch
        for make in (taeda.zeros, taeda.ones, taeda.rand):
            with raises(error, f"no {name.upper()} support"):
                make(2, device=name)
        with raises(error, f"no {name.upper()} support"):
            taeda.ones(2).to(name)
    with raises(RuntimeError, "no accelerator"):
        taeda.device(3)
