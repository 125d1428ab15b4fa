"""Memory formats of convolutions' weights."""

from __future__ import annotations

from typing import Any

from taeda.nn.module import Module
from taeda.nn.modules.conv import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]


def _convert(module: Module, kinds: tuple[type, ...], memory_format: Any) -> Module:
    for layer in module.modules():
        if isinstance(layer, kinds):
            found: Any = layer
            weight = found.weight
            weight.data = weight.detach().clone().contiguous(memory_format=memory_format)
    return module


def convert_conv2d_weight_memory_format(module: Module, memory_format: Any) -> Module:
    """Convert the memory format of all 2-dimensional convolutions' weights; return the module.

    Args:
        module: the module.
        memory_format: `taeda.channels_last` or `taeda.contiguous_format`.
    """
    return _convert(module, (Conv2d, ConvTranspose2d), memory_format)


def convert_conv3d_weight_memory_format(module: Module, memory_format: Any) -> Module:
    """Convert the memory format of all 3-dimensional convolutions' weights; return the module.

    Args:
        module: the module.
        memory_format: `taeda.channels_last_3d` or `taeda.contiguous_format`.
    """
    return _convert(module, (Conv3d, ConvTranspose3d), memory_format)
