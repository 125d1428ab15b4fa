"""Stands for ``torch._dynamo.eval_frame``."""

from __future__ import annotations

from typing import Any

from taeda.nn import Module

__all__ = ["OptimizedModule"]


class OptimizedModule(Module):
    """What PyTorch's ``compile`` makes of a module. There are none: taeda's returns the module."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise TypeError("OptimizedModule: compile returns modules as they are; there are none")
