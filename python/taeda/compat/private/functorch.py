"""Stands for ``torch._functorch``: its ``vmap`` is a module, not the function."""

from __future__ import annotations

__all__: list[str] = []
