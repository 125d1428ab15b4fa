"""Stands for ``torch.utils._python_dispatch``: modes, and whether a tensor is made of others."""

from __future__ import annotations

from taeda import Tensor
from taeda.utils._python_dispatch import TorchDispatchMode

__all__ = ["TorchDispatchMode", "is_traceable_wrapper_subclass"]


def is_traceable_wrapper_subclass(t: object) -> bool:
    """Whether a tensor's class tells how to take it apart into tensors and make it again."""
    both = hasattr(t, "__tensor_flatten__") and hasattr(t, "__tensor_unflatten__")
    return isinstance(t, Tensor) and type(t) is not Tensor and both
