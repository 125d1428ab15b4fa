"""Look-up of rows."""

from __future__ import annotations

from typing import Any

import taeda
from taeda._C import Tensor, ops
from taeda.autograd.function import Function

__all__ = ["embedding", "embedding_bag"]


def _padding(padding_idx: int | None, rows: int) -> int:
    """The number of the padding row, -1 for none."""
    if padding_idx is None:
        return -1
    if not -rows <= padding_idx < rows:
        raise AssertionError(
            f"embedding: Padding_idx must be within num_embeddings, got {padding_idx} and {rows}"
        )
    return padding_idx % rows


class _SparseEmbedding(Function):
    """Rows of a matrix; the matrix's gradient is sparse, with an element for each row taken."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, input: Tensor, padding: int) -> Tensor:
        ctx.save_for_backward(input)
        ctx.size, ctx.padding = tuple(weight.shape), padding
        return ops.embedding(weight, input, padding)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        from taeda.sparse._tensor import coo

        (input,) = ctx.saved_tensors
        rows, values = input.flatten().long(), grad.reshape(-1, ctx.size[1])
        if ctx.padding >= 0:
            kept = (rows != ctx.padding).nonzero().squeeze(1)
            rows, values = rows[kept], values[kept]
        return coo(rows.unsqueeze(0), values, ctx.size), None, None


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """The rows of a matrix that the input names.

    Args:
        input: row numbers, of shape (*).
        weight: of shape (V, E).
        padding_idx: a row that gets no gradient.
        max_norm: rows with a greater norm are first scaled down to it, in place.
        norm_type: the p of that norm.
        scale_grad_by_freq: divide a row's gradient by how often the row is named.
        sparse: give `weight` a sparse gradient, with an element for each row taken.

    Returns:
        a tensor of shape (*, E).
    """
    if sparse and scale_grad_by_freq:
        raise RuntimeError("embedding: scale_grad_by_freq is not supported with sparse gradients")
    if weight.dim() != 2:
        raise RuntimeError(f"embedding: weight must be 2-D, got shape {list(weight.shape)}")
    padding = _padding(padding_idx, weight.size(0))
    if max_norm is not None:
        with taeda.no_grad():
            ops.embedding_renorm_(weight, input.contiguous(), max_norm, norm_type)
    if sparse:
        return _SparseEmbedding.apply(weight, input, padding)
    rows = ops.embedding(weight, input, padding)
    if scale_grad_by_freq:
        counts = ops.bincount(input.flatten(), minlength=weight.size(0))
        share = counts[input].to(rows.dtype).reciprocal().unsqueeze(-1)
        value = rows.detach()
        rows = value + (rows - value) * share
    return rows


def _sums_of_bags(
    input: Tensor, weight: Tensor, max_norm: float | None, norm_type: float
) -> Tensor:
    """The sums of the rows that bags of one size name."""
    if max_norm is not None:
        with taeda.no_grad():
            ops.embedding_renorm_(weight, input.contiguous(), max_norm, norm_type)
    return ops._embedding_sums(weight, input)


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """The sum, the mean or the maximum of the rows of a matrix that each bag names.

    Args:
        input: row numbers; of shape (B, N) for B bags of N, or (L,) with `offsets`.
        weight: of shape (V, E).
        offsets: of shape (B,), where each bag begins in a 1-dimensional input.
        max_norm, norm_type, scale_grad_by_freq, sparse: as for `embedding`.
        mode: "sum", "mean" or "max".
        per_sample_weights: of the input's shape, factors of the rows; only with "sum".
        include_last_offset: `offsets` has one more entry, the length of the input.
        padding_idx: a row that does not count in its bag.

    Returns:
        a tensor of shape (B, E); empty bags are zero.
    """
    if per_sample_weights is not None and per_sample_weights.shape != input.shape:
        raise ValueError(
            f"embedding_bag: per_sample_weights must have the input's shape {list(input.shape)}, "
            f"got {list(per_sample_weights.shape)}"
        )
    if per_sample_weights is not None and per_sample_weights.dtype != weight.dtype:
        raise RuntimeError(
            f"embedding_bag: per_sample_weights must have the weight's dtype {weight.dtype}, "
            f"got {per_sample_weights.dtype}"
        )
    bags_in_rows = input
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError("embedding_bag: offsets must be None where the input is 2D")
        starts = ops.arange(0, input.numel() + 1, max(input.size(1), 1), device=input.device)
        lengths = ops.full((input.size(0),), input.size(1), dtype=taeda.int64, device=input.device)
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights.reshape(-1)
        input = input.reshape(-1)
    elif input.dim() == 1:
        if offsets is None or offsets.dim() != 1:
            raise ValueError("embedding_bag: a 1D input needs 1D offsets")
        ends = offsets.new_full((1,), input.size(0))
        if include_last_offset:
            if offsets.size(0) == 0:
                raise RuntimeError(
                    "embedding_bag: with include_last_offset, offsets has at least one entry"
                )
            starts = offsets
            if offsets.size(0) == 1:  # no bag: nothing of the input is read
                input = input[:0]
                if per_sample_weights is not None:
                    per_sample_weights = per_sample_weights[:0]
            else:  # the last bag reaches to the end of the input, whatever the last entry says
                starts = ops.cat([offsets[:-1], ends])
        else:
            starts = ops.cat([offsets, ends])
        lengths = (starts[1:] - starts[:-1]).to(taeda.int64)
    else:
        raise ValueError(f"embedding_bag: the input must be 1D or 2D, got {input.dim()}D")
    if mode not in ("sum", "mean", "max"):
        raise ValueError(f"embedding_bag: mode has to be one of sum, mean or max, got {mode!r}")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("embedding_bag: mode='max' does not go with scale_grad_by_freq=True")
    if sparse and mode == "max":
        raise ValueError("embedding_bag: max mode does not support sparse weights")
    if sparse and scale_grad_by_freq:
        raise ValueError("embedding_bag: scale_grad_by_freq does not support sparse gradients")
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            f"embedding_bag: per_sample_weights needs mode='sum', got mode={mode!r}"
        )
    plain = (
        padding_idx is None
        and not scale_grad_by_freq
        and mode != "max"
        and not sparse
        and weight.dtype in (taeda.float32, taeda.float64)
    )
    try:
        if plain and bags_in_rows.dim() == 2 and per_sample_weights is None:
            sums = _sums_of_bags(bags_in_rows, weight, max_norm, norm_type)
            return sums / max(bags_in_rows.size(1), 1) if mode == "mean" else sums
        if plain and max_norm is None and input.numel() > 0:
            # A product with the sparse matrix that has the bags as rows.
            sums = ops._csr_mm(starts, input, per_sample_weights, weight)
            if mode == "mean":
                sums = sums / lengths.clamp_min(1).unsqueeze(-1).to(sums.dtype)
            return sums
        rows = embedding(
            input, weight, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse
        )
    except IndexError as error:  # PyTorch's kind of error for each of the two
        raise RuntimeError(f"embedding_bag: {error}") from None
    count = lengths.size(0)
    bags = ops.repeat_interleave(ops.arange(count, device=input.device), lengths)
    if padding_idx is not None:
        kept = (input != padding_idx % weight.size(0)).nonzero().squeeze(1)
        rows, bags = rows[kept], bags[kept]
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights[kept]
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.unsqueeze(-1)
    result = rows.new_zeros((count, weight.size(1)))
    if mode == "max":
        index = bags.unsqueeze(-1).expand(rows.shape)
        return result.scatter_reduce(0, index, rows, "amax", include_self=False)
    result = result.index_add(0, bags, rows)
    if mode == "mean":
        sizes = ops.bincount(bags, minlength=count).clamp_min(1)
        result = result / sizes.unsqueeze(-1).to(result.dtype)
    return result
