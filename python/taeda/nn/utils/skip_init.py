"""Modules without initial values."""

from __future__ import annotations

from typing import Any

from taeda.nn.module import Module

__all__ = ["skip_init"]


def skip_init(module_cls: type[Module], *args: Any, **kwargs: Any) -> Module:
    """Make a module whose parameters are not initialised, for those that will be loaded.

    Args:
        module_cls: a class whose constructor takes `device`.
        *args, **kwargs: what it is constructed with.

    Raises:
        RuntimeError: `module_cls` is no Module, or takes no `device`.
    """
    if not isinstance(module_cls, type) or not issubclass(module_cls, Module):
        raise RuntimeError(f"skip_init: expected a class of modules, got {module_cls}")
    import inspect

    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError(f"skip_init: {module_cls.__name__} must support a 'device' argument")
    final_device = kwargs.pop("device", None)
    module = module_cls(*args, device="meta", **kwargs)
    return module.to_empty(device="cpu" if final_device is None else final_device)
