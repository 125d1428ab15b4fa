"""Transforms of vectors and matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import taeda
import taeda.nn.functional as F

from . import constraints
from ._transform import Transform
from .utils import sum_rightmost, tril_matrix_to_vec, vec_to_tril_matrix

if TYPE_CHECKING:
    from collections.abc import Sequence

    from taeda import Tensor


class _Same(Transform):
    """Transforms without parameters: those of one class are equal."""

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    def __hash__(self) -> int:
        return id(self)


def _need_vector(transform: Transform, shape: Any) -> None:
    if len(shape) < 1:
        raise ValueError(f"{type(transform).__name__}: Too few dimensions on input")


class SoftmaxTransform(_Same):
    """Softmax; the inverse is the logarithm. Not one to one."""

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x: Tensor) -> Tensor:
        probs = (x - x.max(-1, True)[0]).exp()
        return probs / probs.sum(-1, True)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def forward_shape(self, shape: Any) -> Any:
        _need_vector(self, shape)
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        _need_vector(self, shape)
        return shape


class StickBreakingTransform(_Same):
    """Vectors of ``n`` numbers to the simplex of ``n + 1``: each breaks off a share of the rest."""

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    @staticmethod
    def _offset(n: int, like: Tensor) -> Tensor:
        """The logarithms of how many pieces are still to come, so that 0 gives equal pieces."""
        return taeda.arange(n, 0, -1, dtype=like.dtype, device=like.device).log()

    def _call(self, x: Tensor) -> Tensor:
        if x.dim() < 1:
            raise IndexError("StickBreakingTransform: x must have at least 1 dimension, got 0")
        z = _clipped_sigmoid(x - self._offset(x.shape[-1], x))
        left = (1 - z).cumprod(-1)
        return F.pad(z, [0, 1], value=1) * F.pad(left, [1, 0], value=1)

    def _inverse(self, y: Tensor) -> Tensor:
        pieces = y[..., :-1]
        left = 1 - pieces.cumsum(-1)
        left = left.clamp(min=taeda.finfo(y.dtype).tiny)
        return pieces.log() - left.log() + self._offset(pieces.shape[-1], y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        x = x - self._offset(x.shape[-1], x)
        return (-x + F.logsigmoid(x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        _need_vector(self, shape)
        return (*shape[:-1], shape[-1] + 1)

    def inverse_shape(self, shape: Any) -> Any:
        _need_vector(self, shape)
        return (*shape[:-1], shape[-1] - 1)


def _clipped_sigmoid(x: Tensor) -> Tensor:
    info = taeda.finfo(x.dtype)
    return taeda.sigmoid(x).clamp(min=info.tiny, max=1.0 - info.eps)


class LowerCholeskyTransform(_Same):
    """Square matrices to lower triangular ones with a positive diagonal, by its ``exp``."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x: Tensor) -> Tensor:
        diagonal = x.diagonal(dim1=-2, dim2=-1).exp()
        return x.tril(-1) + taeda.diag_embed(diagonal)

    def _inverse(self, y: Tensor) -> Tensor:
        diagonal = y.diagonal(dim1=-2, dim2=-1).log()
        return y.tril(-1) + taeda.diag_embed(diagonal)


