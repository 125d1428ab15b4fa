"""PyTorch's op database with tensors of a class that has no memory and a __torch_dispatch__.

The class computes with the plain tensors that it holds, so values and gradients must be those of
plain tensors.
"""

from __future__ import annotations

import re
import warnings
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the conformance suite compares with PyTorch")
pytest.importorskip("expecttest", reason="PyTorch's op database needs expecttest")

import taeda  # noqa: E402
from taeda.utils._pytree import tree_map  # noqa: E402
from tests.conformance.bridge import Untranslatable, to_taeda  # noqa: E402
from tests.conformance.entries import (  # noqa: E402
    ENTRIES,
    describe,
    function_of,
    key_of,
    samples,
    tensors_in,
)

SAMPLES = 6
# Their results are whatever memory holds, they change memory that is not there, or, for the lengths
# of ctc_loss, they read it as lists.
UNFIT = re.compile(r"empty|resize|sparse|ctc_loss")


class Holder(taeda.Tensor):
    """Holds a plain tensor and hands every operation to it."""

    held: taeda.Tensor
    __torch_function__ = taeda._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, held: taeda.Tensor, requires_grad: bool = False) -> Holder:
        self: Any = taeda.Tensor._make_wrapper_subclass(
            cls,
            held.size(),
            strides=held.stride(),
            storage_offset=held.storage_offset(),
            dtype=held.dtype,
            device=held.device,
            requires_grad=requires_grad,
        )
        self.held = held
        return self

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*tree_map(held, args), **tree_map(held, kwargs or {}))
        return tree_map(lambda x: Holder(x) if isinstance(x, taeda.Tensor) else x, result)


def held(x: Any) -> Any:
    return x.held if isinstance(x, Holder) else x


def outcome(f: Any, sample: Any, wrap: Any) -> Any:
    """Values and gradients as plain tensors, or the error."""
    given = tree_map(
        lambda t: wrap(to_taeda(t)) if isinstance(t, torch.Tensor) else t,
        [sample.input, sample.args, sample.kwargs],
    )
    inputs = [t for t in tensors_in(given) if t.requires_grad]
    taeda.manual_seed(3)
    try:
        results = f(given[0], *given[1], **given[2])
        kept = tree_map(lambda t: held(t).clone() if isinstance(t, taeda.Tensor) else t, results)
        outs = [t for t in tensors_in(results) if t.requires_grad]
        if not (outs and inputs):
            return kept, []
        ones = [taeda.ones_like(held(t).detach()) for t in outs]
        grads = taeda.autograd.grad(outs, inputs, ones, allow_unused=True)
        return kept, [held(g) for g in grads]
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        return type(error).__name__


def plain(t: taeda.Tensor) -> taeda.Tensor:
    return t.detach().requires_grad_(t.requires_grad)


def wrapper(t: taeda.Tensor) -> Holder:
    return Holder(t.detach(), t.requires_grad)


def same(a: Any, b: Any, where: str) -> None:
    if isinstance(a, taeda.Tensor):
        assert type(b) is taeda.Tensor, f"{where}: {b}"
        assert a.shape == b.shape and a.dtype == b.dtype, where
        taeda.testing.assert_close(b, a, equal_nan=True, msg=lambda m: f"{where}: {m}")
    elif isinstance(a, (list, tuple)):
        assert isinstance(b, (list, tuple)), f"{where}: {b}"
        assert len(a) == len(b), where
        for one, other in zip(a, b, strict=True):
            same(one, other, where)
    else:
        assert a == b or a != a, where


@pytest.mark.filterwarnings("ignore:torch.qr")  # in the making of samples
@pytest.mark.parametrize("op", ENTRIES, ids=key_of)
def test_values_and_gradients_are_those_of_plain_tensors(op: Any) -> None:
    if UNFIT.search(op.name):
        pytest.skip("not for tensors without memory")
    f = function_of(op)
    with_gradients = torch.float64 in op.supported_backward_dtypes("cpu")
    dtype = torch.float64 if torch.float64 in op.supported_dtypes("cpu") else torch.int64
    if dtype not in op.supported_dtypes("cpu"):
        pytest.skip("neither float64 nor int64")
    for sample in samples(op, dtype, with_gradients, SAMPLES):
        where = f"{key_of(op)}({describe(sample)})"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                expected = outcome(f, sample, plain)
                found = outcome(f, sample, wrapper)
            except Untranslatable:
                continue
        same(expected, found, where)
