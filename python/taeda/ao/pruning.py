"""Modules and tensors by their paths, as those say who make weights sparse."""

from __future__ import annotations

from typing import Any

from taeda.nn import Module

__all__ = ["fqn_to_module", "get_arg_info_from_tensor_fqn", "module_to_fqn"]


def fqn_to_module(model: Module | None, path: str) -> Module | None:
    """The module at a path such as ``"encoder.0"``; None where there is none."""
    current: Any = model
    for name in path.split(".") if path else []:
        current = getattr(current, name, None)
    return current if isinstance(current, Module) else None


def module_to_fqn(model: Module, module: Module, prefix: str = "") -> str | None:
    """The path of a module in a model; None where it is not in it."""
    found = next((name for name, each in model.named_modules() if each is module), None)
    return found if found is None or not prefix else f"{prefix}.{found}".rstrip(".")


def get_arg_info_from_tensor_fqn(model: Module, tensor_fqn: str) -> dict[str, Any]:
    """The module that a parameter's path leads to, the parameter's name, and both paths.

    >>> import taeda
    >>> model = taeda.nn.Sequential(taeda.nn.Linear(1, 1))
    >>> info = taeda.ao.pruning.get_arg_info_from_tensor_fqn(model, "0.weight")
    >>> info["module"] is model[0], info["module_fqn"], info["tensor_name"]
    (True, '0', 'weight')
    """
    path, _, name = tensor_fqn.rpartition(".")
    return {
        "module_fqn": path,
        "module": fqn_to_module(model, path),
        "tensor_name": name,
        "tensor_fqn": tensor_fqn,
    }
