"""Small helpers of layers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

__all__ = [
    "_ntuple",
    "_pair",
    "_quadruple",
    "_reverse_repeat_tuple",
    "_single",
    "_triple",
    "consume_prefix_in_state_dict_if_present",
]


def _ntuple(count: int) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that makes a tuple of `count` values of a single one."""

    def expand(value: Any) -> tuple[Any, ...]:
        return tuple(value) if isinstance(value, Iterable) else (value,) * count

    return expand


_single = _ntuple(1)
_pair = _ntuple(2)
_triple = _ntuple(3)
_quadruple = _ntuple(4)


def _reverse_repeat_tuple(values: Iterable[Any], times: int) -> tuple[Any, ...]:
    """The values from last to first, each `times` times: the order that `pad` takes them in."""
    return tuple(value for value in reversed(tuple(values)) for _ in range(times))


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Take a prefix away from the names in a state dict, in place: "module." of `DataParallel`.

    Args:
        state_dict: the state dict, with its `_metadata`.
        prefix: the prefix, with its dot.
    """
    for name in [name for name in state_dict if name.startswith(prefix)]:
        state_dict[name[len(prefix) :]] = state_dict.pop(name)
    metadata = getattr(state_dict, "_metadata", None)
    if metadata is None:
        return
    for name in list(metadata):
        if name and (name == prefix[:-1] or name.startswith(prefix)):
            metadata[name[len(prefix) :]] = metadata.pop(name)
