"""The part of Module that finds what it holds: by path, and one after another."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from taeda._C import Tensor
from taeda.nn.parameter import Parameter

if TYPE_CHECKING:
    from taeda.nn.module import Module

_MISSING = object()


class Finding:
    """Submodules, parameters and buffers: by path, and all of them. Every module is one."""

    _parameters: Any
    _buffers: Any
    _modules: Any

    # Look-up by path ----------------------------------------------------------------------------

    def get_submodule(self, target: str) -> Module:
        """Return the submodule at a path such as `"encoder.layers.2"`; `""` is the module itself.

        Raises:
            AttributeError: there is nothing at the path, or it is not a Module.
        """
        module: Any = self
        for name in target.split(".") if target else ():
            found = getattr(module, name, _MISSING)
            if found is _MISSING:
                raise AttributeError(
                    f"{type(self).__name__}.get_submodule({target!r}): {type(module).__name__} has "
                    f"no attribute `{name}`"
                )
            if not isinstance(found, Finding):
                raise AttributeError(
                    f"{type(self).__name__}.get_submodule({target!r}): `{name}` is not an nn.Module"
                )
            module = found
        return module

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Put a module at a path, in place of what is there.

        Args:
            target: the path; all but its last name must exist.
            module: the Module to put there.
            strict: the last name must exist too.

        Raises:
            ValueError: the path is empty, or `module` is not a Module.
            AttributeError: part of the path is missing, or is not a Module.
        """
        if not target:
            raise ValueError(
                f"{type(self).__name__}.set_submodule: Cannot set the submodule without a target "
                "name!"
            )
        if not isinstance(module, Finding):
            raise ValueError(
                f"{type(self).__name__}.set_submodule: `module` is not an nn.Module, found "
                f"{type(module)}"
            )
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict and not hasattr(parent, name):
            raise AttributeError(
                f"{type(self).__name__}.set_submodule({target!r}): {type(parent).__name__} has no "
                f"attribute `{name}`"
            )
        if not isinstance(getattr(parent, name, module), Finding):
            raise AttributeError(
                f"{type(self).__name__}.set_submodule({target!r}): `{name}` is not an nn.Module"
            )
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """Return the parameter at a path such as `"encoder.weight"`.

        Raises:
            AttributeError: there is nothing at the path, or it is not a Parameter.
        """
        _, name, value = self._find(target)
        if not isinstance(value, Parameter):
            raise AttributeError(
                f"{type(self).__name__}.get_parameter({target!r}): `{name}` is not an nn.Parameter"
            )
        return value

    def get_buffer(self, target: str) -> Tensor:
        """Return the buffer at a path such as `"norm.running_mean"`.

        Raises:
            AttributeError: there is nothing at the path, or it is not a buffer.
        """
        owner, name, value = self._find(target)
        if name not in owner._buffers:
            raise AttributeError(
                f"{type(self).__name__}.get_buffer({target!r}): `{name}` is not a buffer"
            )
        return value

    def _find(self, target: str) -> tuple[Module, str, Any]:
        path, _, name = target.rpartition(".")
        owner = self.get_submodule(path)
        value = getattr(owner, name, _MISSING)
        if value is _MISSING:
            raise AttributeError(
                f"{type(self).__name__}: at {target!r}: {type(owner).__name__} has no attribute "
                f"`{name}`"
            )
        return owner, name, value

    # Iteration ----------------------------------------------------------------------------------

    def _named_members(
        self,
        get_members_fn: Callable[[Module], Any],
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        seen = set()
        if recurse:
            modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
        else:
            this: Any = self
            modules = iter([(prefix, this)])
        for path, module in modules:
            for name, value in get_members_fn(module):
                if value is None or id(value) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(value))
                yield f"{path}.{name}" if path else name, value

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Iterate over the parameters, each once; with `recurse`, over those of submodules too."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Iterate over (path, parameter).

        Args:
            prefix: put before each path, with a dot.
            recurse: include those of submodules.
            remove_duplicate: give a shared parameter only once, under its first path.
        """
        return self._named_members(
            lambda module: module._parameters.items(), prefix, recurse, remove_duplicate
        )

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Iterate over the buffers, each once; with `recurse`, over those of submodules too."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Iterate over (path, buffer); the arguments are those of `named_parameters`."""
        return self._named_members(
            lambda module: module._buffers.items(), prefix, recurse, remove_duplicate
        )

    def children(self) -> Iterator[Module]:
        """Iterate over the direct submodules, each once."""
        for _, module in self.named_children():
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Iterate over (name, module) of the direct submodules, each once."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and id(module) not in seen:
                seen.add(id(module))
                yield name, module

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """Iterate over this module and all below it, each once unless told otherwise."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_modules(
        self, memo: Any = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """Iterate over (path, module), from this module, whose path is `prefix`, downwards.

        Args:
            memo: a set of modules to leave out, to which those given are added.
            prefix: put before each path, with a dot.
            remove_duplicate: give a shared module only once, under its first path.

        >>> model = taeda.nn.Sequential(taeda.nn.Identity(), taeda.nn.Identity())
        >>> [path for path, _ in model.named_modules()]
        ['', '0', '1']
        """
        memo = _IdentitySet() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        this: Any = self
        yield prefix, this
        for name, module in self._modules.items():
            if module is not None:
                path = f"{prefix}.{name}" if prefix else name
                yield from module.named_modules(memo, path, remove_duplicate)


class _IdentitySet:
    """A set of objects that need not be hashable: a dataclass module is not."""

    def __init__(self) -> None:
        self._objects: dict[int, Any] = {}

    def add(self, item: Any) -> None:
        self._objects[id(item)] = item

    def __contains__(self, item: Any) -> bool:
        return id(item) in self._objects

    def __iter__(self) -> Iterator[Any]:
        return itertools.chain(self._objects.values())

    def __len__(self) -> int:
        return len(self._objects)
