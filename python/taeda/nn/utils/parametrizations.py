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

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


def norm_except_dim(weight: Tensor, dim: int) -> Tensor:
    """The norms of the slices of a weight along one dimension, kept; of all of it for dim -1."""
    if dim == -1:
        return weight.norm()
    rank = weight.dim()
    if not -rank <= dim < rank:
        raise IndexError(
            f"weight_norm: Dimension out of range (expected to be in range of [{-rank}, "
            f"{rank - 1}], but got {dim})"
        )
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
    _u: Tensor
    _v: Tensor

    def __init__(
        self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12
    ) -> None:
        super().__init__()
        rank = weight.dim()
        if not -rank <= dim < rank:
            raise IndexError(
                f"spectral_norm: Dimension out of range (expected to be in range of [-{rank}, "
                f"{rank - 1}] but got {dim})"
            )
        if n_power_iterations <= 0:
            raise ValueError(
                "spectral_norm: Expected n_power_iterations to be positive, but got "
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
        raise ValueError(
            f"spectral_norm: Module '{module}' has no parameter or buffer with name '{name}'"
        )
    dim = default_spectral_dim(module) if dim is None else dim
    made = _SpectralNorm(weight, n_power_iterations, dim, eps)
    return parametrize.register_parametrization(module, name, made)


_MAPS = ("matrix_exp", "cayley", "householder")


def _with_positive_diagonal(matrix: Tensor) -> Tensor:
    """The Q of the QR decomposition of a tall matrix whose R has a positive diagonal."""
    packed, tau = taeda.geqrf(matrix)
    q = taeda.linalg.householder_product(packed, tau)
    return q * packed.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


class _Orthogonal(Module):
    """A free matrix to one with orthonormal columns, or rows, whichever there are fewer of.

    The map takes a tall matrix X. The matrix exponential and the Cayley transform take it as the
    lower triangle of a skew-symmetric one, the Householder map as the reflections below its
    diagonal, which holds signs. With a base, the result is the base times the map of X, and
    assigning a value makes it the base, with an X that is mapped to the identity.
    """

    base: Tensor

    def __init__(self, weight: Tensor, orthogonal_map: str, use_trivialization: bool) -> None:
        super().__init__()
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def _map(self, X: Tensor) -> Tensor:
        rows, columns = X.shape[-2:]
        if self.orthogonal_map == "householder":
            below = X.tril(-1)
            tau = 2.0 / (1.0 + (below * below.conj()).sum(-2))
            Q = taeda.linalg.householder_product(below, tau)
            return Q * X.diagonal(dim1=-2, dim2=-1).sign().unsqueeze(-2)
        lower = X.tril()
        if rows != columns:
            fill = lower.new_zeros((*lower.shape[:-2], rows, rows - columns))
            lower = taeda.cat([lower, fill], -1)
        skew = lower - lower.mH
        if self.orthogonal_map == "matrix_exp":
            Q = taeda.linalg.matrix_exp(skew)
        else:
            one = taeda.eye(rows, dtype=X.dtype, device=X.device)
            Q = taeda.linalg.solve(one - 0.5 * skew, one + 0.5 * skew)
        return Q[..., :columns]

    def forward(self, X: Tensor) -> Tensor:
        wide = X.size(-2) < X.size(-1)
        Q = self._map(X.mT if wide else X)
        if "base" in self._buffers:
            Q = self.base @ Q
        return Q.mT if wide else Q

    def right_inverse(self, Q: Tensor) -> Tensor:
        if Q.shape != self.shape:
            raise ValueError(
                f"orthogonal: Expected a matrix or batch of matrices of shape {self.shape}. Got a "
                f"tensor of shape {Q.shape}."
            )
        wide = Q.size(-2) < Q.size(-1)
        tall = Q.detach().mT if wide else Q.detach()
        if "base" in self._buffers:
            X = self._move_base(tall)
        elif self.orthogonal_map != "householder":
            raise NotImplementedError(
                "orthogonal: It is not possible to assign to the matrix exponential or the Cayley "
                "parametrizations when use_trivialization=False."
            )
        else:
            X, tau = taeda.geqrf(tall)
            signs = X.diagonal(dim1=-2, dim2=-1).sign()
            signs = taeda.where(tau == 0, -signs, signs)  # no reflection: minus one undoes that
            X.diagonal(dim1=-2, dim2=-1).copy_(signs)
        return X.mT if wide else X

    def _move_base(self, tall: Tensor) -> Tensor:
        """Make a matrix the base, completed to a square one; return what is mapped to identity."""
        rows, columns = tall.shape[-2:]
        square = tall
        if rows != columns:
            more = taeda.randn(*tall.shape[:-2], rows, rows - columns, dtype=tall.dtype)
            square = taeda.cat([tall, more.to(tall.device)], -1)
        if rows != columns or not _is_orthogonal(square):
            square = _with_positive_diagonal(square)
        self.base = square.clone()
        return _diagonal_like(tall, tall.new_full((*tall.shape[:-2], columns), -1.0))


def _diagonal_like(matrix: Tensor, values: Tensor) -> Tensor:
    """A matrix of zeros of some shape, with the given diagonal."""
    result = taeda.zeros_like(matrix)
    result.diagonal(dim1=-2, dim2=-1).copy_(values)
    return result


def _is_orthogonal(Q: Tensor) -> bool:
    one = taeda.eye(Q.size(-1), dtype=Q.dtype, device=Q.device)
    slack = 10.0 * Q.size(-2) * taeda.finfo(Q.dtype).eps
    return bool(taeda.allclose(Q.mH @ Q, one.expand_as(Q), atol=slack))


def orthogonal(
    module: Module,
    name: str = "weight",
    orthogonal_map: str | None = None,
    *,
    use_trivialization: bool = True,
) -> Module:
    """Keep a matrix orthogonal; where it is not square, its rows or columns orthonormal.

    Args:
        module: the module that has the matrix.
        name: the matrix's name; with more than 2 dimensions it is a batch of matrices.
        orthogonal_map: "matrix_exp", "cayley" or "householder"; by default the first for square or
            complex matrices, the last for others.
        use_trivialization: keep a base, so that any matrix can be assigned and training starts at
            the identity (Lezcano-Casado, 2019).

    Returns:
        `module`.

    Raises:
        ValueError: there is no such tensor, it is no matrix, or the map is unknown.

    >>> layer = taeda.nn.utils.parametrizations.orthogonal(taeda.nn.Linear(3, 3))
    >>> taeda.allclose(layer.weight @ layer.weight.T, taeda.eye(3), atol=1e-5)
    True
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(
            f"orthogonal: Module '{module}' has no parameter or buffer with name '{name}'"
        )
    if weight.dim() < 2:
        raise ValueError(
            f"orthogonal: Expected a matrix or batch of matrices. Got a tensor of {weight.dim()} "
            "dimensions."
        )
    if orthogonal_map is None:
        square = weight.size(-2) == weight.size(-1)
        orthogonal_map = "matrix_exp" if square or weight.is_complex() else "householder"
    if orthogonal_map not in _MAPS:
        raise ValueError(
            'orthogonal: orthogonal_map has to be one of "matrix_exp", "cayley", "householder". '
            f"Got: {orthogonal_map}"
        )
    made = _Orthogonal(weight, orthogonal_map, use_trivialization)
    return parametrize.register_parametrization(module, name, made, unsafe=True)
