"""Python numbers beyond a dtype's range raise what they raise in PyTorch, wherever they are written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import taeda

torch = pytest.importorskip("torch")

DTYPES = [
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
]
NUMBERS = [
    *(2**70, 2**63 - 1, -(2**63), 300, -1, 256, 255, -255, -256, 128, 1.5, -0.5, 255.5),
    *(65504, 65505.0, -65520, 2**40, 1e40, -1e40, 1e300, float("inf"), float("nan"), True),
]
WRITES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "fill_": lambda lib, x, v: x.fill_(v),
    "copy_": lambda lib, x, v: x.copy_(v),
    "full": lambda lib, x, v: lib.full((2,), v, dtype=x.dtype),
    "full_like": lambda lib, x, v: lib.full_like(x, v),
    "new_full": lambda lib, x, v: x.new_full((2,), v),
    "masked_fill": lambda lib, x, v: x.masked_fill(lib.tensor([True, False]), v),
    "index_fill": lambda lib, x, v: x.index_fill(0, lib.tensor([0]), v),
    "scatter": lambda lib, x, v: x.scatter(0, lib.tensor([0]), v),
}


def outcome(lib: Any, dtype: str, write: Callable[[Any, Any, Any], Any], number: Any) -> Any:
    try:
        x = lib.ones(2).to(getattr(lib, dtype))
        return [complex(v) for v in write(lib, x, number).tolist()]
    except Exception as error:
        return type(error)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", WRITES)
def test_writes(name: str, dtype: str) -> None:
    for number in NUMBERS:
        expected = outcome(torch, dtype, WRITES[name], number)
        found = outcome(taeda, dtype, WRITES[name], number)
        assert repr(found) == repr(expected), f"{name} of {number} in {dtype}"


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("index", [0, [0], slice(None), "mask"])
def test_assignment(index: Any, dtype: str) -> None:
    def write(lib: Any, x: Any, v: Any) -> Any:
        x[lib.tensor([True, False]) if index == "mask" else index] = v
        return x

    for number in NUMBERS:
        expected = outcome(torch, dtype, write, number)
        assert repr(outcome(taeda, dtype, write, number)) == repr(expected), f"{number} in {dtype}"


@pytest.mark.parametrize("dtype", ["int64", "float32", "float16"])
def test_complex_numbers_have_no_place_among_real_ones(dtype: str) -> None:
    for name in ("fill_", "full", "masked_fill"):
        assert outcome(taeda, dtype, WRITES[name], 1 + 2j) is RuntimeError
        assert outcome(torch, dtype, WRITES[name], 1 + 2j) is RuntimeError
