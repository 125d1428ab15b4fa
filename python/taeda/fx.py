"""What remains of ``torch.fx`` where nothing is traced: ``wrap``."""

from __future__ import annotations

from typing import TypeVar

__all__ = ["wrap"]

T = TypeVar("T")


def wrap(fn_or_name: T) -> T:
    """Return a function, or its name, as given: a tracer would not look inside, but there is none.

    Raises:
        RuntimeError: it is neither a function nor a name.
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError(
            f"fx.wrap: expected a function or the name of one, got {type(fn_or_name).__name__}"
        )
    return fn_or_name
