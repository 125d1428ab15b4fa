"""Stands for ``torch.ops``: the operations by namespace, and the loading of libraries of them."""

from __future__ import annotations

import os
from typing import Any

from taeda import ops

from ..torchvision import offers, register

__all__ = ["load_library"]


def load_library(path: str | os.PathLike[str]) -> None:
    """Load a C++ extension of taeda's; for torchvision's own library, define its operations.

    Raises:
        OSError: it is neither.
    """
    path = os.path.realpath(os.fspath(path))
    if offers(path):
        register()
        return
    ops.load_library(path)


def __getattr__(name: str) -> Any:
    return getattr(ops, name)
