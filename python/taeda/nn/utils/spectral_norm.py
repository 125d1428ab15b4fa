"""Spectral normalisation by a hook; `nn.utils.parametrizations.spectral_norm` is the newer form."""

from __future__ import annotations

from typing import Any

import taeda
from taeda._C import Tensor
from taeda.nn import functional as F
from taeda.nn.module import Module
from taeda.nn.parameter import Parameter
from taeda.nn.utils.parametrizations import default_spectral_dim

__all__ = ["remove_spectral_norm", "spectral_norm"]


class SpectralNorm:
    """The forward pre-hook that divides a weight `_orig` by its estimated spectral norm."""

    _version = 1

    def __init__(self, name: str, n_power_iterations: int, dim: int, eps: float) -> None:
        if n_power_iterations <= 0:
            raise ValueError(
                "spectral_norm: Expected n_power_iterations to be positive, but got "
                f"n_power_iterations={n_power_iterations}"
            )
        self.name = name
        self.n_power_iterations = n_power_iterations
        self.dim = dim
        self.eps = eps

    def as_matrix(self, weight: Tensor) -> Tensor:
        """The weight with the outputs' dimension first and the others as one."""
        return (weight.movedim(self.dim, 0) if self.dim else weight).flatten(1)

    def compute_weight(self, module: Any, do_power_iteration: bool) -> Tensor:
        """Compute the weight, optionally after steps that improve the estimate."""
        weight = getattr(module, self.name + "_orig")
        u, v = getattr(module, self.name + "_u"), getattr(module, self.name + "_v")
        matrix = self.as_matrix(weight)
        if do_power_iteration:
            with taeda.no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(F.normalize(matrix.t().mv(u), dim=0, eps=self.eps))
                    u.copy_(F.normalize(matrix.mv(v), dim=0, eps=self.eps))
            # Copies, because the next forward changes them, maybe before this one's backward.
            u, v = u.clone(), v.clone()
        return weight / u.dot(matrix.mv(v))

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module, module.training))

    def note_version(self, module: Any, state: Any, prefix: str, local_metadata: Any) -> None:
        """After saving: say how the state is to be read."""
        versions = local_metadata.setdefault("spectral_norm", {})
        versions[self.name + ".version"] = self._version


def _hook_of(module: Module, name: str) -> tuple[int, SpectralNorm] | None:
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, SpectralNorm) and hook.name == name:
            return key, hook
    return None


def spectral_norm(
    module: Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Module:
    """Divide a weight by its largest singular value (Miyato et al., 2018).

    Args:
        module: the module that has the weight.
        name: the weight's name. A parameter `name_orig` takes its place, with buffers `name_u` and
            `name_v` for the estimate, and the weight is computed before each forward.
        n_power_iterations: the steps of power iteration for each forward in training mode.
        eps: the least norm that is divided by.
        dim: the dimension of the outputs, by default 1 for transposed convolutions, else 0.

    Returns:
        `module`.

    Raises:
        RuntimeError: the weight has this hook already.
        ValueError: `n_power_iterations` is not positive.
    """
    if _hook_of(module, name):
        raise RuntimeError(
            f"spectral_norm: Cannot register two spectral_norm hooks on the same parameter {name}"
        )
    dim = default_spectral_dim(module) if dim is None else dim
    hook = SpectralNorm(name, n_power_iterations, dim, eps)
    if name not in module._parameters:
        raise KeyError(f"spectral_norm: {type(module).__name__} has no parameter '{name}'")
    weight = module._parameters[name]
    if weight is None:
        raise ValueError(
            f"spectral_norm: `SpectralNorm` cannot be applied as parameter `{name}` is None"
        )
    matrix = hook.as_matrix(weight.detach())
    height, width = matrix.shape
    u = F.normalize(matrix.new_empty(height).normal_(0, 1), dim=0, eps=eps)
    v = F.normalize(matrix.new_empty(width).normal_(0, 1), dim=0, eps=eps)
    delattr(module, name)
    module.register_parameter(name + "_orig", weight)
    setattr(module, name, weight.detach())
    module.register_buffer(name + "_u", u)
    module.register_buffer(name + "_v", v)
    module.register_forward_pre_hook(hook)
    module.register_state_dict_post_hook(hook.note_version)
    return module


def remove_spectral_norm(module: Module, name: str = "weight") -> Module:
    """Make a weight under `spectral_norm` an ordinary parameter again, with the value it has.

    Raises:
        ValueError: it is not under `spectral_norm`.
    """
    found = _hook_of(module, name)
    if found is None:
        raise ValueError(f"remove_spectral_norm: spectral_norm of '{name}' not found in {module}")
    key, hook = found
    with taeda.no_grad():
        weight = hook.compute_weight(module, do_power_iteration=False)
    for attribute in (name, name + "_u", name + "_v", name + "_orig"):
        delattr(module, attribute)
    module.register_parameter(name, Parameter(weight))
    del module._forward_pre_hooks[key]
    for number, save_hook in list(module._state_dict_hooks.items()):
        if getattr(save_hook, "__self__", None) is hook:
            del module._state_dict_hooks[number]
    return module
