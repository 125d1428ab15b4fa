"""The modules that devices have."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import taeda

__all__ = ["get_device_module"]


def get_device_module(device: Any = None) -> ModuleType:
    """The module of functions for a kind of device, such as ``taeda.cpu``.

    Args:
        device: a device or the text for one; None is the CPU, as there is no accelerator.

    Raises:
        RuntimeError: there is no such kind of device, or it has no module.

    >>> taeda.get_device_module("cpu") is taeda.cpu
    True
    """
    if device is not None and not isinstance(device, (str, taeda.device)):
        raise RuntimeError(
            f"get_device_module: expected a device, its name or None, got {device!r}"
        )
    kind = "cpu" if device is None else taeda.device(device).type
    module = getattr(taeda, kind, None)
    if not isinstance(module, ModuleType):
        raise RuntimeError(
            f"get_device_module: device '{kind}' has no module of functions of its own"
        )
    return module
