"""Tensors print as PyTorch prints them."""

from __future__ import annotations

import random
import re

import pytest

import taeda
import taeda._tensor.printing as printing

NAN, INF = float("nan"), float("inf")


@pytest.fixture(autouse=True)
def default_options():
    yield
    printing.set_printoptions(profile="default", sci_mode=None)


def shown(tensor):
    """The text without the library's name, which is all that may differ."""
    return re.sub(r"\b(taeda|torch)\.", "", printing.tensor_repr(tensor))


@pytest.mark.parametrize(
    ("values", "text"),
    [
        (5, "tensor(5)"),
        (-0.0, "tensor(-0.)"),
        ([], "tensor([])"),
        ([True, False], "tensor([ True, False])"),
        ([1, -20], "tensor([  1, -20])"),
        ([1.0, 2.0], "tensor([1., 2.])"),
        ([1.0, INF], "tensor([1., inf])"),
        ([NAN, 0.0], "tensor([nan, 0.])"),
        ([1.5, INF, -INF, NAN], "tensor([1.5000,    inf,   -inf,    nan])"),
        ([1e-5, 1.0], "tensor([1.0000e-05, 1.0000e+00])"),
        ([1000.0, 1.0], "tensor([1000.,    1.])"),
        ([1001.0, 1.0], "tensor([1.0010e+03, 1.0000e+00])"),
        ([1e8], "tensor([100000000.])"),
        ([1.5 + 2j, -0.0 - 3j], "tensor([1.5000+2.j, -0.0000-3.j])"),
        ([3.5 - 1e6j, 1 + 2j], "tensor([3.5000-1.0000e+06j, 1.0000+2.0000e+00j])"),
        (
            [[[1], [2]], [[3], [4]]],
            "tensor([[[1],\n         [2]],\n\n        [[3],\n         [4]]])",
        ),
    ],
)
def test_values(values, text):
    assert shown(taeda.tensor(values)) == text


def test_repr_and_str_are_the_same_text():
    tensor = taeda.tensor([1.5, 2.0])
    assert repr(tensor) == str(tensor) == "tensor([1.5000, 2.0000])"


def test_suffixes():
    assert shown(taeda.zeros(2, dtype=taeda.float64)) == "tensor([0., 0.], dtype=float64)"
    assert shown(taeda.zeros(1, dtype=taeda.complex128)) == "tensor([0.+0.j], dtype=complex128)"
    assert shown(taeda.empty(0, 3)) == "tensor([], size=(0, 3))"
    assert shown(taeda.empty(2, 0, dtype=taeda.int64)) == "tensor([], size=(2, 0), dtype=int64)"
    leaf = taeda.tensor(5.5, requires_grad=True)
    assert shown(leaf) == "tensor(5.5000, requires_grad=True)"
    assert shown(leaf + 1) == "tensor(6.5000, grad_fn=<AddBackward0>)"
    wide = taeda.full((11,), 1.25, dtype=taeda.float64, requires_grad=True)
    assert (
        shown(wide).splitlines()[-1]
        == "        1.2500, 1.2500], dtype=float64, requires_grad=True)"
    )


def test_dtype_prints_with_the_package_name():
    assert repr(taeda.float64) in printing.tensor_repr(taeda.zeros(2, dtype=taeda.float64))


def test_meta_tensors_have_no_values():
    assert shown(taeda.empty(2, 3, device="meta")) == "tensor(..., device='meta', size=(2, 3))"
    ints = taeda.empty(2, device="meta", dtype=taeda.int32)
    assert shown(ints) == "tensor(..., device='meta', size=(2,), dtype=int32)"


def test_default_dtype_goes_without_saying():
    before = taeda.get_default_dtype()
    taeda.set_default_dtype(taeda.float64)
    try:
        assert shown(taeda.tensor([1.0])) == "tensor([1.])"
        assert shown(taeda.tensor([1.0], dtype=taeda.float32)) == "tensor([1.], dtype=float32)"
        assert shown(taeda.tensor([1j])) == "tensor([0.+1.j])"
        assert shown(taeda.zeros(1, dtype=taeda.complex64)) == "tensor([0.+0.j], dtype=complex64)"
    finally:
        taeda.set_default_dtype(before)


