"""The live dictionaries in which a Module keeps its parameters, buffers and submodules."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

_MISSING = object()


class Members(dict[str, Any]):
    """A dictionary of one module's members, each of which is also an attribute of the module.

    Where the class finds members by `__getattr__`, they are not: see `Module.__init_subclass__`.

    Reading `module.weight` is therefore an ordinary attribute read, while code that adds, replaces
    or removes entries of `module._parameters` changes the attribute with it. The module is held by
    a weak reference, so that no cycle delays the release of a model's memory.

    Args:
        owner: a weak reference to the module, or None for a dictionary that belongs to none yet,
            as after copying or unpickling.
        items: the first entries.
    """

    __slots__ = ("_owner",)

    def __init__(self, owner: weakref.ref[Any] | None = None, items: Any = ()) -> None:
        dict.__init__(self)
        self._owner = owner
        if items:
            self.update(items)

    def _attributes(self) -> dict[str, Any]:
        owner = None if self._owner is None else self._owner()
        return {} if owner is None or owner._members_by_getattr else owner.__dict__

    def _forget(self, name: str, value: Any) -> None:
        attributes = self._attributes()
        if attributes.get(name, _MISSING) is value:
            del attributes[name]

    def __setitem__(self, name: str, value: Any) -> None:
        dict.__setitem__(self, name, value)
        self._attributes()[name] = value

    def __delitem__(self, name: str) -> None:
        self._forget(name, dict.pop(self, name))

    def pop(self, name: str, *default: Any) -> Any:
        if name not in self:
            return dict.pop(self, name, *default)
        value = dict.pop(self, name)
        self._forget(name, value)
        return value

    def popitem(self) -> tuple[str, Any]:
        name, value = dict.popitem(self)
        self._forget(name, value)
        return name, value

    def clear(self) -> None:
        while self:
            self.popitem()

    def setdefault(self, name: str, default: Any = None) -> Any:
        if name not in self:
            self[name] = default
        return self[name]

    def update(self, other: Any = (), /, **more: Any) -> None:
        for name, value in dict(other, **more).items():
            self[name] = value

    def __ior__(self, other: Any) -> Members:  # type: ignore[override,misc]
        self.update(other)
        return self

    def __reduce_ex__(self, protocol: Any) -> Any:
        # A plain one, as PyTorch's. When the owner is rebuilt, it is replaced by one bound to it.
        return (dict, (), None, None, iter(self.items()))


class Table:
    """One of a Module's dictionaries, as an attribute of the class.

    It is there for assignments only, also by `object.__setattr__`: what is assigned becomes a
    dictionary of members. Without a `__get__`, reading finds what is in the module's `__dict__`.
    """

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __set__(self, module: Any, value: Any) -> None:
        state = module.__dict__
        for old in tuple(state.get(self._name, ())):
            state.pop(old, None)
        state[self._name] = Members(weakref.ref(module), value)

    if TYPE_CHECKING:

        def __get__(self, module: Any, owner: type | None = None) -> Members: ...
