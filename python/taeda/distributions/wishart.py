"""The Wishart distribution."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

import taeda

from . import constraints
from .chi2 import Chi2
from .exp_family import ExponentialFamily
from .multivariate_normal import half_log_det, precision_to_scale_tril
from .utils import check_one, lazy_property, mvlgamma, standard_normal, vec_to_tril_matrix

if TYPE_CHECKING:
    from taeda import Tensor

__all__ = ["Wishart"]


class Wishart(ExponentialFamily):
    """Positive definite matrices: the scatter of ``df`` normal vectors of a covariance.

    One of the covariance, its inverse (the precision) and its lower Cholesky factor ``scale_tril``
    is given. Draws are made by Bartlett's decomposition.

    Raises:
        ValueError: ``df`` is not above the matrices' number of rows less 1.
    """

    support = constraints.positive_definite
    has_rsample = True
    _expandable = (
        "df",
        "covariance_matrix",
        "precision_matrix",
        "scale_tril",
        "_unbroadcasted_scale_tril",
    )

    def __init__(
        self,
        df: Any,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        options = {
            "covariance_matrix": covariance_matrix,
            "precision_matrix": precision_matrix,
            "scale_tril": scale_tril,
        }
        check_one("Wishart", **options)
        name, matrix = next((k, v) for k, v in options.items() if v is not None)
        if matrix.dim() < 2:
            raise ValueError(
                f"{type(self).__name__}: {name} must be at least two-dimensional, with optional "
                "leading batch dimensions"
            )
        event = matrix.shape[-2:]
        n = event[-1]
        df = taeda.as_tensor(df, dtype=matrix.dtype, device=matrix.device)
        if (df <= n - 1).any():
            raise ValueError(
                f"{type(self).__name__}: Value of df={df} expected to be greater than ndim - 1 = "
                f"{n - 1}."
            )
        batch = taeda.broadcast_shapes(matrix.shape[:-2], df.shape)
        self.df = df.expand(batch)
        setattr(self, name, matrix.expand(batch + event))
        if name == "scale_tril":
            factor = matrix
        elif name == "covariance_matrix":
            factor = taeda.linalg.cholesky(matrix)
        else:
            factor = precision_to_scale_tril(matrix)
        self._unbroadcasted_scale_tril = factor.expand(batch + event)
        super().__init__(batch, event, validate_args=validate_args)
        if self.df.lt(n).any():
            warnings.warn(
                "Low df values detected. Singular samples are highly likely to occur for ndim - 1 "
                "< df < ndim.",
                stacklevel=2,
            )
        self._chi2 = self._make_chi2()

    def _make_chi2(self) -> Chi2:
        n = self._event_shape[-1]
        fewer = taeda.arange(n, dtype=self.df.dtype, device=self.df.device)
        return Chi2(self.df.unsqueeze(-1) - fewer)

    @property
    def arg_constraints(self) -> dict[str, Any]:
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self._event_shape[-1] - 1),
        }

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        new._chi2 = new._make_chi2()
        return new

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The lower Cholesky factor of the covariance."""
        return self._unbroadcasted_scale_tril

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance of the normal vectors."""
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
        return self.df[..., None, None] * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        factor = self.df - self.covariance_matrix.shape[-1] - 1
        factor = taeda.where(factor > 0, factor, math.nan)
        return factor[..., None, None] * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        v = self.covariance_matrix
        diagonal = v.diagonal(dim1=-2, dim2=-1)
        outer = diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2)
        return self.df[..., None, None] * (v.square() + outer)

    def rsample(self, sample_shape: Any = (), max_try_correction: int | None = None) -> Tensor:
        """Draws. Those that rounding made singular are drawn again, ``max_try_correction`` times: 3
        for few rows and 1 for 4 rows or more by default.
        """
        n = self._event_shape[-1]
        if max_try_correction is None:
            max_try_correction = 3 if n < 4 else 1
        shape = taeda.Size(sample_shape)
        sample = self._draw(shape)
        for _ in range(max_try_correction):
            singular = ~self.support.check(sample)
            if not singular.any():
                break
            sample = taeda.where(singular[..., None, None], self._draw(shape), sample)
        return sample

    def _draw(self, sample_shape: Any) -> Tensor:
        n = self._event_shape[-1]
        diagonal = taeda.diag_embed(self._chi2.rsample(sample_shape).sqrt())
        below = standard_normal((*sample_shape, *self._batch_shape, n * (n - 1) // 2), self.df)
        noise = vec_to_tril_matrix(below, -1) + diagonal if n > 1 else diagonal
        factor = self._unbroadcasted_scale_tril @ noise
        return factor @ factor.mT

    def _log_scale(self) -> Tensor:
        n = self._event_shape[-1]
        return n * math.log(2) / 2 + half_log_det(self._unbroadcasted_scale_tril)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        n, df = self._event_shape[-1], self.df
        half_det = half_log_det(taeda.linalg.cholesky(value))
        trace = (self.precision_matrix * value).sum((-2, -1))
        normalizer = df * self._log_scale() + mvlgamma(df / 2, n)
        return (df - n - 1) * half_det - trace / 2 - normalizer

    def entropy(self) -> Tensor:
        n, df = self._event_shape[-1], self.df
        steps = taeda.arange(n, dtype=df.dtype, device=df.device) / 2
        digammas = (df.unsqueeze(-1) / 2 - steps).digamma().sum(-1)
        return (
            (n + 1) * self._log_scale()
            + mvlgamma(df / 2, n)
            - (df - n - 1) / 2 * digammas
            + df * n / 2
        )

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        n = self._event_shape[-1]
        return -self.precision_matrix / 2, (self.df - n - 1) / 2

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        n = self._event_shape[-1]
        half_df = y + (n + 1) / 2
        log_det = 2 * half_log_det(taeda.linalg.cholesky(-2 * x))
        return half_df * (n * math.log(2) - log_det) + mvlgamma(half_df, n)
