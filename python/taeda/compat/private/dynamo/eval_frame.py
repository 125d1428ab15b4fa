"""Stands for ``torch._dynamo.eval_frame``."""

from __future__ import annotations

from typing import Any

from taeda.nn import Module

__all__ = ["OptimizedModule"]


class OptimizedModule(Module):
    """PyTorch's type of compiled modules. No instances: taeda's ``compile`` returns the module."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise TypeError("OptimizedModule: compile returns modules as they are; there are none")
