"""The LKJ distribution of correlation matrices."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import taeda

from . import constraints
from .beta import Beta
from .distribution import Distribution
from .utils import broadcast_all, mvlgamma, standard_normal

if TYPE_CHECKING:
    from taeda import Tensor

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """Cholesky factors of random correlation matrices of ``dim`` rows.

    The matrix's density goes as its determinant to ``concentration - 1``: at 1 all are alike, above
    1 they are nearer to the identity.

    Lewandowski, Kurowicka, Joe: Generating random correlation matrices based on vines and extended
    onion method, Journal of Multivariate Analysis, 2009. Draws are made by the onion method.

    Raises:
        ValueError: ``dim`` is below 2.
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky
    _expandable = ("concentration",)

    def __init__(
        self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None
    ) -> None:
        if dim < 2:
            raise ValueError(
                f"{type(self).__name__}: Expected dim to be an integer greater than or equal to 2. "
                f"Found dim={dim}."
            )
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        options = {"dtype": self.concentration.dtype, "device": self.concentration.device}
        offset = taeda.arange(-1, dim - 1, **options).clamp(min=0)
        marginal = self.concentration + 0.5 * (dim - 2)
        self._beta = Beta(offset + 0.5, marginal.unsqueeze(-1) - 0.5 * offset)
        super().__init__(self.concentration.size(), (dim, dim), validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        new._beta = self._beta.expand((*batch_shape, self.dim))
        return new

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with taeda.no_grad():
            y = self._beta.sample(sample_shape).unsqueeze(-1)
            shape = self._extended_shape(sample_shape)
            directions = standard_normal(shape, self.concentration).tril(-1)
            directions = directions / directions.norm(dim=-1, keepdim=True)
            directions[..., 0, :].fill_(0.0)
            w = taeda.sqrt(y) * directions
            tiny = taeda.finfo(w.dtype).tiny
            diagonal = (1 - w.square().sum(dim=-1)).clamp(min=tiny).sqrt()
            return w + taeda.diag_embed(diagonal)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        n = self.dim - 1
        diagonal = value.diagonal(dim1=-1, dim2=-2)[..., 1:]
        order = taeda.arange(2, self.dim + 1, device=self.concentration.device)
        order = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - order
        alpha = self.concentration + 0.5 * n
        normalizer = (
            0.5 * n * math.log(math.pi) + mvlgamma(alpha - 0.5, n) - taeda.lgamma(alpha) * n
        )
        return (order * diagonal.log()).sum(dim=-1) - normalizer
