"""Every entry of PyTorch's op database that taeda has by name: values, dtypes, shapes, gradients, second gradients."""

from __future__ import annotations

import operator
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
    cases,
    describe,
    function_of,
    samples,
    single_cases,
    tensors_in,
)
from tests.conformance.expected import UNINITIALISED  # noqa: E402
from tests.conformance.gauge import CANONICAL, CONSTRAINED  # noqa: E402

MAX_GRADGRAD = 4
SEED = 42  # random functions give the same numbers for the same seed


def run_both(op: Any, sample: Any, constrain: bool = False) -> tuple[Any, Any, list, list]:
    """Results of both, and the leaves that want gradients, in the same order.

    `constrain`: the input is made what the function expects (Hermitian, triangular), as the database
    does for its own gradient checks; derivatives in other directions have no meaning.
    """
    function = function_of(op)
    arguments = to_taeda([sample.input, list(sample.args), dict(sample.kwargs)])
    wrapper = CONSTRAINED.get(op.name, op.gradcheck_wrapper)
    if not constrain or op.name.startswith("masked."):  # those wrappers call PyTorch on the result
        wrapper = lambda f, *a, **k: f(*a, **k)  # noqa: E731

    def call(f: Any, first: Any, args: Any, kwargs: Any) -> Any:
        return CANONICAL.get(op.name, lambda r: r)(wrapper(f, first, *args, **kwargs))

    torch.manual_seed(SEED)
    theirs = call(op.op, sample.input, sample.args, sample.kwargs)
    taeda.manual_seed(SEED)
    ours = call(function, *arguments)
    leaves = [t for t in tensors_in([sample.input, sample.args, sample.kwargs]) if t.requires_grad]
    our_leaves = [t for t in tensors_in(arguments) if t.requires_grad]
    return ours, theirs, our_leaves, leaves


@pytest.mark.parametrize(("op", "dtype"), cases(DTYPES, gradient=False))
@pytest.mark.filterwarnings("ignore")
def test_values(op: Any, dtype: torch.dtype) -> None:
    compared = 0
    for sample in samples(op, dtype):
        try:
            ours, theirs, _, _ = run_both(op, sample)
        except Untranslatable:
            continue
        compared += 1
        if KEYS[id(op)] in UNINITIALISED:
            for a, b in zip(tensors_in(ours), tensors_in(theirs), strict=True):
                assert list(a.shape) == list(b.shape), describe(sample)
            continue
        assert_same(ours, theirs, f"{op.name}({describe(sample)})")
    if not compared:
        pytest.skip(
            "no sample of this entry can be expressed in taeda (sparse, or a foreign layout)"
        )


def weights_like(outputs: list) -> list:
    g = torch.Generator().manual_seed(3)
    return [torch.randn(t.shape, dtype=t.dtype, generator=g) for t in outputs]


def differentiable(outputs: Any) -> list:
    return [t for t in tensors_in(outputs) if t.requires_grad]


@pytest.mark.parametrize(("op", "dtype"), cases((torch.float64, torch.complex128), gradient=True))
@pytest.mark.filterwarnings("ignore")
def test_gradients(op: Any, dtype: torch.dtype) -> None:
    compared = seconds = 0
    for sample in samples(op, dtype, requires_grad=True, most=12):
        try:
            ours, theirs, our_leaves, leaves = run_both(op, sample, constrain=True)
        except Untranslatable:
            continue
        where = f"{op.name}({describe(sample)})"
        outputs, our_outputs = differentiable(theirs), differentiable(ours)
        assert len(our_outputs) == len(outputs), f"{where}: differentiable results"
        if not outputs or not leaves:
            continue
        compared += 1
        weights = weights_like(outputs)
        second = op.supports_gradgrad and seconds < MAX_GRADGRAD
        expected = torch.autograd.grad(
            outputs, leaves, weights, allow_unused=True, create_graph=second
        )
        actual = taeda.autograd.grad(
            our_outputs,
            our_leaves,
            [to_taeda(w) for w in weights],
            allow_unused=True,
            create_graph=second,
        )
        compare_gradients(actual, expected, leaves, f"{where} gradient")
        if second:
            seconds += 1
            compare_second(actual, expected, our_leaves, leaves, where)
    if not compared:
        pytest.skip("no differentiable sample of this entry can be expressed in taeda")


def compare_gradients(actual: Any, expected: Any, leaves: list, where: str) -> None:
    for i, (a, e) in enumerate(zip(actual, expected, strict=True)):
        # No gradient and a gradient of zeros say the same.
        if e is None:
            e = torch.zeros_like(leaves[i])
        if a is None:
            a = to_taeda(torch.zeros_like(leaves[i]).detach())
        assert_same(a, e, f"{where} {i}")


def compare_second(actual: Any, expected: Any, our_leaves: list, leaves: list, where: str) -> None:
    first = [t for t in expected if t is not None and t.requires_grad]
    our_first = [
        a for a, e in zip(actual, expected, strict=True) if e is not None and e.requires_grad
    ]
    if not first:
        return
    if not all(a is not None and a.requires_grad for a in our_first):
        # Allowed only where the second derivative vanishes.
        pairs = [
            (a, e)
            for a, e in zip(our_first, first, strict=True)
            if a is not None and a.requires_grad
        ]
        our_first, first = [a for a, _ in pairs], [e for _, e in pairs]
        if not first:
            return
    weights = weights_like(first)
    try:
        expected2 = torch.autograd.grad(first, leaves, weights, allow_unused=True)
    except RuntimeError as error:
        assert "is not implemented" in str(error), where
        return  # PyTorch has no second derivative to compare with
    actual2 = taeda.autograd.grad(
        our_first, our_leaves, [to_taeda(w) for w in weights], allow_unused=True
    )
    compare_gradients(actual2, expected2, leaves, f"{where} second gradient")


def raises(op: Any, sample: Any) -> bool:
    try:
        op.op(sample.input, *sample.args, **sample.kwargs)
    except Exception:
        return True
    return False


@pytest.mark.parametrize("op", single_cases("errors", lambda op: op.error_inputs_func))
@pytest.mark.filterwarnings("ignore")
def test_error_inputs(op: Any) -> None:
    function = function_of(op)
    for error in op.error_inputs("cpu"):
        sample = error.sample_input
        try:
            arguments = to_taeda([sample.input, list(sample.args), dict(sample.kwargs)], memory={})
        except Untranslatable:
            continue
        except RuntimeError as refused:  # of more dimensions than taeda's tensors have
            assert "at most 64 dimensions" in str(refused)
            continue
        if any(t.device.type != "cpu" for t in tensors_in([sample.input])):
            continue
        if not raises(op, sample):  # last, for it may resize what it is given
            continue  # the database expects an error that PyTorch does not raise
        with pytest.raises(error.error_type):
            function(arguments[0], *arguments[1], **arguments[2])
            pytest.fail(
                f"{op.name}({describe(sample)}) raised nothing; PyTorch: {error.error_regex}"
            )


def test_operator_module_agrees() -> None:
    """The operators reach the same ops as the functions."""
    a, b = taeda.tensor([5.0, -3.0]), taeda.tensor([2.0, 4.0])
    for symbol, name in (
        (operator.add, "add"),
        (operator.sub, "sub"),
        (operator.mul, "mul"),
        (operator.truediv, "div"),
    ):
        assert taeda.equal(symbol(a, b), getattr(taeda, name)(a, b))
