"""The other forms of an op beside its function: the method, the in-place method, and `out=`."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the conformance suite compares with PyTorch")
pytest.importorskip("expecttest", reason="PyTorch's op database needs expecttest")

import taeda  # noqa: E402
from tests.conformance.bridge import Untranslatable, to_taeda  # noqa: E402
from tests.conformance.entries import (  # noqa: E402
    DTYPES,
    KEYS,
    assert_same,
    describe,
    function_of,
    samples,
    single_cases,
)
from tests.conformance.expected import OUT_DTYPES, RANDOM, UNINITIALISED  # noqa: E402
from tests.conformance.gauge import CANONICAL  # noqa: E402

MAX_FORM_SAMPLES = 5


def inplace_name(op: Any) -> str:
    name = getattr(op.inplace_variant, "__name__", "")
    return name if name.endswith("_") and not name.endswith("__") else ""


def method_name(op: Any) -> str:
    name = getattr(op.method_variant, "__name__", "")
    return "" if name.startswith("<") else name


def comparable(op: Any) -> bool:
    """Whether two calls give the same: not where memory is left as it is, or numbers are random."""
    return KEYS[id(op)] not in UNINITIALISED and KEYS[id(op)] not in RANDOM


def dtype_of(op: Any) -> torch.dtype:
    return next(d for d in DTYPES if d in op.supported_dtypes("cpu"))


def translated(op: Any) -> list:
    """(sample, taeda's input, args and kwargs) for a few samples whose input is a tensor."""
    found = []
    for sample in samples(op, dtype_of(op), most=MAX_FORM_SAMPLES):
        try:
            ours = to_taeda([sample.input, list(sample.args), dict(sample.kwargs)])
        except Untranslatable:
            continue
        found.append((sample, *ours))
    return found


def outcome(call: Any) -> tuple[Any, Exception | None]:
    try:
        return call(), None
    except Exception as error:
        return None, error


@pytest.mark.parametrize("op", single_cases("method", lambda o: comparable(o) and method_name(o)))
@pytest.mark.filterwarnings("ignore")
def test_method(op: Any) -> None:
    method = getattr(taeda.Tensor, method_name(op), None)
    assert method is not None, f"Tensor.{method_name(op)} is missing"
    for sample, x, args, kwargs in translated(op):
        if not isinstance(sample.input, torch.Tensor):
            continue
        theirs, refused = outcome(
            lambda: op.method_variant(sample.input, *sample.args, **sample.kwargs)
        )
        if refused is None:
            canonical = CANONICAL.get(op.name, lambda result: result)
            where = f"{op.name}({describe(sample)}) as a method"
            assert_same(canonical(method(x, *args, **kwargs)), canonical(theirs), where)


@pytest.mark.parametrize(
    "op", single_cases("in-place", lambda o: comparable(o) and inplace_name(o))
)
@pytest.mark.filterwarnings("ignore")
def test_inplace(op: Any) -> None:
    """The in-place form changes its tensor as PyTorch's does, or refuses where that refuses."""
    name = inplace_name(op)
    method = getattr(taeda.Tensor, name, None)
    assert method is not None, f"Tensor.{name} is missing"
    for sample, x, args, kwargs in translated(op):
        if not isinstance(sample.input, torch.Tensor):
            continue
        where = f"{op.name}({describe(sample)}) in place"
        target, our_target = sample.input.clone(), x.clone()
        _, refused = outcome(lambda: op.inplace_variant(target, *sample.args, **sample.kwargs))
        if refused is not None:
            with pytest.raises((RuntimeError, TypeError, ValueError, IndexError)):
                method(our_target, *args, **kwargs)
                pytest.fail(f"{where} raised nothing; PyTorch: {refused}")
            continue
        result = method(our_target, *args, **kwargs)
        assert result is our_target, f"{where} does not return the tensor itself"
        assert_same(our_target, target, where)


def gradient_in_place(lib: Any, x: Any, name: str, args: Any, kwargs: Any) -> Any:
    """The gradient through the in-place form, weighted so that the elements differ."""
    leaf = x.detach().clone().requires_grad_()
    result = getattr(leaf * 1, name)(*args, **kwargs)
    weights = lib.arange(1.0, result.numel() + 1, dtype=result.dtype).view(result.shape)
    (result * weights).sum().backward()
    return leaf.grad


@pytest.mark.parametrize(
    "op",
    single_cases(
        "gradient in place",
        lambda o: (
            comparable(o)
            and inplace_name(o)
            and torch.float64 in o.supported_backward_dtypes("cpu")
        ),
    ),
)
@pytest.mark.filterwarnings("ignore")
def test_gradient_in_place(op: Any) -> None:
    """Where PyTorch's in-place form has a gradient, ours has the same."""
    name = inplace_name(op)
    for sample in samples(op, torch.float64, most=MAX_FORM_SAMPLES):
        if not isinstance(sample.input, torch.Tensor):
            continue
        try:
            x, args, kwargs = to_taeda([sample.input, list(sample.args), dict(sample.kwargs)])
        except Untranslatable:
            continue
        theirs, refused = outcome(
            lambda s=sample: gradient_in_place(torch, s.input, name, s.args, s.kwargs)
        )
        if refused is None:
            ours = gradient_in_place(taeda, x, name, args, kwargs)
            assert_same(ours, theirs, f"{op.name}({describe(sample)}) in place")


def outs_for(result: torch.Tensor) -> dict[str, torch.Tensor]:
    """Tensors to write a result to: fitting, empty, with other strides, too small, and of other dtypes."""
    found = {
        "like the result": torch.empty_like(result),
        "empty": result.new_empty(0),
        "of int64": torch.ones(result.shape, dtype=torch.int64),
        "of float64": torch.ones(result.shape, dtype=torch.float64),
        "of complex128": torch.ones(result.shape, dtype=torch.complex128),
    }
    if result.numel():
        found["too large"] = result.new_ones((1, *result.shape, 2))
    if result.dim() > 1 and result.numel():
        order = tuple(reversed(range(result.dim())))
        found["transposed"] = result.new_empty([result.shape[d] for d in order]).permute(order)
    if result.numel() > 1:
        found["overlapping"] = result.new_ones(()).expand(result.shape)
    return found


@pytest.mark.parametrize("op", single_cases("out", lambda o: comparable(o) and o.supports_out))
@pytest.mark.filterwarnings("ignore")
def test_out(op: Any) -> None:
    """`out=` is written with the result, resized, or refused.

    Memory that overlaps itself and other dtypes than the result's are refused where PyTorch refuses them.
    """
    function = function_of(op)
    for sample, x, args, kwargs in translated(op):
        results = op(sample.input, *sample.args, **sample.kwargs)
        if op.name in CANONICAL:
            continue  # unique up to signs: test_ops.py compares the values
        many = isinstance(results, (list, tuple))
        results = list(results) if many else [results]
        if not all(isinstance(r, torch.Tensor) for r in results):
            continue
        kinds = [outs_for(r) for r in results]
        for kind in kinds[0]:
            if not all(kind in k for k in kinds):
                continue
            outs = [k[kind] for k in kinds]
            ours = [to_taeda(out) for out in outs]
            where = f"{op.name}({describe(sample)}) with out {kind}"
            otherwise = kind.startswith("of ") and op.name in OUT_DTYPES
            given, our_given = (tuple(outs), tuple(ours)) if many else (outs[0], ours[0])
            _, refused = outcome(
                lambda given=given: op(sample.input, *sample.args, **sample.kwargs, out=given)
            )
            _, refused_here = outcome(
                lambda given=our_given: function(x, *args, **kwargs, out=given)
            )
            castable = all(
                torch.can_cast(r.dtype, o.dtype) for r, o in zip(results, outs, strict=True)
            )
            if refused_here is not None:
                assert isinstance(refused_here, (RuntimeError, TypeError)), where
                if refused is None and kind != "overlapping" and not otherwise:
                    raise refused_here
                continue
            must_refuse = refused is not None and not otherwise
            must_refuse &= kind == "overlapping" or kind.startswith("of ")
            assert not must_refuse, f"{where} raised nothing; PyTorch: {refused}"
            for a, b, out in zip(ours, results, outs, strict=True):
                if castable:
                    assert_same(a.to(to_taeda(b.dtype)), b, where)
                if kind == "transposed" and refused is None:
                    assert a.stride() == out.stride(), f"{where}: strides {a.stride()}"
