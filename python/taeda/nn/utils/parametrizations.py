"""Ready-made parametrizations of weights."""

from __future__ import annotations

import functools
from typing import Any

import taeda
from taeda._C import Tensor
from taeda.nn import functional as F
from taeda.nn.module import Module
from taeda.nn.modules.conv import _ConvTransposeNd
from taeda.nn.utils import parametrize

__all__ = ["spectral_norm", "weight_norm"]


def norm_except_dim(weight: Tensor, dim: int) -> Tensor:
    """The norms of the slices of a weight along one dimension, kept; of all of it for dim -1."""
    if dim == -1:
        return weight.norm()
    others = [d for d in range(weight.dim()) if d != dim % weight.dim()]
    return weight.norm(2, others, keepdim=True) if others else weight.abs()


class _WeightNorm(Module):
    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return weight_v * (weight_g / norm_except_dim(weight_v, self.dim))

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return norm_except_dim(weight, self.dim), weight.detach().clone()


def _rename_old_keys(name: str, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
    """Before loading: take what the hook of `nn.utils.weight_norm` had saved."""
    old = [f"{prefix}{name}_g", f"{prefix}{name}_v"]
    if all(key in state_dict for key in old):
        for i, key in enumerate(old):
            state_dict[f"{prefix}parametrizations.{name}.original{i}"] = state_dict.pop(key)


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Separate a weight into its norms and its directions (Salimans and Kingma, 2016).

    Args:
        module: the module that has the weight.
        name: the weight's name.
        dim: the dimension with a norm for each index; None for one norm of all.

    Returns:
        `module`, with the norms as `parametrizations.weight.original0` and the directions as
        `original1`. State that the older `nn.utils.weight_norm` saved can be loaded.

    >>> layer = taeda.nn.utils.parametrizations.weight_norm(taeda.nn.Linear(20, 40))
    >>> tuple(layer.parametrizations.weight.original0.shape)
    (40, 1)
    """
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)
    module._register_load_state_dict_pre_hook(functools.partial(_rename_old_keys, name))
    return module


class _SpectralNorm(Module):
    def __init__(
        self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12
    ) -> None:
        super().__init__()
        rank = weight.dim()
        if not -rank <= dim < rank:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [-{rank}, {rank - 1}] but got "
                f"{dim})"
            )
        if n_power_iterations <= 0:
            raise ValueError(
                "Expected n_power_iterations to be positive, but got "
                f"n_power_iterations={n_power_iterations}"
            )
        self.dim = dim if dim >= 0 else dim + rank
        self.eps = eps
        if rank > 1:
            self.n_power_iterations = n_power_iterations
            matrix = self._as_matrix(weight)
            height, width = matrix.shape
            u = matrix.new_empty(height).normal_(0, 1)
            v = matrix.new_empty(width).normal_(0, 1)
            self.register_buffer("_u", F.normalize(u, dim=0, eps=eps))
            self.register_buffer("_v", F.normalize(v, dim=0, eps=eps))
            self._power_method(matrix, 15)

    def _as_matrix(self, weight: Tensor) -> Tensor:
        if self.dim:
            weight = weight.movedim(self.dim, 0)
        return weight.flatten(1)

    def _power_method(self, matrix: Tensor, count: int) -> None:
        """Bring `_u` and `_v` nearer to the first singular vectors, in place."""
        with taeda.no_grad():
            for _ in range(count):
                self._u.copy_(F.normalize(matrix.mv(self._v), dim=0, eps=self.eps))
                self._v.copy_(F.normalize(matrix.t().mv(self._u), dim=0, eps=self.eps))

    def forward(self, weight: Tensor) -> Tensor:
        if weight.dim() == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = self._as_matrix(weight)
        if self.training:
            self._power_method(matrix.detach(), self.n_power_iterations)
        # Copies, because the next forward changes them before this one's backward may have run.
        u, v = self._u.clone(), self._v.clone()
        return weight / u.dot(matrix.mv(v))

    def right_inverse(self, value: Tensor) -> Tensor:
        return value


def default_spectral_dim(module: Module) -> int:
    """The dimension of a weight that its outputs are along."""
    return 1 if isinstance(module, _ConvTransposeNd) else 0


def spectral_norm(
    module: Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Module:
    """Divide a weight by its largest singular value (Miyato et al., 2018).

    The value is estimated by power iteration, `n_power_iterations` steps each time the weight is
    read in training mode.

    Args:
        module: the module that has the weight.
        name: the weight's name.
        n_power_iterations: the steps; at least 1.
        eps: the least norm that is divided by.
        dim: the dimension of the outputs, by default 1 for transposed convolutions, else 0. The
            others are taken as one.

    Returns:
        `module`.

    Raises:
        ValueError: there is no such weight, or `n_power_iterations` is not positive.
        IndexError: the weight has no dimension `dim`.

    >>> layer = taeda.nn.utils.parametrizations.spectral_norm(taeda.nn.Linear(2, 2))
    >>> list(layer.state_dict())[1:]
    ['parametrizations.weight.original', 'parametrizations.weight.0._u', 'parametrizations.weight.0._v']
    """  # noqa: E501
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    dim = default_spectral_dim(module) if dim is None else dim
    made = _SpectralNorm(weight, n_power_iterations, dim, eps)
    return parametrize.register_parametrization(module, name, made)
