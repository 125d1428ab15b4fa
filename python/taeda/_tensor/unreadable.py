"""The base of tensors whose elements are beside them, not in their own memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from taeda import _C
from taeda._C import Tensor


def _parts(values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, (tuple, list)):
            yield from _parts(value)
        else:
            yield value


@_C._sees_every_call
class Unreadable(Tensor):
    """A tensor that no kernel can read: every op, also those called from C++, asks its class.

    A subclass defines ``__torch_function__``.
    """

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        for value in _parts((*args, *kwargs.values())):
            if isinstance(value, Unreadable):
                return type(value).__torch_function__(func, types, args, kwargs)
        raise TypeError(f"{func.__name__}(): no argument is a tensor without memory")
