"""Weight normalisation by a hook; `nn.utils.parametrizations.weight_norm` is the newer form."""

from __future__ import annotations

import warnings
from typing import Any

from taeda._C import Tensor
from taeda.nn.module import Module
from taeda.nn.parameter import Parameter
from taeda.nn.utils.parametrizations import norm_except_dim

__all__ = ["remove_weight_norm", "weight_norm"]


class WeightNorm:
    """The forward pre-hook that computes a weight from its norms `_g` and directions `_v`."""

    def __init__(self, name: str, dim: int) -> None:
        self.name = name
        self.dim = dim

    def compute_weight(self, module: Any) -> Tensor:
        """Compute the weight."""
        g, v = getattr(module, self.name + "_g"), getattr(module, self.name + "_v")
        return v * (g / norm_except_dim(v, self.dim))

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))


def _hook_of(module: Module, name: str) -> tuple[int, WeightNorm] | None:
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, WeightNorm) and hook.name == name:
            return key, hook
    return None


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Separate a weight into norms and directions (Salimans and Kingma, 2016); deprecated.

    Args:
        module: the module that has the weight.
        name: the weight's name. Parameters `name_g` and `name_v` take its place, and it is computed
            from them before each forward.
        dim: the dimension with a norm for each index; None for one norm of all.

    Returns:
        `module`.

    Raises:
        RuntimeError: the weight has this hook already.
    """
    warnings.warn(
        "nn.utils.weight_norm is deprecated in favor of nn.utils.parametrizations.weight_norm.",
        FutureWarning,
        stacklevel=2,
    )
    if _hook_of(module, name):
        raise RuntimeError(
            f"weight_norm: Cannot register two weight_norm hooks on the same parameter {name}"
        )
    hook = WeightNorm(name, -1 if dim is None else dim)
    weight = getattr(module, name)
    norms = norm_except_dim(weight.detach(), hook.dim)
    delattr(module, name)
    module.register_parameter(name + "_g", Parameter(norms))
    module.register_parameter(name + "_v", Parameter(weight.detach()))
    hook(module, ())
    module.register_forward_pre_hook(hook)
    return module


def remove_weight_norm(module: Module, name: str = "weight") -> Module:
    """Make a weight under `weight_norm` an ordinary parameter again, with the value it has.

    Raises:
        ValueError: it is not under `weight_norm`.
    """
    found = _hook_of(module, name)
    if found is None:
        raise ValueError(f"remove_weight_norm: weight_norm of '{name}' not found in {module}")
    key, hook = found
    weight = hook.compute_weight(module).detach()
    for attribute in (name, name + "_g", name + "_v"):
        delattr(module, attribute)
    setattr(module, name, Parameter(weight))
    del module._forward_pre_hooks[key]
    return module
