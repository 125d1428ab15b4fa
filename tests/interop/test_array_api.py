"""The array API standard: functions written for it give the same on taeda, NumPy and the strict
reference implementation."""

from __future__ import annotations

import inspect
import itertools
import types

import numpy as np
import pytest

import taeda
from taeda import array_api as xp
from tests.interop.array_api import (
    COMPLEX,
    DTYPES,
    INTEGERS,
    REALS,
    agree,
    of_the_version,
    plain,
    sample,
    strict,
)


@pytest.fixture(autouse=True)
def version_of_the_standard():
    with of_the_version():
        yield


# ---- a function written for the standard --------------------------------------------------------


def whiten(x):
    """Centre the columns, scale them by the singular values, and sort the rows by the first."""
    xp = x.__array_namespace__(api_version="2023.12")
    centred = xp.astype(x, xp.float64) - xp.mean(x, axis=0, keepdims=True)
    u, s, vh = xp.linalg.svd(centred, full_matrices=False)
    kept = xp.abs(u * s) @ xp.matrix_transpose(xp.abs(vh))
    order = xp.argsort(kept[:, 0])
    return xp.concat(
        [xp.take(kept, order, axis=0), xp.expand_dims(xp.sum(kept, axis=1), axis=1)], axis=1
    )


def test_one_function_three_libraries():
    x = sample((7, 3), "float64")
    results = [plain(whiten(make(x))) for make in (taeda.asarray, np.asarray, strict.asarray)]
    np.testing.assert_allclose(results[0], results[1], rtol=1e-12)
    np.testing.assert_allclose(results[0], results[2], rtol=1e-12)


def test_array_api_compat_finds_the_namespace():
    compat = pytest.importorskip("array_api_compat", reason="array-api-compat is not installed")
    x = taeda.ones(2, 3)
    assert compat.array_namespace(x, taeda.nn.Parameter(x)) is xp
    assert compat.size(x) == 6
    assert compat.device(x) == taeda.device("cpu")
    assert compat.to_device(x, "cpu") is x


def test_versions():
    x = taeda.ones(2)
    assert x.__array_namespace__() is xp
    assert x.__array_namespace__(api_version=None) is xp
    with pytest.raises(ValueError, match=r"api_version must be one of .*2024\.12, got '1999\.01'"):
        x.__array_namespace__(api_version="1999.01")
    with pytest.raises(ValueError, match="stream must be None"):
        x.to_device("cpu", stream=1)


# ---- names and signatures -----------------------------------------------------------------------

UNSIGNED = {"uint16", "uint32", "uint64"}
LATER = {"broadcast_shapes", "isin"}  # of the draft after 2024.12
PARTS = [(strict, xp), (strict.linalg, xp.linalg), (strict.fft, xp.fft)]


def standard_names(module):
    return sorted(set(module.__all__) - UNSIGNED - LATER - {"eig", "eigvals"})


def test_names():
    flags = {name for name in strict.__all__ if name.endswith("_flags") or name.endswith("Flags")}
    assert set(standard_names(strict)) - flags - {"Device", "__version__"} <= set(dir(xp))
    for theirs, ours in PARTS[1:]:
        assert set(standard_names(theirs)) <= set(dir(ours))


@pytest.mark.parametrize("part", [0, 1, 2], ids=["main", "linalg", "fft"])
def test_signatures(part):
    theirs, ours = PARTS[part]
    for name in standard_names(theirs):
        reference = getattr(theirs, name)
        function = getattr(ours, name, None)
        if not isinstance(reference, types.FunctionType) or not inspect.isfunction(function):
            continue  # operations are callables without a Python signature of their own
        have = inspect.signature(function).parameters
        for parameter in inspect.signature(reference).parameters.values():
            mine = have.get(parameter.name)
            assert mine is not None, f"{name}() has no {parameter.name}"
            assert mine.kind == parameter.kind, f"{name}(): {parameter.name}"
            if parameter.default in (None, True, False, 0, 1, -1, "left", "xy", "fro", "backward"):
                assert mine.default == parameter.default, f"{name}(): {parameter.name}"


# ---- elementwise --------------------------------------------------------------------------------

FLOATING = [
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "cos",
    "cosh",
    "exp",
    "expm1",
    "log",
    "log10",
    "log1p",
    "log2",
    "reciprocal",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
]
NUMERIC = [
    "abs",
    "negative",
    "positive",
    "sign",
    "square",
    "isfinite",
    "isinf",
    "isnan",
    "round",
    "conj",
    "real",
]
ROUNDING = ["ceil", "floor", "trunc"]
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.5, np.inf, -np.inf, np.nan]