def test_large_tensors_are_summarised():
    assert shown(taeda.arange(1001)) == "tensor([   0,    1,    2,  ...,  998,  999, 1000])"
    rows = shown(taeda.zeros(300, 300, dtype=taeda.int64)).splitlines()
    assert rows == [
        "tensor([[0, 0, 0,  ..., 0, 0, 0],",
        "        [0, 0, 0,  ..., 0, 0, 0],",
        "        [0, 0, 0,  ..., 0, 0, 0],",
        "        ...,",
        "        [0, 0, 0,  ..., 0, 0, 0],",
        "        [0, 0, 0,  ..., 0, 0, 0],",
        "        [0, 0, 0,  ..., 0, 0, 0]])",
    ]


def test_a_summary_reads_only_what_it_shows():
    huge = taeda.ones(1).expand(1 << 40)
    assert shown(huge) == "tensor([1., 1., 1.,  ..., 1., 1., 1.])"


def test_options_are_set_and_restored():
    number = taeda.tensor([1.23456])
    with printing.printoptions(precision=2):
        assert shown(number) == "tensor([1.23])"
        assert printing.get_printoptions()["precision"] == 2
    assert shown(number) == "tensor([1.2346])"
    printing.set_printoptions(sci_mode=True)
    assert shown(number) == "tensor([1.2346e+00])"
    printing.set_printoptions(profile="short")
    assert printing.get_printoptions() == {
        "precision": 2,
        "threshold": 1000,
        "edgeitems": 2,
        "linewidth": 80,
        "sci_mode": None,
    }
    printing.set_printoptions(profile="full")
    assert "..." not in shown(taeda.zeros(2000))


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"profile": "wide"}, ValueError),
        ({"precision": "four"}, TypeError),
        ({"precision": -1}, ValueError),
    ],
)
def test_bad_options_are_refused_and_change_nothing(options, error):
    before = printing.get_printoptions()
    with pytest.raises(error, match=next(iter(options))):
        printing.set_printoptions(**options)
    assert printing.get_printoptions() == before


def random_values(rng, shape, dtype):
    if shape:
        return [random_values(rng, shape[1:], dtype) for _ in range(shape[0])]
    scale = 10 ** rng.choice([-6, -3, 0, 0, 1, 2, 4, 9])
    value = rng.gauss(0, 1) * scale
    if rng.random() < 0.5:
        value = float(round(value))
    if dtype == "bool":
        return rng.random() < 0.5
    if "int" in dtype:
        return abs(int(value)) % 100 if dtype != "int64" else int(value)
    if rng.random() < 0.05:
        value = rng.choice([NAN, INF, -INF, 0.0, -0.0])
    return complex(value, rng.gauss(0, 10)) if "complex" in dtype else value


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


@pytest.mark.parametrize("dtype", DTYPES)
def test_same_text_as_pytorch(dtype):
    torch = pytest.importorskip("torch")
    rng = random.Random(dtype)
    sizes = [1, 2, 3, 7, 12]
    for _ in range(40):
        shape = [rng.choice(sizes) for _ in range(rng.choice([0, 1, 1, 2, 3]))]
        values = random_values(rng, shape, dtype)
        options = {
            "precision": rng.choice([4, 4, 0, 2, 8]),
            "threshold": rng.choice([1000, 20, 5]),
            "edgeitems": rng.choice([3, 2, 1, 0]),
            "linewidth": rng.choice([80, 40, 20, rng.randint(10, 100)]),
            "sci_mode": rng.choice([None, None, True, False]),
        }
        theirs = torch.tensor(values, dtype=getattr(torch, dtype))
        ours = taeda.tensor(values, dtype=getattr(taeda, dtype))
        if theirs.is_floating_point() and rng.random() < 0.3:
            theirs.requires_grad_()
            ours.requires_grad_()
        torch.set_printoptions(**options)
        try:
            expected = repr(theirs).replace("torch.", "")
        finally:
            torch.set_printoptions(profile="default", sci_mode=None)
        with printing.printoptions(**options):
            assert shown(ours) == expected
