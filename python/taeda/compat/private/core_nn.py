"""Stands for ``torch._C._nn``: how the arguments of ``to`` are read."""

from __future__ import annotations

from taeda.nn._module.converting import _parse_to

__all__ = ["_parse_to"]
