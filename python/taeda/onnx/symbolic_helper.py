"""A decorator of the functions that ``register_custom_op_symbolic`` is given."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

__all__ = ["parse_args"]

T = TypeVar("T")
_KINDS = frozenset(["v", "i", "is", "f", "fs", "b", "s", "t", "none"])


def parse_args(*arg_descriptors: str) -> Callable[[T], T]:
    """A decorator that says what an exporter turns arguments into; the function stays as it is.

    Args:
        arg_descriptors: for each argument "v" (a value), "i", "f", "b", "s", "t" (an int, float,
            bool, string, tensor), "is", "fs" (lists) or "none".

    Raises:
        ValueError: there is another word.
    """
    unknown = set(arg_descriptors) - _KINDS
    if unknown:
        raise ValueError(f"parse_args: unknown descriptors {sorted(unknown)}")

    def decorate(fn: T) -> T:
        return fn

    return decorate
