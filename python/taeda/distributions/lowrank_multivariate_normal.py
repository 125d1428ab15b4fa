"""Multivariate normals of low rank."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import taeda

from . import constraints
from .distribution import Distribution
from .multivariate_normal import _times_vector, half_log_det, squared_distance
from .utils import lazy_property, standard_normal

if TYPE_CHECKING:
    from taeda import Tensor

__all__ = ["LowRankMultivariateNormal"]


class LowRankMultivariateNormal(Distribution):
    """Normal vectors with covariance ``cov_factor @ cov_factor.mT + diag(cov_diag)``.

    What it computes costs as much as the factor's few columns ask for, by Woodbury's identity.
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True
    _expandable = (
        "loc",
        "cov_factor",
        "cov_diag",
        "_capacitance_tril",
        "covariance_matrix",
        "precision_matrix",
        "scale_tril",
        "variance",
    )

    def __init__(
        self,
        loc: Tensor,
        cov_factor: Tensor,
        cov_diag: Tensor,
        validate_args: bool | None = None,
    ) -> None:
        if loc.dim() < 1:
            raise ValueError(f"{type(self).__name__}: loc must be at least one-dimensional.")
        event = loc.shape[-1:]
        if cov_factor.dim() < 2:
            raise ValueError(f"{type(self).__name__}: cov_factor must be at least two-dimensional")
        if cov_factor.shape[-2:-1] != event:
            raise ValueError(
                f"{type(self).__name__}: cov_factor must be a batch of matrices with shape "
                f"{event[0]} x m"
            )
        if cov_diag.shape[-1:] != event:
            raise ValueError(
                f"{type(self).__name__}: cov_diag must be a batch of vectors with shape {event}"
            )
        batch = taeda.broadcast_shapes(loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1])
        self.loc = loc.expand(batch + event)
        self.cov_factor = cov_factor.expand(batch + cov_factor.shape[-2:])
        self.cov_diag = cov_diag.expand(batch + event)
        super().__init__(batch, event, validate_args=validate_args)
        scaled = self.cov_factor.mT / self.cov_diag.unsqueeze(-2)
        rank = self.cov_factor.shape[-1]
        eye = taeda.eye(rank, dtype=loc.dtype, device=loc.device)
        self._capacitance_tril = taeda.linalg.cholesky(scaled @ self.cov_factor + eye)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @lazy_property
    def variance(self) -> Tensor:
        """The covariance's diagonal."""
        return self.cov_factor.square().sum(-1) + self.cov_diag

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The lower Cholesky factor of the covariance."""
        return taeda.linalg.cholesky(self.covariance_matrix)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance."""
        return self.cov_factor @ self.cov_factor.mT + taeda.diag_embed(self.cov_diag)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        scaled = self.cov_factor.mT / self.cov_diag.unsqueeze(-2)
        a = taeda.linalg.solve_triangular(self._capacitance_tril, scaled, upper=False)
        return taeda.diag_embed(self.cov_diag.reciprocal()) - a.mT @ a

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        low = standard_normal(shape[:-1] + self.cov_factor.shape[-1:], self.loc)
        own = standard_normal(shape, self.loc)
        return self.loc + _times_vector(self.cov_factor, low) + self.cov_diag.sqrt() * own

    def _log_det(self) -> Tensor:
        return 2 * half_log_det(self._capacitance_tril) + self.cov_diag.log().sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        difference = value - self.loc
        scaled = self.cov_factor.mT / self.cov_diag.unsqueeze(-2)
        projected = _times_vector(scaled, difference)
        factor = self._capacitance_tril
        factor = factor.expand(projected.shape[:-1] + factor.shape[-2:])
        distance = (difference.square() / self.cov_diag).sum(-1)
        distance = distance - squared_distance(factor, projected)
        n = self._event_shape[0]
        return -0.5 * (n * math.log(2 * math.pi) + self._log_det() + distance)

    def entropy(self) -> Tensor:
        n = self._event_shape[0]
        return 0.5 * (n * (1 + math.log(2 * math.pi)) + self._log_det())
