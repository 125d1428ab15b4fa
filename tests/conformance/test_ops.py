"""Every entry of PyTorch's op database that taeda has by name: values, dtypes, shapes, gradients, second gradients."""

from __future__ import annotations

import functools
import itertools
import operator
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the conformance suite compares with PyTorch")
pytest.importorskip("expecttest", reason="PyTorch's op database needs expecttest")

import taeda  # noqa: E402
import taeda.nn.functional as F  # noqa: E402
from tests.conformance.bridge import Untranslatable, to_taeda, to_torch  # noqa: E402
from tests.conformance.expected import DIFFERS, NON_DETERMINISTIC  # noqa: E402
from tests.conformance.gauge import CANONICAL, CONSTRAINED  # noqa: E402

from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402  isort: skip

DTYPES = (torch.float32, torch.float64, torch.int64, torch.bool, torch.complex64)
MAX_SAMPLES = 24  # spread over all samples of an entry; keeps the suite in minutes
MAX_GRADGRAD = 4
TOLERANCE = {
    torch.float32: (2e-5, 2e-5),
    torch.complex64: (3e-5, 3e-5),
    torch.float64: (1e-7, 1e-7),
    torch.complex128: (1e-7, 1e-7),
}


def seeded(function: Any) -> Any:
    """The function from the seed that the database calls it with."""

    def call(*args: Any, **kwargs: Any) -> Any:
        taeda.manual_seed(42)
        return function(*args, **kwargs)

    return call


# Where the database calls an op in a form of its own, the same form here.
FORMS = {
    "where": lambda x, condition, other: taeda.where(condition, x, other),
    "einsum": lambda operands, equation: taeda.einsum(equation, operands),
    "nn.functional.embedding": lambda weight, indices, **kw: F.embedding(indices, weight, **kw),
    "nn.functional.embedding_bag": lambda weight, indices, **kw: F.embedding_bag(
        indices, weight, **kw
    ),
    "zero_": lambda x: x.clone().zero_(),
    "normal-in_place": lambda x, mean, std: x.normal_(mean, std),
    "as_strided-partial_views": None,
    "nn.functional.triplet_margin_with_distance_loss": None,
    "linalg.lstsq-grad_oriented": lambda a, b, driver: taeda.linalg.lstsq(a, b, driver=driver)[:2],
    "svd_lowrank": lambda a, b, **kw: seeded(taeda.svd_lowrank)(a @ b.mT, **kw),
    "pca_lowrank": lambda a, b, **kw: seeded(taeda.pca_lowrank)(a @ b.mT, **kw),
    "linalg.pinv-singular": lambda a, b: taeda.linalg.pinv(a @ b.mT),
}


def lookup(name: str) -> Any:
    """taeda's function of that name: `nn.functional.relu`, `add`, or the Tensor method or attribute."""
    try:
        found = functools.reduce(getattr, name.split("."), taeda)
    except AttributeError:
        found = None
    if found is not None and not isinstance(found, taeda.dtype):
        return found
    if "." in name:
        return None
    member = getattr(taeda.Tensor, name, None)
    if member is None or callable(member):
        return member
    return operator.attrgetter(name)


