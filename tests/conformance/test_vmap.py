"""`vmap` over PyTorch's op database: what it gives beside what a loop over the batch gives.

What neither taeda's vmap nor PyTorch's can do (results whose shape depends on the elements) counts as
the same.
"""

from __future__ import annotations

import re
import warnings
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the conformance suite compares with PyTorch")
pytest.importorskip("expecttest", reason="PyTorch's op database needs expecttest")

import taeda  # noqa: E402
from tests.conformance.bridge import Untranslatable, to_taeda, to_torch  # noqa: E402
from tests.conformance.entries import (  # noqa: E402
    ENTRIES,
    KEYS,
    describe,
    function_of,
    samples,
    tensors_in,
)
from tests.conformance.expected import DIFFERS  # noqa: E402

SAMPLES = 8
# Their numbers are drawn, or are whatever memory holds.
RANDOM = re.compile(
    r"bernoulli|cauchy|dropout|empty|exponential|fractional_max|geometric|log_normal|_lowrank|"
    r"multinomial|normal|poisson|rand|uniform|rrelu"
)
# What they do depends on how the tensors lie in memory.
LAYOUT = re.compile(r"as_strided|resize|sparse")
DTYPES = (torch.float64, torch.int64, torch.bool, torch.complex128)
# What is mapped over, and along which dimension of it: the first tensor, all, all but the first.
PATTERNS = [
    ("first", 0, lambda i: i == 0),
    ("first", -1, lambda i: i == 0),
    ("all", 0, lambda i: True),
    ("rest", 0, lambda i: i > 0),
]


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


def another(t: torch.Tensor) -> torch.Tensor:
    """Other elements that an operation which takes `t` takes as well."""
    if t.is_floating_point() or t.is_complex():
        return t * 0.75
    return t.flip(0) if t.dim() else t.clone()


def stacked(arguments: list, chosen: Any, dim: int) -> tuple[list, list]:
    """The flat tensors, of which the chosen ones have one more dimension, and that for in_dims."""
    tensors, dims = [], []
    for i, t in enumerate(tensors_in(arguments)):
        tensors.append(torch.stack([t, another(t)], dim) if chosen(i) else t)
        dims.append(dim if chosen(i) else None)
    return tensors, dims


def outcome(library: Any, f: Any, arguments: list, tensors: list, dims: list) -> Any:
    """The flat results of vmap, or the error."""

    def flat(*given: Any) -> Any:
        rest = iter(given)
        first, args, kwargs = mapped(arguments, lambda _: next(rest))
        results = f(first, *args, **kwargs)
        found = tensors_in(results)
        if not found:
            raise RuntimeError("no tensors")
        return tuple(found)

    run = library.func.vmap(flat, in_dims=tuple(dims), randomness="same")
    try:
        return run(*tensors)
    except (RuntimeError, ValueError, NotImplementedError, IndexError, TypeError) as error:
        return error


def loop(f: Any, arguments: list, tensors: list, dims: list) -> Any:
    """The same by calling `f` for each element; None where it fails or gives other shapes."""
    rows = []
    for i in range(2):
        given = [
            to_taeda(t if d is None else t.select(d, i).clone())
            for t, d in zip(tensors, dims, strict=True)
        ]
        rest = iter(given)
        first, args, kwargs = mapped(arguments, lambda _: next(rest))
        try:
            rows.append(tensors_in(f(first, *args, **kwargs)))
        except (RuntimeError, ValueError, NotImplementedError, IndexError, TypeError):
            return None
    if not rows[0] or any(a.shape != b.shape for a, b in zip(*rows, strict=True)):
        return None
    return [taeda.stack(pair) for pair in zip(*rows, strict=True)]


def check(op: Any, f: Any, sample: Any) -> None:
    given = [sample.input, list(sample.args), dict(sample.kwargs)]
    given = mapped(given, lambda t: t.detach().resolve_conj().resolve_neg())
    count = len(tensors_in(given))
    for name, dim, chosen in PATTERNS:
        if (name != "first" and count < 2) or (dim and LAYOUT.search(op.name)):
            continue
        tensors, dims = stacked(given, chosen, dim)
        try:
            ours = [to_taeda(t) for t in tensors]
            arguments = to_taeda(given)
        except Untranslatable:
            return
        where = f"{op.name}({describe(sample)}), {name}, {dim}"
        expected = loop(f, arguments, tensors, dims)
        if expected is None:
            continue
        found = outcome(taeda, f, arguments, ours, dims)
        if isinstance(found, Exception):
            theirs = outcome(torch, op.op, given, tensors, dims)
            assert isinstance(theirs, Exception), f"{where}: {type(found).__name__}: {found}"
            continue
        assert len(found) == len(expected), where
        for a, b in zip(found, expected, strict=True):
            torch.testing.assert_close(
                to_torch(a),
                to_torch(b),
                rtol=1e-9,
                atol=1e-9,
                equal_nan=True,
                msg=lambda m: f"{where}: {m}",
            )


