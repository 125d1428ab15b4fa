"""Checks that library code makes of its arguments and of values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from taeda._C import Tensor, tensor
from taeda._C import bool as bool_

Message = Callable[[], Any]


def _check_with(error_type: type[Exception], cond: bool, message: Message | None = None) -> None:
    """Raise ``error_type`` with what ``message()`` gives unless ``cond``, which is a bool."""
    if not isinstance(cond, bool):
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if cond:
        return
    if message is None:
        raise error_type("Expected cond to be True, but got False.")
    if not callable(message):
        raise TypeError("message must be a callable")
    raise error_type(str(message()))


def _check(cond: bool, message: Message | None = None) -> None:
    """Raise RuntimeError unless ``cond``.

    Args:
        cond: a bool.
        message: gives the error's message; called only when there is one.

    Raises:
        TypeError: ``cond`` is no bool, or ``message`` cannot be called.
    """
    _check_with(RuntimeError, cond, message)


def _check_index(cond: bool, message: Message | None = None) -> None:
    """As ``_check``, but with an IndexError."""
    _check_with(IndexError, cond, message)


def _check_value(cond: bool, message: Message | None = None) -> None:
    """As ``_check``, but with a ValueError."""
    _check_with(ValueError, cond, message)


def _check_type(cond: bool, message: Message | None = None) -> None:
    """As ``_check``, but with a TypeError."""
    _check_with(TypeError, cond, message)


def _check_not_implemented(cond: bool, message: Message | None = None) -> None:
    """As ``_check``, but with a NotImplementedError."""
    _check_with(NotImplementedError, cond, message)


def _check_is_size(i: int, message: Message | None = None, *, max: int | None = None) -> None:
    """Raise RuntimeError unless ``i`` is a size: from 0 to ``max``, where that is given."""
    _check(bool(i >= 0 and (max is None or i <= max)), message)


def _check_tensor_all_with(
    error_type: type[Exception], cond: Tensor, message: Message | None = None
) -> None:
    """As ``_check_with``, of all elements of a tensor of bools."""
    if not isinstance(cond, Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if cond.dtype is not bool_:
        raise TypeError(f"cond tensor must have dtype bool, but got {cond.dtype}")
    _check_with(error_type, bool(cond.all().item()), message)


def _check_tensor_all(cond: Tensor, message: Message | None = None) -> None:
    """As ``_check``, of all elements of a tensor of bools."""
    _check_tensor_all_with(RuntimeError, cond, message)


def _assert(condition: Any, message: Any) -> None:
    """Raise AssertionError unless ``condition``, which may be a tensor with one element."""
    if type(condition) not in (bool, Tensor):
        from taeda import overrides

        if overrides.has_torch_function_unary(condition):
            overrides.handle_torch_function(_assert, (condition,), condition, message)
            return
    if not condition:
        raise AssertionError(message)


def _assert_async(input: Tensor, assert_msg: str | None = None) -> None:
    """Raise RuntimeError unless the one element of a tensor is nonzero."""
    if not input:
        raise RuntimeError(assert_msg or "Expected Tensor with single nonzero value, but got zero")


def _shape_as_tensor(input: Tensor) -> Tensor:
    """The sizes of a tensor as int64 numbers, shape ``(input.ndim,)``."""
    return tensor(list(input.shape)).long()
