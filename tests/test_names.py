"""Names that are public in taeda are PyTorch's."""

from __future__ import annotations

import pytest

import taeda

# Modules of taeda's own, and what `from __future__ import annotations` leaves.
OURS = {"annotations", "array_api", "compat", "insight", "safetensors", "sklearn", "training"}
# What shows training at work, and does it.
OURS |= {"Trainer", "explain", "record", "strict", "summary", "wiring"}
OURS |= {"register_device", "set_fallback"}


def public(module: object) -> set[str]:
    return {name for name in dir(module) if not name.startswith("_")}


def test_functions_and_classes_of_the_package():
    torch = pytest.importorskip("torch")
    assert {name for name in public(taeda) if not hasattr(torch, name)} <= OURS


def test_methods_of_tensors():
    torch = pytest.importorskip("torch")
    # The rows of pointwise functions make methods of them; PyTorch has `rsub` as a function alone.
    # The array API standard asks for `to_device`.
    assert public(taeda.Tensor) - set(dir(torch.Tensor)) <= {"rsub", "to_device"}
