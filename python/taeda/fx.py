"""What remains of ``torch.fx`` where nothing is traced: ``wrap``."""

from __future__ import annotations

from typing import TypeVar

__all__ = ["GraphModule", "Node", "Proxy", "wrap"]

T = TypeVar("T")


class _NeedsTrace:
    """A type that only tracing creates; taeda does not trace."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        raise TypeError(f"fx.{type(self).__name__}: nothing is traced, so there are none")


class GraphModule(_NeedsTrace):
    """PyTorch's type of traced modules, for ``isinstance``. taeda has no instances."""


class Node(_NeedsTrace):
    """A step of a traced graph. There are none here; ``isinstance`` can ask."""


class Proxy(_NeedsTrace):
    """PyTorch's type of traced values, for ``isinstance``. taeda has no instances."""


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