@pytest.mark.parametrize("name", FLOATING + NUMERIC + ROUNDING)
def test_unary(name):
    dtypes = REALS + ([] if name in ROUNDING else COMPLEX)
    dtypes = dtypes if name in FLOATING else [*dtypes, *INTEGERS]
    if name in ("conj", "real"):
        dtypes = COMPLEX
    for dtype in dtypes:
        x = sample((3, 4), dtype)
        if name == "acosh" and dtype in REALS:
            x = x + np.asarray(2, dtype)
        with np.errstate(all="ignore"):
            agree(
                lambda xp, x: getattr(xp, name)(x),
                np.abs(x) if "log" in name or name == "sqrt" else x,
            )
    if name not in ("conj", "real"):
        with np.errstate(all="ignore"):
            agree(lambda xp, x: getattr(xp, name)(x), np.asarray(SPECIAL))


def test_imaginary_parts_and_signs():
    agree(lambda xp, z: xp.imag(z), sample((3,), "complex64"))
    assert xp.imag(taeda.ones(2)).tolist() == [0.0, 0.0]
    agree(lambda xp, x: xp.signbit(x), np.asarray(SPECIAL))
    for dtype in ["bool", *INTEGERS]:
        agree(lambda xp, x: xp.bitwise_invert(x), sample((4,), dtype))
    agree(lambda xp, x: xp.logical_not(x), sample((4,), "bool"))


ARITHMETIC = ["add", "subtract", "multiply", "equal", "not_equal"]
ORDER = [
    "less",
    "less_equal",
    "greater",
    "greater_equal",
    "maximum",
    "minimum",
    "remainder",
    "floor_divide",
]
REAL_PAIRS = ["atan2", "copysign", "hypot", "logaddexp", "nextafter", "divide"]
BITS = ["bitwise_and", "bitwise_or", "bitwise_xor"]


@pytest.mark.parametrize("name", ARITHMETIC + ORDER + REAL_PAIRS + BITS + ["pow"])
def test_binary(name):
    kinds = (
        [REALS]
        if name in REAL_PAIRS
        else [["bool"], INTEGERS]
        if name in BITS
        else [INTEGERS, REALS]
    )
    if name in [*ARITHMETIC, "pow", "divide"]:
        kinds = [k for k in kinds if k is not REALS] + [REALS + COMPLEX]
    for kind in kinds:
        for left, right in itertools.product(kind, kind):
            for a, b in [((3, 4), (3, 4)), ((3, 1), (4,)), ((), (2,)), ((2,), ()), ((0, 2), (2,))]:
                x, y = sample(a, left, 1, name == "pow"), sample(b, right, 2, True)
                with np.errstate(all="ignore"):
                    agree(lambda xp, x, y: getattr(xp, name)(x, y), x, y)


def test_shifts_and_logic():
    x, y = sample((4,), "int32"), np.asarray([0, 1, 2, 3], "int8")
    for name in ("bitwise_left_shift", "bitwise_right_shift"):
        agree(lambda xp, x, y: getattr(xp, name)(x, y), x, y)
    for name in ("logical_and", "logical_or", "logical_xor"):
        agree(
            lambda xp, x, y: getattr(xp, name)(x, y),
            sample((4,), "bool"),
            sample((3, 1), "bool", 3),
        )


def test_special_pairs():
    values = np.asarray(list(itertools.product(SPECIAL, SPECIAL)))
    for name in ARITHMETIC + ORDER + REAL_PAIRS + ["pow"]:
        if name in ("remainder", "floor_divide", "nextafter"):
            continue  # what these give for infinities is left open
        with np.errstate(all="ignore"):
            agree(lambda xp, x, y: getattr(xp, name)(x, y), values[:, 0], values[:, 1])


def test_numbers_as_operands():
    for dtype, number in [("float32", 2.5), ("int16", 3), ("float64", 2), ("complex64", 1j)]:
        agree(
            lambda xp, x: [xp.add(x, number), xp.multiply(number, x), xp.equal(x, number)],
            sample((3,), dtype),
        )
    agree(
        lambda xp, c, x: [xp.where(c, x, 1.5), xp.where(c, 0.0, x)],
        sample((3,), "bool"),
        sample((3,), "float32"),
    )


