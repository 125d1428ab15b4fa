"""Stands for ``torch.utils._python_dispatch``: modes, and helpers of classes of tensors."""

from __future__ import annotations

from taeda.utils._python_dispatch import (
    TorchDispatchMode,
    is_traceable_wrapper_subclass,
    return_and_correct_aliasing,
)

__all__ = ["TorchDispatchMode", "is_traceable_wrapper_subclass", "return_and_correct_aliasing"]
