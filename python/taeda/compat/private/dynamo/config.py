"""Stands for ``torch._dynamo.config``: a compiler's switches, which keep what they are set to."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

__all__ = ["patch"]

cache_size_limit = 8
recompile_limit = 8
capture_dynamic_output_shape_ops = False
capture_scalar_outputs = False
suppress_errors = False
verbose = False


@contextlib.contextmanager
def patch(
    changes: str | dict[str, Any] | None = None, value: Any = None, **more: Any
) -> Iterator[None]:
    """Inside ``with`` (or a decorated function) some switches are set otherwise.

    Args:
        changes: the name of one, which gets ``value``; or a dictionary of names and values.
        value: see above.
        more: names and values.
    """
    given = {changes: value} if isinstance(changes, str) else dict(changes or {})
    given.update(more)
    switches = globals()
    before = {name: switches[name] for name in given if name in switches}
    switches.update(given)
    try:
        yield
    finally:
        for name in given:
            switches.pop(name)
        switches.update(before)