def spread(items: list, most: int) -> list:
    step = max(1, -(-len(items) // most))
    return items[::step]


def key_of(op: Any) -> str:
    return op.name + (f"-{op.variant_test_name}" if op.variant_test_name else "")


def function_of(op: Any) -> Any:
    return FORMS[key_of(op)] if key_of(op) in FORMS else lookup(op.name)


# Entries without a form: one writes to memory around the tensor it is given, the other holds a PyTorch function.
ENTRIES = [op for op in op_db if function_of(op) is not None]
KEYS = {id(op): key_of(op) for op in ENTRIES}


def samples(
    op: Any, dtype: torch.dtype, requires_grad: bool = False, most: int = MAX_SAMPLES
) -> list:
    torch.manual_seed(1)
    found = itertools.islice(op.sample_inputs("cpu", dtype, requires_grad=requires_grad), 400)
    # Dropout inside a larger function is random: such samples have nothing to compare.
    return spread([s for s in found if not s.kwargs.get("dropout_p")], most)


def tensors_in(value: Any) -> list:
    if isinstance(value, (torch.Tensor, taeda.Tensor)):
        return [value]
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in tensors_in(v)]
    if isinstance(value, dict):
        return [t for v in value.values() for t in tensors_in(v)]
    return []


def assert_same(ours: Any, theirs: Any, where: str) -> None:
    if isinstance(theirs, torch.Tensor):
        assert isinstance(ours, taeda.Tensor), f"{where}: {type(ours)} for a tensor"
        ours = to_torch(ours)
        rtol, atol = TOLERANCE.get(theirs.dtype, (1e-2, 1e-2))
        torch.testing.assert_close(
            ours,
            theirs.detach().resolve_conj().resolve_neg(),
            rtol=rtol,
            atol=atol,
            equal_nan=True,
            msg=lambda m: f"{where}: {m}",
        )
    elif isinstance(theirs, (list, tuple)):
        assert len(ours) == len(theirs), f"{where}: {len(ours)} results instead of {len(theirs)}"
        for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            assert_same(a, b, f"{where}[{i}]")
    elif isinstance(theirs, torch.dtype):
        assert to_torch(ours) == theirs, where
    elif isinstance(theirs, float):
        assert ours == pytest.approx(theirs, rel=1e-5, nan_ok=True), where
    elif isinstance(theirs, (bool, int, complex, str, type(None))):
        assert ours == theirs, where


def describe(sample: Any) -> str:
    def short(v: Any) -> str:
        if isinstance(v, torch.Tensor):
            return f"{str(v.dtype)[6:]}{list(v.shape)}/{v.stride()}"
        if isinstance(v, (list, tuple)):
            return "(" + ", ".join(map(short, v)) + ")"
        return repr(v)

    parts = [short(v) for v in (sample.input, *sample.args)]
    return ", ".join(parts + [f"{k}={short(v)}" for k, v in sample.kwargs.items()])


def run_both(op: Any, sample: Any, constrain: bool = False) -> tuple[Any, Any, list, list]:
    """Results of both, and the leaves that want gradients, in the same order.

    `constrain`: the input is made what the function expects (Hermitian, triangular), as the database
    does for its own gradient checks; derivatives in other directions have no meaning.
    """
    function = function_of(op)
    arguments = to_taeda([sample.input, list(sample.args), dict(sample.kwargs)])

    wrapper = (
        CONSTRAINED.get(op.name, op.gradcheck_wrapper)
        if constrain
        else lambda f, *a, **k: f(*a, **k)
    )

    def call(f: Any, first: Any, args: Any, kwargs: Any) -> Any:
        return CANONICAL.get(op.name, lambda r: r)(wrapper(f, first, *args, **kwargs))

    theirs = call(op.op, sample.input, sample.args, sample.kwargs)
    ours = call(function, *arguments)
    leaves = [t for t in tensors_in([sample.input, sample.args, sample.kwargs]) if t.requires_grad]
    our_leaves = [t for t in tensors_in(arguments) if t.requires_grad]
    return ours, theirs, our_leaves, leaves


def cases(dtypes: tuple, gradient: bool) -> list:
    found = []
    for op in ENTRIES:
        supported = op.supported_backward_dtypes("cpu") if gradient else op.supported_dtypes("cpu")
        if gradient and not op.supports_autograd:
            continue
        for dtype in dtypes:
            if dtype in supported:
                key = KEYS[id(op)]
                reason = (
                    DIFFERS.get(key)
                    or DIFFERS.get((key, str(dtype)[6:]))
                    or (gradient and DIFFERS.get((key, "gradient")))
                )
                marks = [pytest.mark.xfail(reason=reason, strict=False)] if reason else []
                found.append(pytest.param(op, dtype, id=f"{key}-{str(dtype)[6:]}", marks=marks))
    return found


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
        if KEYS[id(op)] in NON_DETERMINISTIC:
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
    if KEYS[id(op)] in NON_DETERMINISTIC:
        pytest.skip("random results have no gradient to compare")
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
    expected2 = torch.autograd.grad(first, leaves, weights, allow_unused=True)
    actual2 = taeda.autograd.grad(
        our_first, our_leaves, [to_taeda(w) for w in weights], allow_unused=True
    )
    compare_gradients(actual2, expected2, leaves, f"{where} second gradient")


@pytest.mark.parametrize(
    "op", [pytest.param(o, id=KEYS[id(o)]) for o in ENTRIES if o.error_inputs_func]
)
@pytest.mark.filterwarnings("ignore")
def test_error_inputs(op: Any) -> None:
    function = function_of(op)
    reason = DIFFERS.get((KEYS[id(op)], "errors"))
    if reason:
        pytest.xfail(reason)
    for error in op.error_inputs("cpu"):
        sample = error.sample_input
        try:
            arguments = to_taeda([sample.input, list(sample.args), dict(sample.kwargs)])
        except Untranslatable:
            continue
        if any(t.device.type != "cpu" for t in tensors_in([sample.input])):
            continue
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
