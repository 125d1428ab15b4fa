"""For tests: `assert_close` compares results, `make_tensor` makes inputs."""

from __future__ import annotations

import cmath
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import taeda

__all__ = ["assert_allclose", "assert_close", "make_tensor"]

# What differences are small: relative to the expected value, and absolutely.
_TOLERANCES = {
    taeda.float16: (1e-3, 1e-5),
    taeda.bfloat16: (1.6e-2, 1e-5),
    taeda.float32: (1.3e-6, 1e-5),
    taeda.float64: (1e-7, 1e-7),
    taeda.complex32: (1e-3, 1e-5),
    taeda.complex64: (1.3e-6, 1e-5),
    taeda.complex128: (1e-7, 1e-7),
}


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Check that tensors are nearly equal: ``|actual - expected| <= atol + rtol * |expected|``.

    Sequences and mappings are compared item by item, and numbers as tensors without dimensions.

    Args:
        actual: tensors, arrays, numbers, or sequences or mappings of them.
        expected: likewise.
        allow_subclasses: whether the types may differ where one inherits from the other.
        rtol: the relative tolerance. By default 1.3e-6 for float32, 1e-7 for float64, 1e-3 for
            float16, 1.6e-2 for bfloat16 and 0 for integers, the larger where dtypes differ.
        atol: the absolute one; 1e-5, but 1e-7 for float64 and 0 for integers. It is given with
            ``rtol`` or not at all.
        equal_nan: whether NaN equals NaN.
        check_device: whether the devices must be the same.
        check_dtype: whether the dtypes must be.
        check_layout: whether the layouts must be.
        check_stride: whether the strides must be.
        msg: in place of the message, or a function that makes one of it.

    Raises:
        AssertionError: they are not.
        ValueError: only one of the tolerances is given.
        TypeError: there is something else among them.

    >>> taeda.testing.assert_close(taeda.tensor([1.0, 2.0]) / 3 * 3, taeda.tensor([1.0, 2.0]))
    """
    if (rtol is None) != (atol is None):
        raise ValueError("assert_close(): rtol and atol must be given together, or neither of them")
    given = None if rtol is None or atol is None else (rtol, atol)
    checks = {
        "device": check_device,
        "dtype": check_dtype,
        "layout": check_layout,
        "stride()": check_stride,
    }
    try:
        _compare(actual, expected, "", given, equal_nan, checks, allow_subclasses)
    except AssertionError as error:
        if msg is None:
            raise
        raise AssertionError(msg(str(error)) if callable(msg) else msg) from None


def _compare(
    actual: Any,
    expected: Any,
    where: str,
    given: tuple[float, float] | None,
    equal_nan: bool,
    checks: Mapping[str, bool],
    subclasses: bool,
) -> None:
    rest = (given, equal_nan, checks, subclasses)
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        if set(actual) != set(expected):
            only = (sorted(map(repr, set(a) - set(b))) for a, b in _both_ways(actual, expected))
            _fail(where, "the keys differ: only {} in actual, only {} in expected".format(*only))
        for key in actual:
            _compare(actual[key], expected[key], f"{where}[{key!r}]", *rest)
    elif _is_sequence(actual) and _is_sequence(expected):
        if len(actual) != len(expected):
            _fail(where, f"the lengths differ: {len(actual)} and {len(expected)}")
        for i, (a, b) in enumerate(zip(actual, expected, strict=True)):
            _compare(a, b, f"{where}[{i}]", *rest)
    elif actual is None or expected is None:
        if actual is not expected:
            _fail(where, f"{actual!r} is not {expected!r}")
    elif _is_number(actual) and _is_number(expected):
        _compare_numbers(actual, expected, where, given, equal_nan, checks["dtype"])
    else:
        _check_types(actual, expected, subclasses)
        a, b = _tensor(actual), _tensor(expected)
        _compare_tensors(a, b, where, given, equal_nan, checks)


def _both_ways(a: Any, b: Any) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    return (a, b), (b, a)


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def _is_number(value: Any) -> bool:
    return isinstance(value, (bool, int, float, complex))


def _check_types(actual: Any, expected: Any, subclasses: bool) -> None:
    related = type(actual) is type(expected) or (
        subclasses and (isinstance(actual, type(expected)) or isinstance(expected, type(actual)))
    )
    if not related:
        raise TypeError(
            f"assert_close(): a {type(actual).__name__} cannot be compared with a "
            f"{type(expected).__name__}"
        )


def _tensor(value: Any) -> taeda.Tensor:
    if isinstance(value, taeda.Tensor):
        return value.detach()
    if not hasattr(value, "__array__"):
        raise TypeError(f"assert_close(): no tensor can be made of a {type(value).__name__}")
    return taeda.as_tensor(value)


def _fail(where: str, what: str) -> None:
    place = f" (at {where})" if where else ""
    raise AssertionError(f"assert_close(): {what}{place}")


def _tolerances(
    given: tuple[float, float] | None, a: taeda.dtype, b: taeda.dtype
) -> tuple[float, float]:
    if given is not None:
        return given
    first, second = _TOLERANCES.get(a, (0.0, 0.0)), _TOLERANCES.get(b, (0.0, 0.0))
    return max(first[0], second[0]), max(first[1], second[1])


def _compare_numbers(
    actual: Any,
    expected: Any,
    where: str,
    given: tuple[float, float] | None,
    equal_nan: bool,
    same_type: bool,
) -> None:
    if same_type and type(actual) is not type(expected):
        names = f"{type(actual).__name__} and {type(expected).__name__}"
        _fail(where, f"the types differ: {names}")
    exact = all(isinstance(x, int) for x in (actual, expected))
    dtype = taeda.int64 if exact else taeda.float64
    rtol, atol = _tolerances(given, dtype, dtype)
    if actual == expected or (equal_nan and cmath.isnan(actual) and cmath.isnan(expected)):
        return
    allowed = atol + rtol * abs(expected)
    if (
        not (cmath.isfinite(actual) and cmath.isfinite(expected))
        or abs(actual - expected) > allowed
    ):
        _fail(where, f"{actual} is not within {allowed:g} of {expected}")


def _compare_tensors(
    actual: taeda.Tensor,
    expected: taeda.Tensor,
    where: str,
    given: tuple[float, float] | None,
    equal_nan: bool,
    checks: Mapping[str, bool],
) -> None:
    if actual.shape != expected.shape:
        _fail(where, f"the shapes differ: {tuple(actual.shape)} and {tuple(expected.shape)}")
    for name, wanted in checks.items():
        attribute = name.removesuffix("()")
        a, b = getattr(actual, attribute), getattr(expected, attribute)
        a, b = (a(), b()) if name.endswith("()") else (a, b)
        if wanted and a != b:
            _fail(where, f"{name} differs: {a} and {b}")
    if "meta" in (actual.device.type, expected.device.type):
        return  # there are no values to compare
    rtol, atol = _tolerances(given, actual.dtype, expected.dtype)
    common = taeda.promote_types(actual.dtype, expected.dtype)
    common = taeda.int64 if common == taeda.bool else common
    a, b = actual.cpu().to(common), expected.cpu().to(common)
    close = taeda.isclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)
    if not close.all():
        _fail(where, _difference(a, b, close, rtol, atol))


def _difference(a: Any, b: Any, close: Any, rtol: float, atol: float) -> str:
    """How many elements differ, and which differ most."""
    count, total = int((~close).sum()), close.numel()
    if total == 1 and a.dim() == 0:
        return f"{a.item()} is not within {atol:g} + {rtol:g} * |expected| of {b.item()}"
    wide = taeda.complex128 if a.is_complex() else taeda.float64
    apart = (a.to(wide) - b.to(wide)).abs()
    relative = apart / b.to(wide).abs()
    lines = [f"{count} of {total} elements ({100 * count / total:.1f}%) are not close"]
    for word, values, allowed in (("absolute", apart, atol), ("relative", relative, rtol)):
        values = taeda.where(close, taeda.zeros_like(values), values)
        flat = int(values.nan_to_num(nan=float("inf")).argmax())
        index = tuple(int(i) for i in taeda.unravel_index(taeda.tensor(flat), values.shape))
        largest = values.flatten()[flat].item()
        lines.append(
            f"  the largest {word} difference is {largest:g} at index {index} ({allowed:g} allowed)"
        )
    return "\n".join(lines)


def _ends(dtype: taeda.dtype, low: float | None, high: float | None) -> tuple[float, float]:
    """The interval that `make_tensor` draws from, as far as the dtype reaches."""
    real = dtype.is_floating_point or dtype.is_complex
    if dtype == taeda.bool:
        own, least, most = (0, 2), 0.0, 2.0
    else:
        own = (0, 10) if dtype == taeda.uint8 else (-9, 9 if real else 10)
        info = taeda.finfo(dtype) if real else taeda.iinfo(dtype)
        least, most = info.min, info.max if real else info.max + 1
    ends = [default if end is None else end for end, default in zip((low, high), own, strict=True)]
    if any(end != end for end in ends):
        raise ValueError(f"`low` and `high` cannot be NaN, but got low={low} and high={high}")
    low, high = ends
    if low == high and real:
        warnings.warn(
            "make_tensor: `low` == `high` is deprecated for floating and complex dtypes. Use "
            "`full` instead.",
            FutureWarning,
            stacklevel=3,
        )
    elif low >= high:
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    if high < least or low >= most:
        raise ValueError(
            f"The value interval specified by `low` and `high` is [{low}, {high}), but {dtype} "
            f"only supports [{least}, {most})"
        )
    low, high = max(low, least), min(high, most)
    return (low, high) if real else (math.ceil(low), math.ceil(high))


def make_tensor(
    *shape: Any,
    dtype: taeda.dtype,
    device: Any,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: taeda.memory_format | None = None,
) -> taeda.Tensor:
    """A tensor of random elements, evenly spread over [low, high), as an input for a test.

    Args:
        *shape: its sizes, one by one or as one sequence.
        dtype: of the elements.
        device: where they are kept.
        low: the least element. By default -9; 0 for bool and uint8. Cut to what `dtype` can hold.
        high: elements are below it. By default 9 for floating and complex dtypes, 10 for integers,
            2 for bool. Cut likewise.
        requires_grad: whether the tensor is a leaf that requires a gradient.
        noncontiguous: take every other column of a tensor with twice as many. It has no effect on
            fewer than two elements.
        exclude_zero: put the least positive normal number in the place of zeros; 1 for integers.
        memory_format: of the result's strides.

    Raises:
        ValueError: `low` is not below `high`, is NaN, or the dtype holds nothing in between; a
            gradient is asked of integers; both `noncontiguous` and `memory_format` are given.

    >>> from taeda.testing import make_tensor
    >>> x = make_tensor(2, 3, dtype=taeda.float64, device="cpu", low=0, high=1)
    >>> bool((x >= 0).all() and (x < 1).all())
    True
    """
    sizes = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], Sequence) else shape
    real = dtype.is_floating_point or dtype.is_complex
    if requires_grad and not real:
        raise ValueError(
            "`requires_grad=True` is not supported for boolean and integral dtypes, but got "
            f"{dtype=}"
        )
    if noncontiguous and memory_format is not None:
        raise ValueError(
            "The parameters `noncontiguous` and `memory_format` are mutually exclusive, but got "
            f"{noncontiguous=} and {memory_format=}"
        )
    least, most = _ends(dtype, low, high)
    apart = noncontiguous and math.prod(sizes) > 1
    whole = (*sizes[:-1], 2 * sizes[-1]) if apart else sizes
    if real:
        made = taeda.empty(whole, dtype=dtype, device=device)
        (taeda.view_as_real(made) if dtype.is_complex else made).uniform_(least, most)
    else:
        made = taeda.randint(int(least), int(most), whole, dtype=dtype, device=device)
    if apart:
        made = made[..., 1::2]
    elif memory_format is not None:
        made = made.clone(memory_format=memory_format)
    if exclude_zero:
        tiny = taeda.finfo(dtype).tiny if real else 1
        made[made == 0] = complex(tiny, tiny) if dtype.is_complex else tiny
    return made.requires_grad_(requires_grad)


def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """`assert_close`, without looking at devices, dtypes and strides. Deprecated."""
    import warnings

    warnings.warn("testing.assert_allclose is deprecated; use assert_close", FutureWarning, 2)
    if not isinstance(actual, taeda.Tensor):
        actual = taeda.tensor(actual)
    if not isinstance(expected, taeda.Tensor):
        expected = taeda.tensor(expected, dtype=actual.dtype)
    assert_close(
        actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan, check_device=True,
        check_dtype=False, check_stride=False, msg=msg or None,
    )  # fmt: skip
