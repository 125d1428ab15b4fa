"""Embeddings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import taeda
from taeda._C import Tensor
from taeda.nn import functional as F
from taeda.nn import init
from taeda.nn.module import Module
from taeda.nn.parameter import Parameter

if TYPE_CHECKING:
    from typing_extensions import Self


__all__ = ["Embedding", "EmbeddingBag"]


class _Table(Module):
    """A matrix whose rows are looked up."""

    def __init__(
        self, rows: int, columns: int, padding_idx: int | None, weight: Tensor | None,
        freeze: bool, device: Any, dtype: Any,
    ) -> None:  # fmt: skip
        super().__init__()
        self.num_embeddings = rows
        self.embedding_dim = columns
        if padding_idx is not None:
            if not -rows <= padding_idx < rows:
                raise AssertionError(
                    f"{type(self).__name__}: padding_idx must be within num_embeddings, got "
                    f"{padding_idx} for {rows}"
                )
            padding_idx %= rows
        self.padding_idx = padding_idx
        if weight is None:
            values = taeda.empty((rows, columns), device=device, dtype=dtype)
            self.weight = Parameter(values, requires_grad=not freeze)
            self.reset_parameters()
        else:
            if list(weight.shape) != [rows, columns]:
                raise AssertionError(
                    f"{type(self).__name__}: Shape of weight does not match num_embeddings and "
                    f"embedding_dim: got {list(weight.shape)} for [{rows}, {columns}]"
                )
            self.weight = Parameter(weight, requires_grad=not freeze)

    def reset_parameters(self) -> None:
        """Draw new initial values from a standard normal distribution; the padding row is zero."""
        if init.scheme_of(self) == "torch":
            init.normal_(self.weight)
        else:
            init.lecun_normal_(self.weight, fan_in=self.embedding_dim)
        self._fill_padding_idx_with_zero()

    def _fill_padding_idx_with_zero(self) -> None:
        if self.padding_idx is not None:
            with taeda.no_grad():
                self.weight[self.padding_idx].fill_(0)


class Embedding(_Table):
    """A table of vectors, looked up by number.

    Args:
        num_embeddings: how many vectors there are.
        embedding_dim: the size of each.
        padding_idx: one that is zero at first and gets no gradient.
        max_norm: vectors with a greater norm are scaled down to it when they are looked up.
        norm_type: the p of that norm.
        scale_grad_by_freq: divide a vector's gradient by how often it was looked up.
        sparse: the gradient of `weight` is sparse; SGD, Adagrad and SparseAdam take it.
        device, dtype: those of the parameter.

    Attributes:
        weight: of shape (num_embeddings, embedding_dim), at first standard normal.

    >>> table = taeda.nn.Embedding(10, 3)
    >>> tuple(table(taeda.tensor([[1, 2], [4, 9]])).shape)
    (2, 2, 3)
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            num_embeddings, embedding_dim, padding_idx, _weight, _freeze, device, dtype
        )
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse

    def forward(self, input: Tensor) -> Tensor:
        return F.embedding(
            input, self.weight, self.padding_idx, self.max_norm, self.norm_type,
            self.scale_grad_by_freq, self.sparse,
        )  # fmt: skip

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        if self.padding_idx is not None:
            text += f", padding_idx={self.padding_idx}"
        if self.max_norm is not None:
            text += f", max_norm={self.max_norm}"
        if self.norm_type != 2:
            text += f", norm_type={self.norm_type}"
        if self.scale_grad_by_freq:
            text += f", scale_grad_by_freq={self.scale_grad_by_freq}"
        if self.sparse:
            text += ", sparse=True"
        return text

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Self:
        """Make an Embedding of given vectors.

        Args:
            embeddings: of shape (num_embeddings, embedding_dim).
            freeze: record no gradients.
            padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse: as for the class.
        """
        if embeddings.dim() != 2:
            raise AssertionError(
                f"{cls.__name__}.from_pretrained: Embeddings parameter is expected to be "
                f"2-dimensional, got shape {list(embeddings.shape)}"
            )
        rows, columns = embeddings.shape
        return cls(
            rows, columns, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse,
            _weight=embeddings, _freeze=freeze,
        )  # fmt: skip


class EmbeddingBag(_Table):
    """The sums, means or maxima of bags of vectors of a table.

    Args:
        num_embeddings, embedding_dim, max_norm, norm_type, scale_grad_by_freq, sparse,
            padding_idx, device, dtype: as for `Embedding`; the padding vector does not count in
            its bag.
        mode: "sum", "mean" or "max".
        include_last_offset: the offsets have one more entry, the length of the input.
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(num_embeddings, embedding_dim, padding_idx, _weight, False, device, dtype)
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.mode = mode
        self.sparse = sparse
        self.include_last_offset = include_last_offset

    def forward(
        self,
        input: Tensor,
        offsets: Tensor | None = None,
        per_sample_weights: Tensor | None = None,
    ) -> Tensor:
        return F.embedding_bag(
            input, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq,
            self.mode, self.sparse, per_sample_weights, self.include_last_offset,
            self.padding_idx,
        )  # fmt: skip

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        if self.max_norm is not None:
            text += f", max_norm={self.max_norm}"
        if self.norm_type != 2:
            text += f", norm_type={self.norm_type}"
        if self.scale_grad_by_freq:
            text += f", scale_grad_by_freq={self.scale_grad_by_freq}"
        text += f", mode={self.mode!r}"
        if self.padding_idx is not None:
            text += f", padding_idx={self.padding_idx}"
        return text

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> Self:
        """Make an EmbeddingBag of given vectors; see `Embedding.from_pretrained`."""
        if embeddings.dim() != 2:
            raise AssertionError(
                f"{cls.__name__}.from_pretrained: Embeddings parameter is expected to be "
                f"2-dimensional, got shape {list(embeddings.shape)}"
            )
        rows, columns = embeddings.shape
        bag = cls(
            rows, columns, max_norm, norm_type, scale_grad_by_freq, mode, sparse,
            _weight=embeddings, include_last_offset=include_last_offset, padding_idx=padding_idx,
        )  # fmt: skip
        bag.weight.requires_grad_(not freeze)
        return bag
