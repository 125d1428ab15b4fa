"""`opcheck`: whether an operation does what its schema and its registrations say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from taeda import _C
from taeda._C import Tensor

from . import _operator
from ._operator import AUTOGRAD, RECORDED, Operator, tensors_of

__all__ = ["OpCheckError", "opcheck"]


class OpCheckError(RuntimeError):
    """A check of `opcheck` has failed."""


def _bound(operator: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """One value for each argument of the schema that is given."""
    given = dict(zip((a.name for a in operator.schema.arguments), args, strict=False), **kwargs)
    return [given.get(a.name) for a in operator.schema.arguments]


def _copies(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.detach().clone().requires_grad_(value.requires_grad)
    if isinstance(value, (list, tuple)):
        return type(value)(_copies(item) for item in value)
    return value


def _call(operator: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Tensor]:
    return tensors_of(operator.function(*args, **kwargs))


def _schema(operator: Operator, args: Any, kwargs: Any, close: Callable[..., None]) -> None:
    """What the schema does not call mutated stays, and no result shares memory with an argument."""
    args, kwargs = _copies(args), _copies(kwargs)
    values = _bound(operator, args, kwargs)
    before = _copies(values)
    results = _call(operator, args, kwargs)
    for argument, old, new in zip(operator.schema.arguments, before, values, strict=True):
        changed = any(
            not _C.ops.equal(a.detach(), b.detach())
            for a, b in zip(tensors_of(old), tensors_of(new), strict=True)
        )
        if changed and not argument.mutated:
            raise OpCheckError(
                f"opcheck: {operator.qualname} changes argument '{argument.name}', which its "
                f"schema {operator.schema.text} does not say"
            )
    memory = {t.untyped_storage()._cdata for value in values for t in tensors_of(value)}
    if any(r.untyped_storage()._cdata in memory for r in results):
        raise OpCheckError(
            f"opcheck: a result of {operator.qualname} shares memory with an argument"
        )


def _autograd(operator: Operator, args: Any, kwargs: Any, close: Callable[..., None]) -> None:
    """Where inputs require gradients, a derivative is registered, or the operation is composite."""
    values = _bound(operator, args, kwargs)
    if not any(t.requires_grad for value in values for t in tensors_of(value)):
        return
    known = operator.backward is not None or AUTOGRAD in operator.kernels
    if not known and RECORDED not in operator.kernels:
        raise OpCheckError(
            f"opcheck: {operator.qualname} has no derivative: add one with "
            "taeda.library.register_autograd"
        )


def _fake(operator: Operator, args: Any, kwargs: Any, close: Callable[..., None]) -> None:
    """The function for tensors without data gives what the shapes, dtypes and strides are."""

    def bare(value: Any) -> Any:
        if isinstance(value, Tensor):
            return value.detach().to("meta")
        if isinstance(value, (list, tuple)):
            return type(value)(bare(item) for item in value)
        return value

    real = _call(operator, _copies(args), _copies(kwargs))
    try:
        fake = _call(operator, bare(args), {name: bare(v) for name, v in kwargs.items()})
    except Exception as error:
        raise OpCheckError(
            f"opcheck: {operator.qualname} of tensors without data: {error}"
        ) from error
    facts = [[(t.shape, t.dtype, t.stride()) for t in ts] for ts in (fake, real)]
    if facts[0] != facts[1]:
        raise OpCheckError(
            f"opcheck: {operator.qualname} gives {facts[1]} (shape, dtype, strides), but "
            f"{facts[0]} for tensors without data"
        )


def _again(operator: Operator, args: Any, kwargs: Any, close: Callable[..., None]) -> None:
    """Results and gradients are the same in a second call, and within `vmap` over one example."""

    def run() -> tuple[list[Tensor], list[Any]]:
        own_args, own_kwargs = _copies(args), _copies(kwargs)
        leaves = [
            t
            for value in _bound(operator, own_args, own_kwargs)
            for t in tensors_of(value)
            if t.requires_grad
        ]
        results = _call(operator, own_args, own_kwargs)
        recorded = [r for r in results if r.requires_grad]
        if leaves and recorded:
            from taeda.autograd import grad

            ones = [_C.ops.ones_like(r) for r in recorded]
            found = list(grad(recorded, leaves, ones, allow_unused=True))
            return [r.detach() for r in results], found
        return [r.detach() for r in results], []

    first, second = run(), run()
    for one, other in zip([*first[0], *first[1]], [*second[0], *second[1]], strict=True):
        if one is not None and other is not None:
            close(one, other)


_TESTS = {
    "test_schema": _schema,
    "test_autograd_registration": _autograd,
    "test_faketensor": _fake,
    "test_aot_dispatch_static": _again,
    "test_aot_dispatch_dynamic": _again,
}
_DEFAULT = (
    "test_schema",
    "test_autograd_registration",
    "test_faketensor",
    "test_aot_dispatch_dynamic",
)


def opcheck(
    op: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    test_utils: str | Sequence[str] = _DEFAULT,
    raise_exception: bool = True,
    atol: float | None = None,
    rtol: float | None = None,
) -> dict[str, Any]:
    """Check an operation with some arguments.

    Args:
        op: a name, an operation or a `CustomOpDef`.
        args: its positional arguments.
        kwargs: its others.
        test_utils: the checks: ``"test_schema"`` (nothing is changed that the schema does not
            say), ``"test_autograd_registration"`` (there is a derivative), ``"test_faketensor"``
            (tensors without data give the right shapes), ``"test_aot_dispatch_dynamic"`` or
            ``"test_aot_dispatch_static"`` (two calls give the same results and gradients).
        raise_exception: raise an error where one fails; else it is what the result says.
        atol, rtol: tolerances of the last.

    Returns:
        For each check ``"SUCCESS"`` or its error.

    Raises:
        OpCheckError: a check fails.
        ValueError: there is no such check.

    >>> @taeda.library.custom_op("docs::double", mutates_args=())
    ... def double(x: taeda.Tensor) -> taeda.Tensor:
    ...     return x * 2
    >>> taeda.library.opcheck(double, (taeda.ones(2),), test_utils="test_schema")
    {'test_schema': 'SUCCESS'}
    """
    from taeda.testing import assert_close

    def close(one: Tensor, other: Tensor) -> None:
        try:
            assert_close(one, other, atol=atol, rtol=rtol, equal_nan=True)
        except AssertionError as error:
            raise OpCheckError(
                f"opcheck: two calls of {operator.qualname} differ: {error}"
            ) from error

    operator = _operator.find(op)
    names = [test_utils] if isinstance(test_utils, str) else list(test_utils)
    unknown = [name for name in names if name not in _TESTS]
    if unknown:
        raise ValueError(f"opcheck: test_utils must be among {list(_TESTS)}, got {unknown}")
    found: dict[str, Any] = {}
    for name in names:
        try:
            _TESTS[name](operator, args, kwargs or {}, close)
            found[name] = "SUCCESS"
        except Exception as error:
            if raise_exception:
                raise
            found[name] = error
    return found