def test_clip():
    for dtype, low, high in [("int32", -3, 4), ("float32", -0.5, 0.5), ("float64", None, 0.25)]:
        x = sample((3, 4), dtype)
        agree(lambda xp, x: [xp.clip(x, low, high), xp.clip(x, max=high), xp.clip(x)], x)
    agree(
        lambda xp, x, lo: xp.clip(x, min=lo), sample((3, 4), "float64"), sample((4,), "float64", 1)
    )
    agree(
        lambda xp, x, lo: xp.clip(x, lo, xp.ones_like(lo)),
        sample((3, 4), "float64"),
        sample((4,), "float64", 1),
    )


# ---- reductions and scans -----------------------------------------------------------------------

REDUCTIONS = ["sum", "prod", "mean", "var", "std", "max", "min", "all", "any", "count_nonzero"]


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name):
    dtypes = {
        "mean": REALS + COMPLEX,
        "var": REALS,
        "std": REALS,
        "all": DTYPES,
        "any": DTYPES,
        "count_nonzero": DTYPES,
    }
    for dtype in dtypes.get(name, INTEGERS + REALS if name in ("max", "min") else DTYPES[1:]):
        if name in ("sum", "prod") and dtype == "uint8":
            continue  # the standard asks for uint64
        x = sample((2, 3, 4), dtype)
        for axis, keepdims in itertools.product([None, 0, -1, (0, 2), (), (2, -2)], [False, True]):
            agree(lambda xp, x: getattr(xp, name)(x, axis=axis, keepdims=keepdims), x)
        agree(lambda xp, x: getattr(xp, name)(x), x[0, 0, 0])
        if name not in ("max", "min", "mean", "var", "std"):
            agree(lambda xp, x: getattr(xp, name)(x, axis=0), x[:0])
    if name in ("var", "std"):
        agree(lambda xp, x: getattr(xp, name)(x, axis=0, correction=1), sample((5, 2), "float64"))


def test_sums_of_a_dtype():
    agree(
        lambda xp, x: [xp.sum(x, dtype=xp.float64), xp.prod(x, axis=(0, 1), dtype=xp.int32)],
        sample((3, 2), "int8"),
    )


def test_scans():
    x = sample((3, 4), "int16")
    for name in ("cumulative_sum", "cumulative_prod"):
        for initial in (False, True):
            agree(lambda xp, x: getattr(xp, name)(x, axis=1, include_initial=initial), x)
            agree(lambda xp, x: getattr(xp, name)(x, axis=-2, include_initial=initial), x)
            agree(
                lambda xp, x: getattr(xp, name)(x[0, :], dtype=xp.float64, include_initial=initial),
                x,
            )
        with pytest.raises(ValueError, match="axis is required"):
            getattr(xp, name)(xp.asarray(x))
    agree(lambda xp, x: [xp.diff(x), xp.diff(x, axis=0, n=2), xp.diff(x, prepend=x, append=x)], x)
    agree(
        lambda xp, x: [xp.argmax(x), xp.argmin(x, axis=0), xp.argmax(x, axis=1, keepdims=True)], x
    )


# ---- order and sets -----------------------------------------------------------------------------


def test_sorting_and_searching():
    x = np.asarray([[3, 1, 2, 1], [5, 5, 0, 1]], "int32")
    for axis, descending in itertools.product([0, 1, -1], [False, True]):
        agree(lambda xp, x: xp.sort(x, axis=axis, descending=descending), x)
    agree(lambda xp, x: xp.argsort(x, axis=1), x)
    agree(lambda xp, x: xp.nonzero(x), x)
    ordered, wanted = np.asarray([1.0, 2.0, 2.0, 5.0]), np.asarray([[0.0, 2.0], [3.0, 9.0]])
    for side in ("left", "right"):
        agree(lambda xp, a, v: xp.searchsorted(a, v, side=side), ordered, wanted)
    agree(
        lambda xp, a, v, s: xp.searchsorted(a, v, sorter=s),
        ordered[::-1].copy(),
        wanted,
        np.asarray([3, 2, 1, 0]),
    )
    with pytest.raises(ValueError, match="without dimensions"):
        xp.nonzero(xp.asarray(1))


@pytest.mark.parametrize("dtype", DTYPES)
def test_sets(dtype):
    x = sample((2, 9), dtype).round() if dtype not in ("bool",) else sample((2, 9), dtype)
    agree(lambda xp, x: xp.unique_all(x), x)
    agree(lambda xp, x: [xp.unique_values(x), *xp.unique_counts(x), *xp.unique_inverse(x)], x)
    agree(lambda xp, x: xp.unique_all(x), x[:, :0])


def test_each_nan_is_distinct():
    found = xp.unique_counts(taeda.tensor([np.nan, 1.0, np.nan, 1.0]))
    assert found.counts.tolist() == [2, 1, 1]


# ---- moving elements ----------------------------------------------------------------------------

