"""The entries of PyTorch's op database, taeda's function for each, and how results are compared."""

from __future__ import annotations

import functools
import itertools
import operator
from typing import Any

import pytest
import torch

import taeda
import taeda.nn.functional as F
from tests.conformance.bridge import to_torch
from tests.conformance.expected import DIFFERS, NOT_RUN, WIDER_TOLERANCE

from torch.testing._internal.common_methods_invocations import op_db  # isort: skip

DTYPES = (torch.float32, torch.float64, torch.int64, torch.bool, torch.complex64)
MAX_SAMPLES = 24  # spread over all samples of an entry; keeps the suite in minutes
TOLERANCE = {
    torch.float32: (2e-5, 2e-5),
    torch.complex64: (3e-5, 3e-5),
    torch.float64: (1e-7, 1e-7),
    torch.complex128: (1e-7, 1e-7),
}


def method(name: str) -> Any:
    return lambda x, *args, **kwargs: getattr(x, name)(*args, **kwargs)


def max_pool2d_backward(
    x: Any, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool, **kw: Any
) -> Any:
    out, places = F.max_pool2d_with_indices(x, kernel_size, stride, padding, dilation, ceil_mode)
    return taeda._C.ops.max_pool2d_with_indices_backward(
        taeda.ones_like(out),
        x,
        kernel_size,
        stride or kernel_size,
        padding,
        dilation,
        ceil_mode,
        places,
    )


# Where the database calls an op in a form of its own, the same form here.
FORMS = {
    "where": lambda x, condition, other, **kw: taeda.where(condition, x, other, **kw),
    "einsum": lambda operands, equation: taeda.einsum(equation, operands),
    "nn.functional.embedding": lambda weight, indices, **kw: F.embedding(indices, weight, **kw),
    "nn.functional.embedding_bag": lambda weight, indices, **kw: F.embedding_bag(
        indices, weight, **kw
    ),
    "zero_": lambda x: x.clone().zero_(),
    "cauchy": method("cauchy_"),
    "exponential": method("exponential_"),
    "geometric": method("geometric_"),
    "log_normal": method("log_normal_"),
    "uniform": method("uniform_"),
    "normal-number_mean": lambda std, mean, *args, **kw: taeda.normal(mean, std, *args, **kw),
    "rand_like": taeda.randn_like,  # the database draws normal numbers here
    "normal-in_place": method("normal_"),
    "linalg.lstsq-grad_oriented": lambda a, b, driver: taeda.linalg.lstsq(a, b, driver=driver)[:2],
    "linalg.pinv-singular": lambda a, b: taeda.linalg.pinv(a @ b.mT),
    "svd_lowrank": lambda a, b, **kw: taeda.svd_lowrank(a @ b.mT, **kw),
    "pca_lowrank": lambda a, b, **kw: taeda.pca_lowrank(a @ b.mT, **kw),
    "slice": taeda._C.ops.slice,
    "native_dropout_backward": taeda._C.ops.native_dropout_backward,
    "torch.ops.aten._safe_softmax.default": taeda._C.ops._safe_softmax,
    "_segment_reduce-lengths": taeda.segment_reduce,
    "_segment_reduce-offsets": taeda.segment_reduce,
    "max_pool2d_with_indices_backward": max_pool2d_backward,
    # The samples hold PyTorch's PairwiseDistance.
    "nn.functional.triplet_margin_with_distance_loss": lambda *args, distance_function=None, **kw: (
        F.triplet_margin_with_distance_loss(
            *args, distance_function=distance_function and taeda.nn.PairwiseDistance(), **kw
        )
    ),
}
for n in range(5):
    FORMS[f"polygamma-polygamma_n_{n}"] = lambda x, n, **kw: taeda.polygamma(n, x, **kw)
FORMS["special.polygamma-special_polygamma_n_0"] = FORMS["polygamma-polygamma_n_0"]


def lookup(name: str) -> Any:
    """taeda's function of that name: `nn.functional.relu`, `add`, or the Tensor method or attribute.

    What PyTorch keeps under a private name is looked for among the private operations.
    """
    try:
        found = functools.reduce(getattr, name.split("."), taeda)
    except AttributeError:
        found = None
    if found is not None and not isinstance(found, taeda.dtype):
        return found
    if "." in name:
        return None
    member = getattr(taeda.Tensor, name, None)
    if member is None and name.startswith("_"):
        return getattr(taeda._C.ops, name, None)
    if member is None or callable(member):
        return member
    return operator.attrgetter(name)


def spread(items: list, most: int) -> list:
    step = max(1, -(-len(items) // most))
    return items[::step]


def key_of(op: Any) -> str:
    return op.name + (f"-{op.variant_test_name}" if op.variant_test_name else "")


def function_of(op: Any) -> Any:
    key = key_of(op)
    return FORMS[key] if key in FORMS else lookup(op.name)


ENTRIES = [op for op in op_db if function_of(op) is not None]
KEYS = {id(op): key_of(op) for op in ENTRIES}


def samples(
    op: Any, dtype: torch.dtype, requires_grad: bool = False, most: int = MAX_SAMPLES
) -> list:
    torch.manual_seed(1)
    found = itertools.islice(op.sample_inputs("cpu", dtype, requires_grad=requires_grad), 400)
    # Dropout inside a larger function is random: such samples have nothing to compare. Sparse gradients
    # are a layout that taeda does not have.
    unfit = ("dropout_p", "sparse")
    return spread([s for s in found if not any(s.kwargs.get(k) for k in unfit)], most)


def tensors_in(value: Any) -> list:
    if isinstance(value, (torch.Tensor, taeda.Tensor)):
        return [value]
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in tensors_in(v)]
    if isinstance(value, dict):
        return [t for v in value.values() for t in tensors_in(v)]
    return []


def assert_same(ours: Any, theirs: Any, where: str) -> None:
    """The same values, dtypes, shapes and structure. `where` begins with the entry's name."""
    if isinstance(theirs, torch.Tensor):
        assert isinstance(ours, taeda.Tensor), f"{where}: {type(ours)} for a tensor"
        ours = to_torch(ours)
        wider = WIDER_TOLERANCE.get(where.partition("(")[0], 1.0)
        rtol, atol = (wider * t for t in TOLERANCE.get(theirs.dtype, (1e-2, 1e-2)))
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


def expected_failure(key: str, aspect: str) -> list:
    """The mark of a difference that expected.py names: for the whole entry or for this aspect."""
    if (key, aspect) in NOT_RUN:
        return [pytest.mark.skip(reason=NOT_RUN[key, aspect])]
    reason = DIFFERS.get(key) or DIFFERS.get((key, aspect))
    return [pytest.mark.xfail(reason=reason, strict=True)] if reason else []


def cases(dtypes: tuple, gradient: bool) -> list:
    """One case for each entry and each dtype that it supports."""
    found = []
    for op in ENTRIES:
        supported = op.supported_backward_dtypes("cpu") if gradient else op.supported_dtypes("cpu")
        if gradient and not op.supports_autograd:
            continue
        for dtype in dtypes:
            if dtype in supported:
                key, name = KEYS[id(op)], str(dtype)[6:]
                marks = expected_failure(key, f"gradient-{name}" if gradient else name)
                found.append(pytest.param(op, dtype, id=f"{key}-{name}", marks=marks))
    return found


def single_cases(aspect: str, wanted: Any) -> list:
    """One case for each entry for which `wanted(op)` holds."""
    return [
        pytest.param(op, id=KEYS[id(op)], marks=expected_failure(KEYS[id(op)], aspect))
        for op in ENTRIES
        if wanted(op)
    ]
