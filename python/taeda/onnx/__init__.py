"""What code says to an exporter to ONNX. taeda has none: ``export`` is missing.

Functions that would write operations of other packages are kept, as they are registered on import.

>>> import taeda
>>> taeda.onnx.is_in_onnx_export()
False
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from . import symbolic_helper

__all__ = [
    "is_in_onnx_export",
    "register_custom_op_symbolic",
    "symbolic_helper",
    "unregister_custom_op_symbolic",
]

_symbolics: dict[tuple[str, int], Callable[..., Any]] = {}


def is_in_onnx_export() -> bool:
    """Whether a model is being exported: never."""
    return False


def _check_name(what: str, name: str) -> None:
    if not re.fullmatch(r"[a-zA-Z0-9_]+::[a-zA-Z_]+\w*", name):
        raise ValueError(f"{what}: expected a name like 'domain::op', got {name!r}")


def register_custom_op_symbolic(
    symbolic_name: str, symbolic_fn: Callable[..., Any], opset_version: int
) -> None:
    """Say how an operation is written in ONNX.

    Args:
        symbolic_name: the operation's name, "domain::op".
        symbolic_fn: what would write it.
        opset_version: the version of ONNX's operations that it writes.

    Raises:
        ValueError: the name is no such name.
    """
    _check_name("register_custom_op_symbolic", symbolic_name)
    _symbolics[symbolic_name, opset_version] = symbolic_fn


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None:
    """Take back what ``register_custom_op_symbolic`` was told; nothing, if it was not.

    Raises:
        ValueError: the name is no such name.
    """
    _check_name("unregister_custom_op_symbolic", symbolic_name)
    _symbolics.pop((symbolic_name, opset_version), None)
