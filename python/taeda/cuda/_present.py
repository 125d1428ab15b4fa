"""What :mod:`taeda.cuda` has where its library is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from taeda.cuda import (
    _cudart,
    _devices,
    _graphed,
    _graphs,
    _memory,
    _meters,
    _pinned,
    _pools,
    _random,
    _streams,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["members", "missing"]

_MODULES = (
    *(_cudart, _devices, _graphed, _graphs, _memory, _meters),
    *(_pinned, _pools, _random, _streams),
)

# Answers for no device that are right for these devices too: no other process has memory of this
# one.
_STILL_RIGHT = {"ipc_collect"}


def members() -> dict[str, Any]:
    """The functions and classes by name."""
    return {name: getattr(module, name) for module in _MODULES for name in module.__all__}


def missing(absent: Iterable[str]) -> list[str]:
    """Of the names that answer for no device, those that would be wrong."""
    return [name for name in absent if name not in members() and name not in _STILL_RIGHT]


def fill_streams() -> None:
    """Let ``taeda.cuda.streams`` have the same classes."""
    from taeda.cuda import streams

    here = members()
    names = [*streams.__all__, "ExternalStream"]
    vars(streams).update({name: here[name] for name in names})
