"""The objects that a program has allowed checkpoints to name, beyond those always allowed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

_added: dict[str, Any] = {}


def _full_name(entry: Any) -> tuple[str, Any]:
    if isinstance(entry, tuple):
        if len(entry) != 2 or not isinstance(entry[1], str):
            raise TypeError(
                f"add_safe_globals: a tuple must be (object, 'module.name'), got {entry!r}"
            )
        return entry[1], entry[0]
    if not callable(entry) or not hasattr(entry, "__qualname__"):
        raise TypeError(f"add_safe_globals: expected classes or functions, got {entry!r}")
    return f"{entry.__module__}.{entry.__qualname__}", entry


def add_safe_globals(safe_globals: Iterable[Any]) -> None:
    """Allow files to name these classes and functions when loaded with ``weights_only=True``.

    A file can call an allowed function with any arguments, and make an allowed class's objects
    with any attributes, so allow only what is harmless then.

    Args:
        safe_globals: classes and functions; or pairs ``(object, "module.name")`` for those that
            the file knows by another name.
    """
    _added.update([_full_name(entry) for entry in safe_globals])


def get_safe_globals() -> list[Any]:
    """The objects that ``add_safe_globals`` has allowed, as given."""
    entries = []
    for name, value in _added.items():
        own = f"{value.__module__}.{value.__qualname__}" if hasattr(value, "__qualname__") else ""
        entries.append(value if name == own else (value, name))
    return entries


def clear_safe_globals() -> None:
    """Take back everything that ``add_safe_globals`` has allowed."""
    _added.clear()


class safe_globals:
    """Allow files to name these classes and functions for the length of a ``with`` block."""

    def __init__(self, safe_globals: Iterable[Any]) -> None:
        self._entries = list(safe_globals)
        self._before: dict[str, Any] = {}

    def __enter__(self) -> None:
        self._before = dict(_added)
        add_safe_globals(self._entries)

    def __exit__(self, *exc: object) -> None:
        _added.clear()
        _added.update(self._before)


def allowed_objects() -> dict[str, Any]:
    """The allowed objects, by ``module.name``: their own, and PyTorch's place for them."""
    from ._places import names_of

    objects = {}
    for name, value in _added.items():
        if hasattr(value, "__qualname__"):
            names = names_of(value)
            if name in names:
                objects.update(dict.fromkeys(names, value))
        objects[name] = value
    return objects
