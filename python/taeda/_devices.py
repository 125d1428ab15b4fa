"""The modules that devices have."""

from __future__ import annotations

import os
from types import ModuleType
from typing import Any

import taeda
from taeda import _C

__all__ = ["get_device_module", "register_device", "set_fallback"]


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


def register_device(name: str, library: str | os.PathLike[str]) -> None:
    """Add a kind of device that a shared library implements.

    The library exports the C function ``taeda_device`` (``csrc/kernels/device_plugin.h``): the
    device's memory, its queue, and tables of kernels. An operation without a kernel there raises
    NotImplementedError, unless `set_fallback` lets it run on the CPU.

    Args:
        name: what the devices are called, as in ``taeda.device("name:0")``: lower-case letters,
            digits and ``_``.
        library: the file's path. It stays loaded until the process ends.

    Raises:
        TypeError: the name is no string, or the library no path.
        ValueError: another kind of device has this name, or it has other characters.
        RuntimeError: the library cannot be loaded or was made for another version, or a device is
            registered already: there is room for one kind.

    >>> taeda.register_device("mine", "/no/such/library.so")
    Traceback (most recent call last):
    RuntimeError: register_device(): /no/such/library.so: cannot open shared object file: ...
    """
    if not isinstance(name, str):
        raise TypeError(f"register_device: name must be str, got {type(name).__name__}")
    _C._register_device(name, os.fspath(library))


def set_fallback(device: str | taeda.device | None) -> None:
    """Where operations run that a registered device has no kernel for.

    Args:
        device: ``"cpu"``: on the CPU, with copies there and back and one warning for each
            operation; None, the start: nowhere, they raise NotImplementedError.

    Raises:
        ValueError: another device.

    >>> taeda.set_fallback("cpu")
    >>> taeda.set_fallback(None)
    """
    if device is not None and taeda.device(device).type != "cpu":
        raise ValueError(f"set_fallback: expected 'cpu' or None, got {device!r}")
    _C._set_fallback_to_cpu(device is not None)
