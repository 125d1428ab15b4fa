"""assert_close decides as PyTorch's does, and says what differs."""

import copy

import numpy as np
import pytest

import taeda
from taeda.testing import assert_close, make_tensor

DTYPES = ["float16", "bfloat16", "float32", "float64", "complex64", "complex128", "int64", "bool"]


def outcome(function, *args, **options):
    try:
        function(*args, **options)
    except (AssertionError, ValueError, TypeError) as error:
        return AssertionError if isinstance(error, AssertionError) else type(error)
    return None


def build(library, what):
    """Pairs to compare: the same of either library."""
    t, nan = library.tensor, float("nan")
    pairs = {
        "equal": (t([1.0, 2.0]), t([1.0, 2.0])),
        "near": (t([1.0, 2.0]), t([1.0, 2.0 + 1e-6])),
        "far": (t([1.0, 2.0]), t([1.0, 2.1])),
        "shape": (t([1.0]), t(1.0)),
        "dtype": (t([1.0]), t([1])),
        "empty": (library.empty(0), library.empty(0)),
        "nan": (t([nan]), t([nan])),
        "infinite": (t([float("inf")]), t([float("inf")])),
        "integers": (t([1, 2]), t([1, 3])),
        "flags": (t([True, False]), t([True, True])),
        "list": ([t(1.0), 2], [t(1.0), 2]),
        "list length": ([t(1.0)], [t(1.0), 2]),
        "mapping": ({"a": t(1.0)}, {"a": t(1.5)}),
        "keys": ({"a": t(1.0)}, {"b": t(1.0)}),
        "number": (1.0, 1.0 + 1e-9),
        "number type": (1, 1.0),
        "numbers": (1, 2),
        "nan number": (nan, nan),
        "none": (None, None),
        "none or not": (None, 1.0),
        "array": (np.ones(2), np.ones(2)),
        "text": ("a", "a"),
        "tensor and number": (t(1.0), 1.0),
        "strides": (t([[1.0, 2.0], [3.0, 4.0]]).T, t([[1.0, 3.0], [2.0, 4.0]])),
        "meta": (library.empty(2, device="meta"), library.empty(2, device="meta")),
        "complex": (t([1 + 1j]), t([1 + 1.1j])),
    }
    return list(pairs) if what is None else pairs[what]


@pytest.mark.parametrize("what", build(taeda, None))
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"equal_nan": True},
        {"check_dtype": False},
        {"rtol": 0.5, "atol": 0.0},
        {"rtol": 0.0, "atol": 0.0},
        {"check_stride": True},
    ],
    ids=str,
)
def test_decides_as_pytorch_does(what, options):
    torch = pytest.importorskip("torch")
    ours = outcome(assert_close, *build(taeda, what), **options)
    theirs = outcome(torch.testing.assert_close, *build(torch, what), **options)
    assert ours == theirs


@pytest.mark.parametrize("name", DTYPES)
def test_tolerances_are_those_of_pytorch(name):
    torch = pytest.importorskip("torch")
    for step in (0.0, 1e-8, 1e-6, 3e-6, 2e-5, 2e-4, 2e-3, 1e-2, 1.0):
        for base in (0.0, 1.0, 3.0):
            pairs = [
                (
                    lib.tensor([base]).to(getattr(lib, name)),
                    lib.tensor([base + step], dtype=lib.float64).to(getattr(lib, name)),
                )
                for lib in (taeda, torch)
            ]
            ours, theirs = (
                outcome(assert_close, *pairs[0]),
                outcome(torch.testing.assert_close, *pairs[1]),
            )
            assert ours == theirs, (step, base)


def test_messages():
    a = taeda.arange(6.0).view(2, 3)
    b = copy.deepcopy(a)
    b[1, 2] += 1
    with pytest.raises(AssertionError) as caught:
        assert_close({"x": [a]}, {"x": [b]})
    text = str(caught.value)
    assert "1 of 6 elements (16.7%)" in text and "at index (1, 2)" in text and "['x'][0]" in text
    with pytest.raises(ValueError, match="given together"):
        assert_close(a, b, rtol=0.5)
    with pytest.raises(AssertionError, match="^mine$"):
        assert_close(a, b, msg="mine")
    with pytest.raises(AssertionError, match="before: assert_close"):
        assert_close(a, b, msg=lambda text: "before: " + text)
    with pytest.raises(AssertionError, match="dtype differs"):
        assert_close(a, a.double())
    with pytest.raises(AssertionError, match="shapes differ"):
        assert_close(a, a[0])
    with pytest.raises(AssertionError, match="keys differ"):
        assert_close({"x": a}, {"y": a})


@pytest.mark.parametrize("dtype", [*DTYPES, "uint8", "int8"])
def test_tensors_for_tests_are_pytorchs(dtype):
    torch = pytest.importorskip("torch")
    for options in (
        {},
        {"low": 0, "high": 1.5},
        {"low": -300, "high": 1e6},
        {"noncontiguous": True},
        {"low": 0, "high": 2, "exclude_zero": True},
        {"low": 3, "high": 1},
        {"low": float("nan")},
        {"low": -9, "high": -8.5},
        {"requires_grad": True},
    ):

        def made(library, options=options):
            library.manual_seed(0)
            kind = getattr(library, dtype)
            t = library.testing.make_tensor((3, 4), dtype=kind, device="cpu", **options)
            return t.tolist(), t.stride(), t.requires_grad

        try:
            expected = made(torch)
        except ValueError:
            with pytest.raises(ValueError, match="low|requires_grad"):
                made(taeda)
        else:
            assert made(taeda) == expected


def test_shapes_of_tensors_for_tests():
    options = {"dtype": taeda.float32, "device": "cpu"}
    assert make_tensor(2, 3, **options).shape == make_tensor([2, 3], **options).shape == (2, 3)
    assert make_tensor((), noncontiguous=True, **options).shape == ()
    last = make_tensor(2, 3, 4, 5, memory_format=taeda.channels_last, **options)
    assert last.is_contiguous(memory_format=taeda.channels_last)
    with pytest.raises(ValueError, match="mutually exclusive"):
        make_tensor(2, noncontiguous=True, memory_format=taeda.channels_last, **options)
    with pytest.warns(FutureWarning, match="low"):
        assert (make_tensor(2, low=1, high=1, **options) == 1).all()