class PositiveDefiniteTransform(_Same):
    """Square matrices to positive definite ones, by their Cholesky factors."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x: Tensor) -> Tensor:
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform().inv(taeda.linalg.cholesky(y))


class CorrCholeskyTransform(_Same):
    """Vectors of ``n (n - 1) / 2`` numbers to Cholesky factors of ``n x n`` correlation matrices.

    By partial correlations: Lewandowski, Kurowicka, Joe: Generating random correlation matrices
    based on vines and extended onion method, 2009.
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        x = taeda.tanh(x)
        eps = taeda.finfo(x.dtype).eps
        r = vec_to_tril_matrix(x.clamp(min=-1 + eps, max=1 - eps), diag=-1)
        left = (1 - r.square()).sqrt().cumprod(-1)
        eye = taeda.eye(r.shape[-1], dtype=r.dtype, device=r.device)
        return (r + eye) * F.pad(left[..., :-1], [1, 0], value=1)

    def _inverse(self, y: Tensor) -> Tensor:
        if y.dim() < 2 or y.shape[-2] != y.shape[-1]:
            raise IndexError(
                f"CorrCholeskyTransform: y must be square matrices, got shape {list(y.shape)}"
            )
        left = 1 - taeda.cumsum(y.square(), dim=-1)
        left = F.pad(left[..., :-1], [1, 0], value=1)
        vector = tril_matrix_to_vec(y, diag=-1)
        t = vector / tril_matrix_to_vec(left, diag=-1).sqrt()
        return (t.log1p() - t.neg().log1p()) / 2

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        left = 1 - y.square().cumsum(dim=-1)
        left = tril_matrix_to_vec(left, diag=-2)
        factors = 0.5 * left.log().sum(-1)
        slopes = -2 * (x + F.softplus(-2 * x) - taeda.log(taeda.tensor(2.0, dtype=x.dtype)))
        return factors + slopes.sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        _need_vector(self, shape)
        count = shape[-1]
        n = round((0.25 + 2 * count) ** 0.5 + 0.5)
        if n * (n - 1) // 2 != count:
            raise ValueError(
                f"{type(self).__name__}: Input is not a flattened lower-diagonal number"
            )
        return (*shape[:-1], n, n)

    def inverse_shape(self, shape: Any) -> Any:
        if len(shape) < 2:
            raise ValueError(f"{type(self).__name__}: Too few dimensions on input")
        if shape[-2] != shape[-1]:
            raise ValueError(f"{type(self).__name__}: Input is not square")
        n = shape[-1]
        return (*shape[:-2], n * (n - 1) // 2)


class _Parts(Transform):
    """Transforms side by side along a dimension."""

    transforms: list[Transform]

    def _set_parts(self, tseq: Sequence[Transform], cache_size: int) -> None:
        if not all(isinstance(t, Transform) for t in tseq):
            raise AssertionError(f"{type(self).__name__}: every part must be a Transform")
        if cache_size:
            tseq = [t.with_cache(cache_size) for t in tseq]
        self.transforms = list(tseq)

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        """Whether all are."""
        return all(t.bijective for t in self.transforms)


class CatTransform(_Parts):
    """Each transform on its ``lengths`` (1 each by default) of the elements along ``dim``."""

    def __init__(
        self,
        tseq: Sequence[Transform],
        dim: int = 0,
        lengths: Sequence[int] | None = None,
        cache_size: int = 0,
    ) -> None:
        super().__init__(cache_size=cache_size)
        self._set_parts(tseq, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise AssertionError("CatTransform: one length for each transform is needed")
        self.dim = dim

    @property
    def event_dim(self) -> int:
        """The largest of the parts'."""
        return max(t.event_dim for t in self.transforms)

    @property
    def length(self) -> int:
        """How many elements there are along ``dim``."""
        return sum(self.lengths)

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _pieces(self, value: Tensor) -> list[Tensor]:
        if not -value.dim() <= self.dim < value.dim() or value.size(self.dim) != self.length:
            raise AssertionError(
                f"CatTransform: expected {self.length} elements in dimension {self.dim}, got "
                f"shape {tuple(value.shape)}"
            )
        return list(value.split(self.lengths, self.dim))

    def _call(self, x: Tensor) -> Tensor:
        parts = zip(self.transforms, self._pieces(x), strict=True)
        return taeda.cat([t(piece) for t, piece in parts], dim=self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        parts = zip(self.transforms, self._pieces(y), strict=True)
        return taeda.cat([t.inv(piece) for t, piece in parts], dim=self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        terms = []
        for t, a, b in zip(self.transforms, self._pieces(x), self._pieces(y), strict=True):
            term = t.log_abs_det_jacobian(a, b)
            terms.append(sum_rightmost(term, self.event_dim - t.event_dim))
        dim = self.dim - x.dim() if self.dim >= 0 else self.dim
        dim += self.event_dim
        return taeda.cat(terms, dim=dim) if dim < 0 else sum(terms[1:], terms[0])

    @property
    def domain(self) -> Any:
        """The parts', side by side."""
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @property
    def codomain(self) -> Any:
        """The parts', side by side."""
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)


class StackTransform(_Parts):
    """Each transform on its slice along ``dim``."""

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self._set_parts(tseq, cache_size)
        self.dim = dim

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return StackTransform(self.transforms, self.dim, cache_size)

    def _pieces(self, value: Tensor) -> list[Tensor]:
        n = len(self.transforms)
        if not -value.dim() <= self.dim < value.dim() or value.size(self.dim) != n:
            raise AssertionError(
                f"StackTransform: expected {n} elements in dimension {self.dim}, got shape "
                f"{tuple(value.shape)}"
            )
        return [value.select(self.dim, i) for i in range(n)]

    def _call(self, x: Tensor) -> Tensor:
        parts = zip(self.transforms, self._pieces(x), strict=True)
        return taeda.stack([t(piece) for t, piece in parts], self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        parts = zip(self.transforms, self._pieces(y), strict=True)
        return taeda.stack([t.inv(piece) for t, piece in parts], self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        parts = zip(self.transforms, self._pieces(x), self._pieces(y), strict=True)
        return taeda.stack([t.log_abs_det_jacobian(a, b) for t, a, b in parts], self.dim)

    @property
    def domain(self) -> Any:
        """The parts', as slices."""
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @property
    def codomain(self) -> Any:
        """The parts', as slices."""
        return constraints.stack([t.codomain for t in self.transforms], self.dim)
