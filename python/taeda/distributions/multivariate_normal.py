"""The multivariate normal distribution."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import taeda

from . import constraints
from .distribution import Distribution
from .utils import check_one, lazy_property, standard_normal

if TYPE_CHECKING:
    from taeda import Tensor

__all__ = ["MultivariateNormal"]


def _times_vector(matrix: Tensor, vector: Tensor) -> Tensor:
    return (matrix @ vector.unsqueeze(-1)).squeeze(-1)


def squared_distance(scale_tril: Tensor, difference: Tensor) -> Tensor:
    """The squared Mahalanobis distance that a Cholesky factor gives."""
    if scale_tril.dim() == 2:  # one factor: one solution for all the vectors
        columns = difference.reshape(-1, difference.size(-1)).mT
        solved = taeda.linalg.solve_triangular(scale_tril, columns, upper=False)
        return solved.square().sum(0).reshape(difference.shape[:-1])
    solved = taeda.linalg.solve_triangular(scale_tril, difference.unsqueeze(-1), upper=False)
    return solved.squeeze(-1).square().sum(-1)


def half_log_det(scale_tril: Tensor) -> Tensor:
    """Half of the logarithm of the covariance's determinant."""
    return scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def precision_to_scale_tril(precision: Tensor) -> Tensor:
    """The Cholesky factor of a precision matrix's inverse."""
    flipped = taeda.linalg.cholesky(taeda.flip(precision, (-2, -1)))
    upper = taeda.flip(flipped, (-2, -1)).mT
    eye = taeda.eye(precision.shape[-1], dtype=precision.dtype, device=precision.device)
    return taeda.linalg.solve_triangular(upper, eye, upper=False)


class MultivariateNormal(Distribution):
    """Normal vectors with mean ``loc`` and one of three matrices: the covariance, its inverse (the
    precision), or its lower Cholesky factor ``scale_tril``, which is the fastest.
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True
    _expandable = (
        "loc",
        "covariance_matrix",
        "precision_matrix",
        "scale_tril",
        "_unbroadcasted_scale_tril",
    )

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if loc.dim() < 1:
            raise ValueError(f"{type(self).__name__}: loc must be at least one-dimensional.")
        options = {
            "covariance_matrix": covariance_matrix,
            "precision_matrix": precision_matrix,
            "scale_tril": scale_tril,
        }
        check_one("MultivariateNormal", **options)
        name, matrix = next((k, v) for k, v in options.items() if v is not None)
        if matrix.dim() < 2:
            raise ValueError(
                f"{type(self).__name__}: {name} must be at least two-dimensional, with optional "
                "leading batch dimensions"
            )
        batch = taeda.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        setattr(self, name, matrix.expand(batch + matrix.shape[-2:]))
        self.loc = loc.expand(batch + loc.shape[-1:])
        super().__init__(batch, self.loc.shape[-1:], validate_args=validate_args)
        if name == "scale_tril":
            factor = matrix
        elif name == "covariance_matrix":
            factor = taeda.linalg.cholesky(matrix)
        else:
            factor = precision_to_scale_tril(matrix)
        self._unbroadcasted_scale_tril = factor.expand(batch + factor.shape[-2:])

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The lower Cholesky factor of the covariance."""
        return self._unbroadcasted_scale_tril

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance."""
        factor = self._unbroadcasted_scale_tril
        return factor @ factor.mT

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        factor = self._unbroadcasted_scale_tril
        eye = taeda.eye(factor.shape[-1], dtype=factor.dtype, device=factor.device)
        inverse = taeda.linalg.solve_triangular(factor, eye.expand(factor.shape), upper=False)
        return inverse.mT @ inverse

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return self._unbroadcasted_scale_tril.square().sum(-1)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        noise = standard_normal(self._extended_shape(sample_shape), self.loc)
        return self.loc + _times_vector(self._unbroadcasted_scale_tril, noise)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        difference = value - self.loc
        factor = self._unbroadcasted_scale_tril
        if factor.dim() > 2:
            factor = factor.expand(difference.shape[:-1] + factor.shape[-2:])
        distance = squared_distance(factor, difference)
        n = self._event_shape[0]
        return -0.5 * (n * math.log(2 * math.pi) + distance) - half_log_det(
            self._unbroadcasted_scale_tril
        )

    def entropy(self) -> Tensor:
        n = self._event_shape[0]
        return 0.5 * n * (1 + math.log(2 * math.pi)) + half_log_det(self._unbroadcasted_scale_tril)
