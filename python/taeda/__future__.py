"""Switches for how modules replace their parameters when they are moved, cast or loaded.

>>> import taeda
>>> taeda.__future__.get_swap_module_params_on_conversion()
False
"""

from __future__ import annotations

__all__ = [
    "get_overwrite_module_params_on_conversion",
    "get_swap_module_params_on_conversion",
    "set_overwrite_module_params_on_conversion",
    "set_swap_module_params_on_conversion",
]

_overwrite = False
_swap = False


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Let ``Module.to`` and its like make new parameters, where they else change those there are.

    Args:
        value: True for new parameters, which optimizers do not know of. Initially False.
    """
    global _overwrite
    _overwrite = value


def get_overwrite_module_params_on_conversion() -> bool:
    """Whether ``Module.to`` and its like make new parameters."""
    return _overwrite


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Let modules exchange parameters with ``utils.swap_tensors``, as suits subclasses of Tensor.

    Args:
        value: True to do so in ``Module.to`` and its like, and in ``load_state_dict``, which asks
            ``Tensor.module_load`` for what to exchange with. It goes before the other switch.
            Initially False.
    """
    global _swap
    _swap = value


def get_swap_module_params_on_conversion() -> bool:
    """Whether modules exchange parameters with ``utils.swap_tensors``."""
    return _swap