MOVES = {
    "concat": lambda xp, x, y: [
        xp.concat([x, y]),
        xp.concat([x, y], axis=None),
        xp.concat([x, y], axis=-1),
    ],
    "stack": lambda xp, x, y: [xp.stack([x, y]), xp.stack((x, y), axis=-1)],
    "unstack": lambda xp, x, y: [*xp.unstack(x), *xp.unstack(y, axis=1)],
    "expand_dims": lambda xp, x, y: [xp.expand_dims(x, axis=0), xp.expand_dims(x, axis=-1)],
    "squeeze": lambda xp, x, y: [xp.squeeze(x[:1, :], axis=0), xp.squeeze(x[:1, :1], axis=(0, 1))],
    "permute_dims": lambda xp, x, y: [
        xp.permute_dims(x, (1, 0)),
        xp.moveaxis(x, 0, 1),
        xp.matrix_transpose(x),
    ],
    "flip": lambda xp, x, y: [xp.flip(x), xp.flip(x, axis=1), xp.flip(x, axis=(0,))],
    "roll": lambda xp, x, y: [
        xp.roll(x, 2),
        xp.roll(x, 1, axis=1),
        xp.roll(x, (1, -1), axis=(0, 1)),
    ],
    "repeat": lambda xp, x, y: [xp.repeat(x, 2), xp.repeat(x, 3, axis=1)],
    "tile": lambda xp, x, y: [xp.tile(x, (2,)), xp.tile(x, (2, 1, 3))],
    "reshape": lambda xp, x, y: [xp.reshape(x, (3, 2)), xp.reshape(x, (-1,), copy=True)],
    "broadcast": lambda xp, x, y: [
        *xp.broadcast_arrays(x, y[:1, :]),
        xp.broadcast_to(x, (4, 2, 3)),
    ],
    "meshgrid": lambda xp, x, y: [
        *xp.meshgrid(x[0, :], x[1, :2]),
        *xp.meshgrid(y[0, :], y[1, :2], indexing="ij"),
    ],
    "triangles": lambda xp, x, y: [xp.tril(x), xp.triu(y, k=1), xp.tril(x, k=-1)],
    "astype": lambda xp, x, y: [xp.astype(x, xp.float64), xp.astype(y, xp.int64, copy=False)],
}


@pytest.mark.parametrize("name", MOVES)
def test_manipulation(name):
    agree(MOVES[name], sample((2, 3), "int16"), sample((2, 3), "int32", 1))


def test_taking():
    x, i = sample((3, 4), "float32"), np.asarray([2, 0, 2])
    agree(
        lambda xp, x, i: [xp.take(x, i, axis=1), xp.take(x, i, axis=-2), xp.take(x[0, :], i)], x, i
    )
    agree(
        lambda xp, x, i: [xp.take_along_axis(x, i), xp.take_along_axis(x, i, axis=0)],
        x,
        np.asarray([[2, 0, 1, 0]] * 3),
    )
    assert xp.take(taeda.arange(4), taeda.tensor([-1, -4])).tolist() == [3, 0]
    with pytest.raises(IndexError):
        xp.take(taeda.arange(4), taeda.tensor([4]))
    with pytest.raises(ValueError, match="axis is required"):
        xp.take(taeda.ones(2, 2), taeda.tensor([0]))


def test_refusals():
    x = taeda.ones(2, 3)
    with pytest.raises(ValueError, match="has size 2, not 1"):
        xp.squeeze(x, axis=0)
    with pytest.raises(ValueError, match="reshape"):
        xp.reshape(x.mT, (6,), copy=False)
    with pytest.raises(ValueError, match="2 or more dimensions"):
        xp.matrix_transpose(taeda.ones(2))
    with pytest.raises(ValueError, match="sizes 3 and 1"):
        xp.vecdot(x, x[:, :1])
    with pytest.raises(ValueError, match="kind must be one of"):
        xp.isdtype(taeda.int8, "float")
    with pytest.raises(TypeError, match="must be a str, dtype or tuple"):
        xp.isdtype(taeda.int8, 3)
    with pytest.raises(ValueError, match="at least one tensor or dtype"):
        xp.result_type(1)
    with pytest.raises(ValueError, match="mode must be"):
        xp.linalg.qr(x, mode="raw")


# ---- creation, dtypes, information --------------------------------------------------------------

