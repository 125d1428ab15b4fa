"""Modules that hold other modules or parameters in order or by name."""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, overload

from taeda.nn.module import Module
from taeda.nn.modules.parameter_container import ParameterDict, ParameterList, _pairs, _position

if TYPE_CHECKING:
    from typing_extensions import Self

    class AnyModule(Module):
        """A module whose class is not known, so that its attributes may be anything."""

        def __getattr__(self, name: str) -> Any: ...


__all__ = ["ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]


class Sequential(Module):
    """Modules called one after another, each with the output of the one before.

    Args:
        *args: the modules, or one OrderedDict of names to modules.

    It indexes, slices, adds and multiplies like a list.

    >>> model = taeda.nn.Sequential(taeda.nn.Linear(2, 4), taeda.nn.ReLU())
    >>> model[1]
    ReLU()
    >>> tuple(model(taeda.zeros(3, 2)).shape)
    (3, 4)
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            for position, module in enumerate(args):
                self.add_module(str(position), module)

    def forward(self, input: Any) -> Any:
        for module in self._modules.values():
            input = module(input)
        return input

    def _renumber(self, modules: Iterable[Module]) -> None:
        modules = list(modules)
        self._modules.clear()
        for position, module in enumerate(modules):
            self._modules[str(position)] = module

    def _name_at(self, index: Any) -> str:
        return next(islice(self._modules, _position(index, len(self)), None))

    @overload
    def __getitem__(self, index: int) -> AnyModule: ...
    @overload
    def __getitem__(self, index: slice) -> Self: ...
    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(OrderedDict(list(self._modules.items())[index]))
        return self._modules[self._name_at(index)]

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, self._name_at(index), module)

    def __delitem__(self, index: Any) -> None:
        if isinstance(index, slice):
            names = list(self._modules)[index]
        else:
            names = [self._name_at(index)]
        for name in names:
            delattr(self, name)
        self._renumber(self._modules.values())

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[AnyModule]:
        return iter(self._modules.values())

    def __add__(self, other: Sequential) -> Sequential:
        if not isinstance(other, Sequential):
            raise ValueError(
                "Sequential + other: other must be a Sequential, got " + type(other).__name__
            )
        return Sequential(*self, *other)

    def __iadd__(self, other: Sequential) -> Self:
        if not isinstance(other, Sequential):
            raise ValueError(
                "Sequential += other: other must be a Sequential, got " + type(other).__name__
            )
        return self.extend(other)

    def __mul__(self, times: int) -> Sequential:
        return Sequential(*(_times(times) * list(self)))

    def __rmul__(self, times: int) -> Sequential:
        return self * times

    def __imul__(self, times: int) -> Self:
        return self.extend((_times(times) - 1) * list(self))

    def pop(self, key: Any) -> Module:
        """Remove and return the module at `key`; the ones behind it move up."""
        module = self[key]
        del self[key]
        return module

    def append(self, module: Module) -> Self:
        """Add a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def insert(self, index: int, module: Module) -> Self:
        """Put a module before the one at `index`; those behind it move down.

        Raises:
            IndexError: `index` is not between -len and len.
        """
        if not isinstance(module, Module):
            raise AssertionError(
                f"Sequential.insert: module should be of type: {Module}, got "
                f"{type(module).__name__}"
            )
        length = len(self)
        if not -length <= index <= length:
            raise IndexError(f"Sequential.insert: Index out of range: {index}")
        modules: list[Module] = list(self)
        modules.insert(index, module)
        self._renumber(modules)
        return self

    def extend(self, sequential: Iterable[Module]) -> Self:
        """Add the modules of another Sequential, or of any iterable, at the end."""
        modules = list(sequential)
        with _unless_it_fails(self):
            for module in modules:
                self.append(module)
        return self


@contextlib.contextmanager
def _unless_it_fails(container: Module) -> Iterator[None]:
    """Take back the changes of submodules made within, if they end in an exception."""
    before = dict(container._modules)
    try:
        yield
    except BaseException:
        container._modules.clear()
        container._modules.update(before)
        raise


def _times(times: Any) -> int:
    if not isinstance(times, int):
        raise TypeError(f"Sequential * times: times must be an int, got {type(times).__name__}")
    if times <= 0:
        raise ValueError(f"Sequential * times: times must be positive, got {times}")
    return times


class ModuleList(Module):
    """A list of modules, all of them registered.

    Args:
        modules: the first modules.

    >>> layers = taeda.nn.ModuleList([taeda.nn.Linear(2, 2) for _ in range(3)])
    >>> layers
    ModuleList(
      (0-2): 3 x Linear(in_features=2, out_features=2, bias=True)
    )
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self += modules

    def _renumber(self, modules: Iterable[Module]) -> None:
        modules = list(modules)
        self._modules.clear()
        for position, module in enumerate(modules):
            self._modules[str(position)] = module

    @overload
    def __getitem__(self, index: int) -> AnyModule: ...
    @overload
    def __getitem__(self, index: slice) -> Self: ...
    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self._modules.values())[index])
        return self._modules[str(_position(index, len(self)))]

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, str(_position(index, len(self))), module)

    def __delitem__(self, index: Any) -> None:
        modules: list[Module] = list(self)
        del modules[index if isinstance(index, slice) else _position(index, len(modules))]
        self._renumber(modules)

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[AnyModule]:
        return iter(self._modules.values())

    def __iadd__(self, modules: Iterable[Module]) -> Self:
        return self.extend(modules)

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList(chain(self, other))

    def __repr__(self) -> str:
        texts = [repr(module) for module in self]
        if not texts:
            return f"{self._get_name()}()"
        runs: list[list[int]] = []  # first and last position of equal neighbours
        for position, text in enumerate(texts):
            if runs and texts[runs[-1][0]] == text:
                runs[-1][1] = position
            else:
                runs.append([position, position])
        lines = []
        for first, last in runs:
            text = texts[first]
            if last > first:
                text = f"({first}-{last}): {last - first + 1} x {text}"
            else:
                text = f"({first}): {text}"
            lines.append(text.replace("\n", "\n  "))
        return f"{self._get_name()}(\n  " + "\n  ".join(lines) + "\n)"

    def insert(self, index: int, module: Module) -> None:
        """Put a module before the one at `index`."""
        modules: list[Module] = list(self)
        modules.insert(index, module)
        self._renumber(modules)

    def append(self, module: Module) -> Self:
        """Add a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def pop(self, key: Any) -> Module:
        """Remove and return the module at `key`."""
        module = self[key]
        del self[key]
        return module

    def extend(self, modules: Iterable[Module]) -> Self:
        """Add modules at the end.

        Raises:
            TypeError: `modules` is not iterable.
        """
        if not isinstance(modules, Iterable):
            raise TypeError(
                "ModuleList.extend should be called with an iterable, but got "
                + type(modules).__name__
            )
        modules = list(modules)
        with _unless_it_fails(self):
            for module in modules:
                self.append(module)
        return self


class ModuleDict(Module):
    """A dictionary of modules, all of them registered, in the order in which they were added.

    Args:
        modules: names to modules, or pairs of them.

    >>> heads = taeda.nn.ModuleDict({"a": taeda.nn.Linear(2, 1), "b": taeda.nn.Linear(2, 3)})
    >>> sorted(heads)
    ['a', 'b']
    """

    def __init__(self, modules: Mapping[str, Module] | Iterable[Any] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> AnyModule:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: object) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Remove all modules."""
        self._modules.clear()

    def pop(self, key: str) -> Module:
        """Remove and return the module called `key`."""
        return self._modules.pop(key)

    def keys(self) -> Any:
        """The names."""
        return self._modules.keys()

    def items(self) -> Any:
        """The (name, module) pairs."""
        return self._modules.items()

    def values(self) -> Any:
        """The modules."""
        return self._modules.values()

    def update(self, modules: Mapping[str, Module] | Iterable[Any]) -> None:
        """Add modules, or replace those of the same names.

        Args:
            modules: a mapping, a ModuleDict, or an iterable of (name, module) pairs.

        Raises:
            TypeError: `modules` is not iterable, or one of its elements is no pair.
            ValueError: one of its elements has another length than 2.
        """
        pairs = list(_pairs(modules, "ModuleDict"))
        with _unless_it_fails(self):
            for key, module in pairs:
                self[key] = module
