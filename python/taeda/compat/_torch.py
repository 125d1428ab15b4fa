"""The modules that ``import torch`` finds, and their finder."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from functools import lru_cache
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from .private import MODULES as PRIVATE

if TYPE_CHECKING:
    from collections.abc import Sequence

# Attributes that the import machinery sets on a module.
_MACHINERY = frozenset(
    ["__cached__", "__file__", "__loader__", "__name__", "__package__", "__path__", "__spec__"]
)
_LACKING = "taeda lacks it: see docs/names.md"
_IMITATED = "2.13.0"
ROOTS = ("torch", "functorch")  # the packages that PyTorch brings and that are stood in for
# Private modules of PyTorch that packages import, and that taeda has with the same meaning.
_SHARED = frozenset(["torch.utils._pytree"])


class TorchVersion(str):
    """A version that compares by its numbers with texts and tuples of numbers."""

    def _compare(self, other: Any) -> int | None:
        if not isinstance(other, (str, tuple)):
            return None
        mine, theirs = _numbers(self), _numbers(other)
        return (mine > theirs) - (mine < theirs)

    def __lt__(self, other: Any) -> Any:
        order = self._compare(other)
        return NotImplemented if order is None else order < 0

    def __le__(self, other: Any) -> Any:
        order = self._compare(other)
        return NotImplemented if order is None else order <= 0

    def __gt__(self, other: Any) -> Any:
        order = self._compare(other)
        return NotImplemented if order is None else order > 0

    def __ge__(self, other: Any) -> Any:
        order = self._compare(other)
        return NotImplemented if order is None else order >= 0

    def __eq__(self, other: object) -> Any:
        order = self._compare(other)
        return NotImplemented if order is None else order == 0

    __hash__ = str.__hash__


def _numbers(version: Any) -> list[int]:
    """The numbers of a version, without those at its end that say nothing."""
    parts = version if isinstance(version, tuple) else version.partition("+")[0].split(".")
    numbers = []
    for part in parts:
        digits = str(part)[: len(str(part)) - len(str(part).lstrip("0123456789"))]
        numbers.append(int(digits or 0))
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return numbers


@lru_cache(maxsize=1)
def _missing() -> frozenset[str]:
    """The modules and names that PyTorch documents and taeda lacks."""
    found: set[str] = set()
    for line in Path(__file__).with_name("missing.txt").read_text(encoding="utf-8").splitlines():
        module, _, names = line.partition(": ")
        found.add(module)
        found.update(f"{module}.{name}" for name in names.split())
    return frozenset(found)


@lru_cache(maxsize=1024)
def _why(parent: str, name: str) -> str:
    """What an error says of a name that is not in a module: that taeda lacks it, or a similar one.

    Kept, because packages ask again and again whether a name exists.
    """
    import difflib

    if name.startswith("_"):
        return "; what is private to PyTorch is not here: see docs/differences.md"
    if f"{parent}.{name}" in _missing():
        return f"; {_LACKING}"
    target = sys.modules.get(parent)
    near = difflib.get_close_matches(name, dir(target), 1, 0.75) if target is not None else []
    return f". Did you mean: {near[0]!r}?" if near else ""


class StandIn(ModuleType):
    """A module under ``torch`` whose attributes are those of one under ``taeda``.

    Its functions and classes are in its own ``__dict__``, where some packages look for them, and
    where looking them up costs nothing.
    """

    def __init__(self, name: str, target: ModuleType) -> None:
        super().__init__(name, target.__doc__)
        ModuleType.__setattr__(self, "_target", target)
        for key, value in vars(target).items():
            if callable(value) and not key.startswith("__"):
                self.__dict__[key] = value
        if name == "torch":
            from taeda import __version__

            version = TorchVersion(f"{_IMITATED}+taeda.{__version__}")
            ModuleType.__setattr__(self, "__version__", version)

    def __getattr__(self, name: str) -> Any:
        target: ModuleType = self.__dict__["_target"]
        own = self.__dict__["__name__"]
        if f"{own}.{name}" in PRIVATE:
            return importlib.import_module(f"{own}.{name}")
        if own == name == "torch":
            return self  # PyTorch's module is also an attribute of itself
        try:
            value = getattr(target, name)
        except AttributeError:
            path = f"{own}.{name}"
            if not name.startswith("__") and _is_offered(path) and _exists(_place(path)):
                return importlib.import_module(path)  # as most of PyTorch's are from the start
            # Given an object, Python adds no suggestion of its own.
            raise AttributeError(
                f"module {own!r} has no attribute {name!r}{_why(own, name)}", name=name, obj=None
            ) from None
        if isinstance(value, ModuleType) and value.__name__.partition(".")[0] == "taeda":
            path = "torch" + value.__name__[len("taeda") :]
            return importlib.import_module(path) if _is_offered(path) else value
        if callable(value):
            ModuleType.__setattr__(self, name, value)
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        if is_stand_in(value) and callable(getattr(self.__dict__["_target"], name, None)):
            return  # a module was imported; the function of its name stays, as in PyTorch
        if name in _MACHINERY or is_stand_in(value):
            super().__setattr__(name, value)
            return
        self.__dict__.pop(name, None)
        setattr(self.__dict__["_target"], name, value)

    def __delattr__(self, name: str) -> None:
        if name in _MACHINERY or is_stand_in(self.__dict__.get(name)):
            super().__delattr__(name)
            return
        self.__dict__.pop(name, None)
        delattr(self.__dict__["_target"], name)

    def __dir__(self) -> list[str]:
        return dir(self.__dict__["_target"])


def is_stand_in(module: object) -> bool:
    """Whether a module is one of the stand-ins for PyTorch's."""
    return isinstance(module, StandIn)


def _is_offered(path: str) -> bool:
    """Whether a module is public, or private to PyTorch but in use all over."""
    if path in _SHARED or path in PRIVATE:
        return True
    return not any(part.startswith("_") for part in path.split("."))


class _Loader(Loader):
    def __init__(self, target: str) -> None:
        self._target = target

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The stand-in for the module that ``spec`` names."""
        return StandIn(spec.name, importlib.import_module(self._target))

    def exec_module(self, module: ModuleType) -> None:
        """Nothing to do: the module that it replaces has been imported."""


class Finder(MetaPathFinder):
    """Finds ``torch`` and all under it as what taeda has under the same names."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of a module under ``torch``; None for all others.

        Raises:
            ModuleNotFoundError: taeda has no such module.
        """
        if fullname.partition(".")[0] not in ROOTS:
            return None
        name = _place(fullname)
        if not _is_offered(fullname) or not _exists(name):
            # This error type is also raised for `from torch import this`.
            parent, _, last = fullname.rpartition(".")
            text = f"No module or name {fullname!r}{_why(parent, last)}"
            raise ModuleNotFoundError(text, name=name)
        spec = ModuleSpec(fullname, _Loader(name), origin="taeda", is_package=True)
        spec.submodule_search_locations = []
        return spec


def _place(fullname: str) -> str:
    """The module that stands for one under ``torch``, if there is one."""
    root, _, rest = fullname.partition(".")
    under = "taeda" if root == "torch" else f"taeda.compat.{root}"
    return PRIVATE.get(fullname) or (f"{under}.{rest}" if rest else under)


def _exists(name: str) -> bool:
    if name in sys.modules:
        return True
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False