def vmap_cases() -> list:
    found = []
    for op in ENTRIES:
        dtype = next((d for d in DTYPES if d in op.supported_dtypes("cpu")), None)
        if dtype is None or RANDOM.search(op.name):
            continue
        key = KEYS[id(op)]
        reason = DIFFERS.get((key, "vmap"))  # vmap and the loop agree where PyTorch differs
        marks = [pytest.mark.xfail(reason=reason, strict=True)] if reason else []
        found.append(pytest.param(op, dtype, id=key, marks=marks))
    return found


@pytest.mark.parametrize(("op", "dtype"), vmap_cases())
def test_vmap(op: Any, dtype: torch.dtype) -> None:
    f = function_of(op)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for sample in samples(op, dtype, most=SAMPLES):
            check(op, f, sample)


# ---- gradients: a batch of them by one graph, and those of a batch ----


def differentiable(f: Any, arguments: list, chosen: list) -> tuple[Any, list]:
    """`f` as a function of the chosen tensors, giving its float64 results, and those tensors."""
    tensors = tensors_in(arguments)

    def inner(*values: Any) -> tuple:
        given = list(tensors)
        for i, value in zip(chosen, values, strict=True):
            given[i] = value
        rest = iter(given)
        first, args, kwargs = mapped(arguments, lambda _: next(rest))
        found = tensors_in(f(first, *args, **kwargs))
        return tuple(t for t in found if t.dtype == taeda.float64)

    return inner, [tensors[i] for i in chosen]


def compare(found: tuple, rows: list, where: str) -> None:
    for a, *b in zip(found, *rows, strict=True):
        torch.testing.assert_close(
            to_torch(a.detach()),
            torch.stack([to_torch(t.detach()) for t in b]),
            rtol=1e-8,
            atol=1e-8,
            equal_nan=True,
            msg=lambda m: f"{where}: {m}",
        )


def check_gradients(op: Any, f: Any, sample: Any) -> None:
    given = [sample.input, list(sample.args), dict(sample.kwargs)]
    chosen = [i for i, t in enumerate(tensors_in(given)) if t.requires_grad]
    given = mapped(given, lambda t: t.detach().resolve_conj().resolve_neg())
    other = [another(sample.input.detach())] if isinstance(sample.input, torch.Tensor) else []
    try:
        arguments, other = to_taeda(given), to_taeda(other)
    except Untranslatable:
        return
    inner, inputs = differentiable(f, arguments, chosen)
    where = f"{op.name}({describe(sample)})"
    try:
        outputs, pull = taeda.func.vjp(inner, *inputs)
        weights = [tuple(taeda.randn_like(o) for o in outputs) for _ in range(2)]
        rows = [pull(w) for w in weights]
    except (RuntimeError, ValueError, NotImplementedError, IndexError, TypeError):
        return
    if not outputs or not inputs:
        return
    stacked_weights = tuple(taeda.stack(pair) for pair in zip(*weights, strict=True))
    compare(taeda.vmap(pull)(stacked_weights), rows, f"{where}, one graph")
    if 0 not in chosen or not other or op.name in CHOOSES:
        return

    def back(x: Any, w: Any) -> tuple:
        return taeda.func.vjp(inner, x, *inputs[1:])[1](w)

    try:
        pairs = [(inputs[0], weights[0]), (other[0], weights[1])]
        rows = [back(*pair) for pair in pairs]
    except (RuntimeError, ValueError, NotImplementedError, IndexError, TypeError):
        return
    try:
        found = taeda.vmap(back)(taeda.stack([inputs[0], other[0]]), stacked_weights)
    except RuntimeError as error:
        if "vmap" in str(error):  # the function itself does not batch: test_vmap has seen that
            return
        raise
    compare(found, rows, f"{where}, a batch")


# Where elements are equal, which one's gradient it is may depend on how the computation runs.
CHOOSES = {"masked.median", "msort", "sort", "topk"}


def gradient_cases() -> list:
    found = []
    for op in ENTRIES:
        if torch.float64 not in op.supported_backward_dtypes("cpu"):
            continue
        if RANDOM.search(op.name) or LAYOUT.search(op.name):
            continue
        key = KEYS[id(op)]
        reason = DIFFERS.get((key, "vmap-gradient"))
        marks = [pytest.mark.xfail(reason=reason, strict=True)] if reason else []
        found.append(pytest.param(op, id=key, marks=marks))
    return found


@pytest.mark.parametrize("op", gradient_cases())
def test_vmap_of_gradients(op: Any) -> None:
    f = function_of(op)
    taeda.manual_seed(2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for sample in samples(op, torch.float64, requires_grad=True, most=4):
            check_gradients(op, f, sample)
