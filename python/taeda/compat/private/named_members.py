"""Stands for ``torch.nn.utils._named_member_accessor``: a module's tensors by their names."""

from __future__ import annotations

from typing import Any

from taeda import Tensor
from taeda.nn import Module

__all__ = ["swap_tensor"]

_MISSING: Any = object()


def swap_tensor(module: Module, name: str, tensor: Any, allow_missing: bool = False) -> Any:
    """Put a tensor, None or nothing in the place of a module's tensor, and return that.

    Args:
        module: the module itself: names have no dots.
        name: a parameter, a buffer or another attribute.
        tensor: takes the place as it is, so that a parameter's place may hold a plain tensor.
        allow_missing: whether the module may lack it; then what stands for nothing is returned,
            which takes the tensor out again.
    """
    if not isinstance(module, Module):
        raise TypeError(f"{module} is not an instance of torch.nn.Module")
    if not (tensor is _MISSING or tensor is None or isinstance(tensor, Tensor)):
        raise TypeError(f"{tensor} is not an instance of torch.Tensor")
    if "." in name:
        raise KeyError('tensor name can\'t contain "."')
    if not name:
        raise KeyError('tensor name can\'t be empty string ""')
    for held in (module._parameters, module._buffers):
        if name in held:
            before = held[name]
            if tensor is _MISSING:
                del held[name]
            else:
                held[name] = tensor
            return before
    before = getattr(module, name, _MISSING)
    if before is _MISSING and not allow_missing:
        raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
    if not (before is _MISSING or isinstance(before, Tensor)):
        raise TypeError(f"attribute `{name}`: {before} is not an instance of torch.Tensor")
    if tensor is not _MISSING:
        setattr(module, name, tensor)
    elif before is not _MISSING:
        delattr(module, name)
    return before
