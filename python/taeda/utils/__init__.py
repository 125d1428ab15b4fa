"""Utilities: datasets in ``utils.data``, hooks in ``utils.hooks``, and more."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any


def __getattr__(name: str) -> Any:
    if name in ("set_module", "swap_tensors"):
        from . import _swapping

        return getattr(_swapping, name)
    # Submodules are imported when they are first used.
    full = f"taeda.utils.{name}"
    if (name == "_pytree" or not name.startswith("_")) and importlib.util.find_spec(
        full
    ) is not None:
        return importlib.import_module(full)
    raise AttributeError(f"module 'taeda.utils' has no attribute {name!r}")
