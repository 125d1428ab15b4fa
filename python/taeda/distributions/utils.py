"""What the distributions share."""

from __future__ import annotations

import math
from numbers import Number
from typing import TYPE_CHECKING, Any

import taeda
import taeda.nn.functional as F
from taeda import _C

if TYPE_CHECKING:
    from collections.abc import Callable

    from taeda import Tensor

__all__ = [
    "broadcast_all",
    "clamp_probs",
    "lazy_property",
    "logits_to_probs",
    "probs_to_logits",
    "sum_rightmost",
    "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]

EULER = 0.57721566490153286


def broadcast_all(*values: Any) -> tuple[Any, ...]:
    """Numbers and tensors as tensors of one shape.

    Numbers get the dtype and device of the first tensor, or the default dtype.

    Raises:
        ValueError: a value is neither.
    """
    for value in values:
        if not isinstance(value, (taeda.Tensor, Number)):
            raise ValueError(
                "broadcast_all: Input arguments must all be numbers or tensors, got "
                f"{type(value).__name__}"
            )
    tensors = [v for v in values if isinstance(v, taeda.Tensor)]
    options: dict[str, Any] = {"dtype": taeda.get_default_dtype()}
    if tensors:
        options = {"dtype": tensors[0].dtype, "device": tensors[0].device}
    made = [v if isinstance(v, taeda.Tensor) else taeda.tensor(v, **options) for v in values]
    return tuple(taeda.broadcast_tensors(*made))


def all_numbers(*values: Any) -> bool:
    """Whether every value is a Python number, so that there is no batch."""
    return all(isinstance(value, Number) for value in values)


def batch_of(tensor: Tensor, *given: Any) -> Any:
    """The batch shape of a distribution whose parameters were given so."""
    return taeda.Size() if all_numbers(*given) else tensor.shape


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Probabilities from log odds (binary), or from log weights along the last dimension."""
    return taeda.sigmoid(logits) if is_binary else F.softmax(logits, dim=-1)


def clamp_probs(probs: Tensor) -> Tensor:
    """Probabilities kept off 0 and 1 by the dtype's epsilon."""
    eps = taeda.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Log odds (binary), or logarithms, of probabilities."""
    clamped = clamp_probs(probs)
    return taeda.log(clamped) - taeda.log1p(-clamped) if is_binary else taeda.log(clamped)


def check_one(who: str, **options: Any) -> None:
    """Raise unless exactly one of two or three options is given."""
    if sum(value is not None for value in options.values()) != 1:
        *most, last = (f"`{name}`" for name in options)
        raise ValueError(f"{who}: Exactly one of {', '.join(most)} or {last} must be specified")


def binary_cross_entropy(logits: Tensor, value: Tensor) -> Tensor:
    """``-log p(value)`` of a coin with these log odds, element by element."""
    return F.binary_cross_entropy_with_logits(logits, value, reduction="none")


def sum_rightmost(value: Any, dim: int) -> Any:
    """The sum over the last ``dim`` dimensions."""
    if dim == 0:
        return value
    return value.reshape((*value.shape[: value.dim() - dim], -1)).sum(-1)


_sum_rightmost = sum_rightmost  # the name that packages import


def xlog1py(x: Tensor, y: Tensor) -> Tensor:
    """``x * log1p(y)``, 0 where x is 0."""
    return taeda.where(x == 0, taeda.zeros_like(x), x * taeda.log1p(y))


class lazy_property:
    """A property that is computed when it is first read, and then kept as an attribute."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        self.wrapped = wrapped
        self.__doc__ = wrapped.__doc__

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        with taeda.enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The elements of ``D x D`` matrices on and below diagonal ``diag``, row by row, as vectors."""
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"tril_matrix_to_vec: diag ({diag}) must be in [{-n}, {n - 1}]")
    rows, columns = taeda.tril_indices(n, n, diag, device=mat.device)
    return mat[..., rows, columns]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """The inverse of :func:`tril_matrix_to_vec`."""
    count = vec.shape[-1]
    n = (
        -(1 + 2 * diag) + ((1 + 2 * diag) ** 2 + 8 * count + 4 * abs(diag) * (diag + 1)) ** 0.5
    ) / 2
    size = round(n)
    if abs(n - size) > taeda.finfo(vec.dtype).eps * 10:
        raise ValueError(
            f"vec_to_tril_matrix: The size of last dimension is {count} which cannot be expressed "
            "as the lower triangular part of a square D x D matrix."
        )
    matrix = taeda.zeros((*vec.shape[:-1], size, size), dtype=vec.dtype, device=vec.device)
    rows, columns = taeda.tril_indices(size, size, diag, device=vec.device)
    return matrix.index_put((*_all_batches(matrix), rows, columns), vec)


def _all_batches(matrix: Tensor) -> tuple[Any, ...]:
    """Index tensors that take all of the dimensions but the last two, for ``index_put``."""
    batch = matrix.shape[:-2]
    found = []
    for i, n in enumerate(batch):
        shape = [1] * (len(batch) + 1)
        shape[i] = n
        found.append(taeda.arange(n, device=matrix.device).reshape(shape))
    return tuple(found)


def one_hot(index: Tensor, like: Tensor) -> Tensor:
    """Vectors of zeros with a one at ``index``, as long as the last dimension of ``like``."""
    shape = index.shape + like.shape[-1:]
    zeros = taeda.zeros(shape, dtype=like.dtype, device=like.device)
    return zeros.scatter_(-1, index.unsqueeze(-1), 1)


def empty_for(like: Tensor, shape: Any) -> Tensor:
    """Memory for draws of the dtype and device of a parameter."""
    return taeda.empty(shape, dtype=like.dtype, device=like.device)


def standard_normal(shape: Any, like: Tensor) -> Tensor:
    """Standard normal numbers of the dtype and device of a parameter."""
    return _standard_normal(shape, dtype=like.dtype, device=like.device)


def _standard_normal(shape: Any, dtype: Any, device: Any) -> Tensor:
    """Standard normal numbers."""
    return taeda.randn(shape, dtype=dtype, device=device)


def standard_gamma(concentration: Tensor) -> Tensor:
    """Gamma numbers of scale 1, differentiable by their shape."""
    return _C.ops._standard_gamma(concentration)


def sample_dirichlet(concentration: Tensor) -> Tensor:
    """Points of the simplex, differentiable by their concentrations."""
    return _C.ops._sample_dirichlet(concentration)


def mvlgamma(x: Tensor, dim: int) -> Tensor:
    """The logarithm of the multivariate gamma function."""
    steps = taeda.arange(dim, dtype=x.dtype, device=x.device) / 2
    terms = (x.unsqueeze(-1) - steps).lgamma().sum(-1)
    return dim * (dim - 1) / 4 * math.log(math.pi) + terms
