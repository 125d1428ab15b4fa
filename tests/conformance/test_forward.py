"""Forward mode over PyTorch's op database: the tangents of results beside PyTorch's."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the conformance suite compares with PyTorch")
pytest.importorskip("expecttest", reason="PyTorch's op database needs expecttest")

import torch.autograd.forward_ad as their_forward_ad  # noqa: E402

import taeda  # noqa: E402
from taeda.autograd import forward_ad  # noqa: E402
from tests.conformance.bridge import Untranslatable, tensor_to_taeda, to_taeda  # noqa: E402
from tests.conformance.entries import (  # noqa: E402
    ENTRIES,
    KEYS,
    assert_same,
    describe,
    expected_failure,
    function_of,
    samples,
    tensors_in,
)
from tests.conformance.gauge import CANONICAL, CONSTRAINED  # noqa: E402

SAMPLES = 5
DTYPES = (torch.float64, torch.complex128)


def mapped(value: Any, f: Any) -> Any:
    """`value` with `f` applied to the tensors in it."""
    if isinstance(value, (torch.Tensor, taeda.Tensor)):
        return f(value)
    if isinstance(value, (list, tuple)):
        items = [mapped(v, f) for v in value]
        return tuple(items) if isinstance(value, tuple) else items
    if isinstance(value, dict):
        return {k: mapped(v, f) for k, v in value.items()}
    return value


def arguments_of(sample: Any) -> tuple[list, list]:
    """The sample's arguments without requires_grad, and a tangent for each that had it, or None."""
    generator = torch.Generator().manual_seed(5)
    given = [sample.input, list(sample.args), dict(sample.kwargs)]
    tangents = [
        torch.randn(t.shape, dtype=t.dtype, generator=generator) if t.requires_grad else None
        for t in tensors_in(given)
    ]
    return mapped(given, lambda t: t.detach()), tangents


def run(module: Any, op: Any, f: Any, arguments: list, tangents: list) -> list:
    """The results of `f` with their tangents, or None for a result without one."""
    wrapper = CONSTRAINED.get(op.name, op.gradcheck_wrapper)
    if op.name.startswith("masked."):  # those wrappers call PyTorch on the result
        wrapper = lambda f, *a, **k: f(*a, **k)  # noqa: E731
    rest = iter(tangents)

    def dual(t: Any) -> Any:
        tangent = next(rest)
        return t if tangent is None else module.make_dual(t, tangent)

    with module.dual_level():
        first, args, kwargs = mapped(arguments, dual)
        results = CANONICAL.get(op.name, lambda r: r)(wrapper(f, first, *args, **kwargs))
        return [tuple(module.unpack_dual(t)) for t in tensors_in(results)]


def forward_cases() -> list:
    found = []
    for op in ENTRIES:
        for dtype in DTYPES:
            if not op.supports_forward_ad or dtype not in op.supported_backward_dtypes("cpu"):
                continue
            key, name = KEYS[id(op)], str(dtype)[6:]
            marks = expected_failure(key, f"forward-{name}")
            found.append(pytest.param(op, dtype, id=f"{key}-{name}", marks=marks))
    return found


@pytest.mark.parametrize(("op", "dtype"), forward_cases())
@pytest.mark.filterwarnings("ignore")
def test_tangents(op: Any, dtype: torch.dtype) -> None:
    compared = 0
    for sample in samples(op, dtype, requires_grad=True, most=SAMPLES):
        arguments, tangents = arguments_of(sample)
        try:
            ours = to_taeda(arguments)
        except Untranslatable:
            continue
        where = f"{op.name}({describe(sample)}) tangent"
        torch.manual_seed(42)
        expected = run(their_forward_ad, op, op.op, arguments, tangents)
        taeda.manual_seed(42)
        actual = run(
            forward_ad,
            op,
            function_of(op),
            ours,
            [None if t is None else tensor_to_taeda(t) for t in tangents],
        )
        for i, ((a, our_tangent), (e, tangent)) in enumerate(zip(actual, expected, strict=True)):
            assert_same(a, e, f"{where} (value {i})")
            if tangent is None and our_tangent is None:
                continue
            # No tangent and a tangent of zeros say the same.
            if tangent is None:
                tangent = torch.zeros_like(e)
            if our_tangent is None:
                our_tangent = taeda.zeros_like(a)
            compared += 1
            assert_same(our_tangent, tangent, f"{where} {i}")
    if not compared:
        pytest.skip(f"no sample of {KEYS[id(op)]} carries a tangent")
