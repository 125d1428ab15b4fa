"""Modules without values, and modules that are initialised anew."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import taeda
from taeda._C import Tensor
from taeda.functional._parameters import Parameters
from taeda.nn import Module
from taeda.nn.parameter import is_lazy

__all__ = ["initialised", "with_memory", "with_tensors", "without_values"]


def without_values(module: Module) -> Module:
    """A copy of a module whose parameters and buffers have shapes, but no memory."""
    for name, parameter in module.named_parameters():
        if is_lazy(parameter):
            raise ValueError(
                f"factory: the shape of {name!r} is not known yet; run the network once on an "
                "input, or make its layers with their sizes"
            )
    return _on(module, "meta")


def with_memory(module: Module) -> Module:
    """A copy of a module whose parameters and buffers have memory, but no values yet."""
    return _on(module, taeda.get_default_device())


def with_tensors(module: Module, tensors: Mapping[str, Tensor]) -> Module:
    """A copy of a module with these tensors as its parameters and buffers."""
    memo: dict[int, Any] = {id(p): tensors[name] for name, p in module.named_parameters()}
    memo.update({id(b): tensors[name] for name, b in module.named_buffers()})
    return copy.deepcopy(module, memo)


def _on(module: Module, device: str | taeda.device) -> Module:
    memo: dict[int, Any] = {}
    for parameter in module.parameters():
        empty = taeda.empty_like(parameter, device=device)
        memo[id(parameter)] = taeda.nn.Parameter(empty, parameter.requires_grad)
    for buffer in module.buffers():
        memo[id(buffer)] = taeda.empty_like(buffer, device=device)
    # Results of operations, such as what weight_norm's hook computes, are not copied by deepcopy.
    for child in module.modules():
        for value in vars(child).values():
            if isinstance(value, taeda.Tensor) and not value.is_leaf:
                memo[id(value)] = value.detach().clone()
    return copy.deepcopy(module, memo)


def initialised(module: Module, buffers: Parameters) -> Module:
    """A copy of a module without values, with those of its layers' initialisation.

    Args:
        module: it.
        buffers: its buffers' values, for those that no layer resets.

    Raises:
        ValueError: no ``reset_parameters()`` sets a parameter.
    """
    made = with_memory(module)
    buffers.copy_to(made)
    with taeda.no_grad():
        for parameter in made.parameters():
            parameter.fill_(float("nan"))
    # A module is made after those that it contains, so it is reset after them.
    for owner in reversed(_outer_first(made, set())):
        reset = getattr(owner, "reset_parameters", None) or getattr(
            owner, "_reset_parameters", None
        )
        if callable(reset):
            reset()
    for name, parameter in made.named_parameters():
        if parameter.isnan().any():
            raise ValueError(
                f"factory.init: no layer's reset_parameters() initialises {name!r}; give factory() "
                "the class or function that makes the network, as in factory(Net, 10) or "
                "factory(lambda: Sequential(...)), or start from Parameters.of(network)"
            )
    return made


def _outer_first(module: Module, seen: set[int]) -> list[Module]:
    """A module and those in it, each once, in the reverse of the order in which they are made."""
    found = [module]
    seen.add(id(module))
    children = [child for child in module.children() if id(child) not in seen]
    for child in reversed(children):
        if id(child) not in seen:
            found += _outer_first(child, seen)
    return found