CREATION = {
    "arange": lambda xp: [xp.arange(5), xp.arange(1, 4), xp.arange(5, 1), xp.arange(5, 1, -2), xp.arange(0.0, 1.0, 0.25, dtype=xp.float64)],
    "linspace": lambda xp: [xp.linspace(0, 1, 5, dtype=xp.float64), xp.linspace(0, 1, 4, endpoint=False, dtype=xp.float64), xp.linspace(0, 1, 0, dtype=xp.float64)],
    "eye": lambda xp: [xp.eye(3, dtype=xp.int8), xp.eye(2, 4, k=1, dtype=xp.float32), xp.eye(3, 2, k=-5, dtype=xp.float32), xp.eye(0, dtype=xp.bool)],
    "filled": lambda xp: [xp.zeros(3, dtype=xp.int8), xp.ones((2, 0), dtype=xp.bool), xp.full((2,), True), xp.full(2, 7), xp.full((), 1j, dtype=xp.complex128)],
    "like": lambda xp: [xp.zeros_like(xp.ones((2, 3), dtype=xp.int8)), xp.ones_like(xp.eye(2, dtype=xp.float32), dtype=xp.int64), xp.full_like(xp.arange(2), 5)],
    "asarray": lambda xp: [xp.asarray([1, 2]), xp.asarray([[True]]), xp.asarray(3, dtype=xp.float64), xp.asarray(xp.arange(3), copy=True)],
}  # fmt: skip


@pytest.mark.parametrize("name", CREATION)
def test_creation(name):
    agree(CREATION[name])


def test_empty_and_dlpack():
    assert xp.empty((2, 3), dtype=xp.int16).shape == xp.empty_like(taeda.ones(2, 3)).shape
    shared = np.arange(3.0)
    view, copy = xp.from_dlpack(shared), xp.from_dlpack(shared, copy=True)
    shared[0] = 5
    assert (view.tolist(), copy.tolist()) == ([5.0, 1.0, 2.0], [0.0, 1.0, 2.0])


def test_dtype_functions():
    for a, b in itertools.product(DTYPES, DTYPES):
        ours, theirs = (getattr(xp, a), getattr(xp, b)), (getattr(strict, a), getattr(strict, b))
        assert xp.can_cast(*ours) == strict.can_cast(*theirs), (a, b)
        try:
            expected = strict.result_type(*theirs)
        except TypeError:
            continue  # the standard leaves it open
        assert (
            plain(xp.zeros(1, dtype=xp.result_type(*ours))).dtype
            == plain(strict.zeros(1, dtype=expected)).dtype
        )
    kinds = [
        "bool",
        "signed integer",
        "unsigned integer",
        "integral",
        "real floating",
        "complex floating",
        "numeric",
    ]
    for dtype, kind in itertools.product(DTYPES, [*kinds, ("bool", "integral")]):
        assert xp.isdtype(getattr(xp, dtype), kind) == strict.isdtype(getattr(strict, dtype), kind)
    assert xp.isdtype(xp.int8, xp.int8) and not xp.isdtype(xp.int8, (xp.int16, "bool"))
    for dtype in REALS + COMPLEX:
        ours, theirs = xp.finfo(getattr(xp, dtype)), strict.finfo(getattr(strict, dtype))
        assert ours[:5] == pytest.approx(
            [theirs.bits, theirs.eps, theirs.max, theirs.min, theirs.smallest_normal]
        )
        assert str(ours.dtype).removeprefix("taeda.") == str(theirs.dtype).split(".")[-1].strip(
            "')"
        )
    for dtype in INTEGERS:
        ours, theirs = (
            xp.iinfo(xp.zeros(1, dtype=getattr(xp, dtype))),
            strict.iinfo(getattr(strict, dtype)),
        )
        assert ours[:3] == (theirs.bits, theirs.max, theirs.min)


def test_information():
    ours, theirs = taeda.__array_namespace_info__(), strict.__array_namespace_info__()
    assert ours.capabilities().keys() == theirs.capabilities().keys()
    assert ours.default_dtypes().keys() == theirs.default_dtypes().keys()
    assert ours.default_dtypes(device="cpu")["real floating"] == taeda.float32
    assert ours.default_device() in ours.devices()
    for kind in [None, "bool", "integral", ("real floating", "bool")]:
        assert set(ours.dtypes(kind=kind)) == set(theirs.dtypes(kind=kind)) - UNSIGNED
    most = ours.capabilities()["max dimensions"]
    assert taeda.ones(*[1] * most).dim() == most


def test_gradients_flow_through_the_namespace():
    x = taeda.tensor([[1.0, 2.0], [3.0, 5.0]], requires_grad=True)
    xp.sum(xp.square(xp.matrix_transpose(x)) * xp.clip(x, 0, 4)).backward()
    assert x.grad is not None
