"""Rarely used functions, written in Python."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import taeda
from taeda import _C
from taeda._C import Tensor

__all__ = [
    "ccol_indices_copy",
    "col_indices_copy",
    "cond",
    "conv_tbc",
    "crow_indices_copy",
    "dequantize",
    "embedding_bag",
    "fake_quantize_per_channel_affine",
    "fake_quantize_per_tensor_affine",
    "hspmm",
    "indices_copy",
    "lu",
    "native_channel_shuffle",
    "row_indices_copy",
    "smm",
    "sspaddmm",
    "sym_float",
    "sym_int",
    "sym_ite",
    "sym_max",
    "sym_min",
    "sym_not",
    "sym_sum",
    "values_copy",
]

ops = _C.ops
_MODES = ("sum", "mean", "max")


def embedding_bag(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Sum, average or maximise the embeddings of bags of indices, with what says where they were.

    ``nn.functional.embedding_bag`` is the same with names in place of numbers.

    Args:
        weight: the embeddings, of shape (n, d).
        indices: the bags' indices in a row, of shape (k,).
        offsets: where each bag begins, of shape (b,), or (b + 1,) with ``include_last_offset``.
        scale_grad_by_freq: divide gradients by how often an index comes.
        mode: 0 for the sum, 1 for the mean, 2 for the maximum.
        sparse: give ``weight`` a sparse gradient.
        per_sample_weights: factors of the embeddings, of shape (k,), for the sum alone.
        include_last_offset: ``offsets`` ends with where the last bag ends.
        padding_idx: an index that counts as absent.

    Returns:
        The bags of shape (b, d); each index's bag, of shape (k,); the bags' sizes without padding,
        of shape (b,); for the maximum, the index of each element of the first result, and otherwise
        the sizes again.

    >>> bags = taeda.embedding_bag(taeda.eye(3), taeda.tensor([0, 2, 2]), taeda.tensor([0, 1]))
    >>> bags[0].tolist(), bags[1].tolist(), bags[2].tolist()
    ([[1.0, 0.0, 0.0], [0.0, 0.0, 2.0]], [0, 1, 1], [1, 2])
    """
    if mode not in (0, 1, 2):
        raise RuntimeError(f"embedding_bag(): mode must be 0, 1 or 2, got {mode}")
    if padding_idx is not None and padding_idx < 0:
        padding_idx += weight.size(0)
    output = taeda.nn.functional.embedding_bag(
        indices, weight, offsets, None, 2.0, scale_grad_by_freq, _MODES[mode], sparse,
        per_sample_weights, include_last_offset, padding_idx,
    )  # fmt: skip
    starts = offsets[:-1] if include_last_offset else offsets
    places = taeda.arange(indices.numel(), device=indices.device)
    bag = taeda.searchsorted(starts.contiguous(), places.to(starts.dtype), right=True) - 1
    bag = bag.to(indices.dtype)
    counted = taeda.ones_like(indices) if padding_idx is None else (indices != padding_idx)
    counted = counted.to(indices.dtype)
    sizes = indices.new_zeros(starts.numel()).index_add_(0, bag, counted)
    if mode != 2:
        return output, bag, sizes, sizes
    best = indices.new_zeros(output.shape)
    with taeda.no_grad():
        rows = weight[indices]
        hit = (rows == output[bag]) & counted.bool().unsqueeze(1)
        for i in reversed(range(indices.numel())):  # the first of equal ones stays
            best[bag[i]] = taeda.where(hit[i], indices[i], best[bag[i]])
    return output, bag, sizes, best


def lu(
    A: Tensor,
    pivot: bool = True,
    get_infos: bool = False,
    out: Sequence[Tensor] | None = None,
) -> Any:
    """The LU factors of matrices, singular ones too.

    Args:
        A: of shape (..., M, N).
        pivot: whether rows are exchanged, which they must be on the CPU.
        get_infos: whether to say what `linalg.lu_factor_ex` says of each matrix in ``info``.
        out: tensors for the results, as many as there are.

    Returns:
        A tuple of LU and pivots; with `get_infos` a named one of LU, pivots and info.

    >>> taeda.lu(taeda.eye(2), get_infos=True).info
    tensor(0, dtype=taeda.int32)
    """
    results = _C.ops.linalg_lu_factor_ex(A, pivot=pivot)
    count = 3 if get_infos else 2
    if out is None:
        return results if get_infos else tuple(results[:count])
    if len(out) != count:
        raise TypeError(f"lu(): out must hold {count} tensors, got {len(out)}")
    for target, result in zip(out, results, strict=False):
        target.resize_(result.shape).copy_(result)
    return tuple(out)


def native_channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Interleave the channels (dimension 1) of ``groups`` groups of equal size.

    >>> taeda.native_channel_shuffle(taeda.arange(4).view(1, 4, 1), 2).flatten().tolist()
    [0, 2, 1, 3]
    """
    return taeda.nn.functional.channel_shuffle(input, groups)


def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """A convolution along time, with time first and channels last.

    Args:
        input: of shape (time, batch, in_channels).
        weight: of shape (k, in_channels, out_channels).
        bias: of shape (out_channels,).
        pad: zeros on both sides.

    Returns:
        A tensor of shape (time + 2 pad - k + 1, batch, out_channels).

    >>> taeda.conv_tbc(taeda.ones(4, 1, 2), taeda.ones(3, 2, 5), taeda.zeros(5)).shape
    taeda.Size([2, 1, 5])
    """
    for name, value, rank in (("input", input, 3), ("weight", weight, 3), ("bias", bias, 1)):
        if value.dim() != rank:
            raise RuntimeError(f"conv_tbc(): {name} must have {rank} dimensions, got {value.dim()}")
    return ops.conv1d(input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, 1, pad).permute(
        2, 0, 1
    )


def cond(
    pred: bool | Tensor,
    true_fn: Callable[..., Any],
    false_fn: Callable[..., Any],
    operands: Sequence[Any] = (),
) -> Any:
    """Call one of two functions.

    Args:
        pred: a bool, or a tensor of one element.
        true_fn: called with ``operands`` where ``pred`` is true.
        false_fn: called with them where it is not.
        operands: the arguments.

    Returns:
        What the function returns.

    >>> taeda.cond(taeda.tensor(True), taeda.sin, taeda.cos, (taeda.zeros(2),))
    tensor([0., 0.])
    """
    if not isinstance(pred, (bool, Tensor)):
        raise RuntimeError(f"cond(): expected pred to be bool or tensor, got {pred!r}")
    if isinstance(pred, Tensor) and pred.numel() != 1:
        raise RuntimeError(f"cond(): pred must have one element, got {pred.numel()}")
    if not callable(true_fn) or not callable(false_fn):
        raise RuntimeError("cond(): expected functions for both branches")
    if not isinstance(operands, (tuple, list)):
        raise RuntimeError(f"cond(): operands must be a tuple, got {type(operands).__name__}")
    return true_fn(*operands) if pred else false_fn(*operands)


# ---- rounding to what integers of a few bits can represent ---------------------------------------


def dequantize(tensor: Any) -> Any:
    """Return a tensor, or each of a list, in float32: none of taeda's tensors is quantised."""
    if isinstance(tensor, (tuple, list)):
        return tuple(dequantize(t) for t in tensor)
    return tensor.to(_C.float32)


def fake_quantize_per_tensor_affine(
    input: Tensor, scale: float | Tensor, zero_point: int | Tensor, quant_min: int, quant_max: int
) -> Tensor:
    """Round to multiples of ``scale`` that an integer of a range can number, for training.

    The result is ``(clamp(round(x / scale) + zero_point, quant_min, quant_max) - zero_point) *
    scale``. The gradient passes where nothing was clamped.

    Args:
        input: of any shape, floating.
        scale: the step.
        zero_point: the number that stands for 0.
        quant_min: the smallest number.
        quant_max: the largest number.

    >>> x = taeda.tensor([-1.0, 0.26, 9.0])
    >>> taeda.fake_quantize_per_tensor_affine(x, 0.5, 1, 0, 7)
    tensor([-0.5000,  0.5000,  3.0000])
    """
    if not isinstance(scale, Tensor):
        scale = input.new_tensor(scale, dtype=_C.float32)
    if not isinstance(zero_point, Tensor):
        zero_point = input.new_tensor(zero_point, dtype=_C.int32)
    return _fake_quantize(input, scale, zero_point, quant_min, quant_max, "per_tensor")


def fake_quantize_per_channel_affine(
    input: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: int, quant_max: int
) -> Tensor:
    """``fake_quantize_per_tensor_affine`` with a scale and a zero point for each slice.

    Args:
        input: of any shape, floating.
        scale: of shape (n,), where n is the input's size in ``axis``.
        zero_point: of shape (n,).
        axis: the dimension of the slices.
        quant_min: the smallest number.
        quant_max: the largest number.

    >>> x, zeros = taeda.tensor([[0.3], [0.3]]), taeda.zeros(2, dtype=taeda.int32)
    >>> taeda.fake_quantize_per_channel_affine(x, taeda.tensor([0.25, 1.0]), zeros, 0, 0, 7)
    tensor([[0.2500],
            [0.0000]])
    """
    shape = [1] * input.dim()
    shape[axis] = input.size(axis)
    for name, value in (("scale", scale), ("zero_point", zero_point)):
        if value.shape != (input.size(axis),):
            raise RuntimeError(
                f"fake_quantize_per_channel_affine(): {name} must have shape "
                f"({input.size(axis)},), got {tuple(value.shape)}"
            )
    parts = scale.reshape(shape), zero_point.reshape(shape)
    return _fake_quantize(input, *parts, quant_min, quant_max, "per_channel")


def _fake_quantize(
    x: Tensor, scale: Tensor, zero_point: Tensor, low: int, high: int, kind: str
) -> Tensor:
    if low > high:
        raise RuntimeError(
            f"fake_quantize_{kind}_affine(): quant_min {low} must not exceed quant_max {high}"
        )
    with taeda.no_grad():
        number = (x.float() * (1 / scale) + zero_point).round()
        inside = (number >= low) & (number <= high)
        rounded = ((number.clamp(low, high) - zero_point) * scale).to(x.dtype)
    if not (taeda.is_grad_enabled() and x.requires_grad):
        return rounded
    # The value is `rounded` exactly; the gradient is that of `x` where it was in the range.
    return _PassGradient.apply(x, rounded, inside)


class _PassGradient(taeda.autograd.Function):
    """Another value for a tensor, whose gradient passes where `inside`."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, value: Tensor, inside: Tensor) -> Tensor:
        ctx.save_for_backward(inside)
        return value.clone()

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (inside,) = ctx.saved_tensors
        return grads[0] * inside, None, None


# ---- products of sparse matrices under old names ------------------------------------------------


def smm(input: Tensor, mat: Tensor) -> Tensor:
    """The product of a sparse and a dense matrix, as a sparse one.

    >>> taeda.smm(taeda.eye(2).to_sparse(), taeda.ones(2, 1)).to_dense()
    tensor([[1.],
            [1.]])
    """
    return sspaddmm(taeda.sparse_coo_tensor(size=(input.size(0), mat.size(1))), input, mat, beta=0)


def hspmm(mat1: Tensor, mat2: Tensor) -> Tensor:
    """The product of a sparse and a dense matrix, with those rows that may differ from zero.

    Returns:
        A ``sparse_coo`` tensor with one sparse and one dense dimension.

    >>> a = taeda.sparse_coo_tensor([[1], [0]], [2.0], (3, 3))
    >>> taeda.hspmm(a, taeda.ones(3, 2)).coalesce().values()
    tensor([[2., 2.]])
    """
    rows = mat1.coalesce().indices()[0].unique()
    values = taeda.sparse.mm(mat1, mat2)[rows]
    shape = (mat1.size(0), mat2.size(1))
    return taeda.sparse_coo_tensor(rows.unsqueeze(0), values, shape)


def sspaddmm(
    input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1
) -> Tensor:
    """``beta * input + alpha * (mat1 @ mat2)`` for sparse ``input``, ``mat1`` and dense ``mat2``.

    Returns:
        A ``sparse_coo`` matrix that is not coalesced: the elements of ``input`` and, for each
        row that ``mat1`` has elements in, all of the product.

    >>> eye = taeda.eye(2).to_sparse()
    >>> taeda.sspaddmm(eye, eye, taeda.ones(2, 2)).to_dense()
    tensor([[2., 1.],
            [1., 2.]])
    """
    product = hspmm(mat1, mat2)
    rows, values = product._indices()[0], product._values()
    columns = taeda.arange(values.size(1), device=rows.device)
    indices = taeda.stack((
        rows.repeat_interleave(columns.numel()),
        columns.repeat(rows.numel()),
    ))  # fmt: skip
    added = alpha * values.flatten()
    if beta != 0 and input._nnz():
        input = input.coalesce()
        indices = taeda.cat((input.indices(), indices), 1)
        added = taeda.cat((beta * input.values(), added))
    return taeda.sparse_coo_tensor(indices, added, product.shape)


# ---- arithmetic of numbers that might be symbolic -----------------------------------------------


def sym_float(a: Any) -> float:
    """``float(a)``: no number is symbolic."""
    return float(a)


def sym_int(a: Any) -> int:
    """``a`` without its fraction, as an int."""
    return math.trunc(a)


def sym_max(a: Any, b: Any) -> Any:
    """The larger of two numbers; a float where one of them is."""
    return max(a, b) * 1.0 if isinstance(a, float) or isinstance(b, float) else max(a, b)


def sym_min(a: Any, b: Any) -> Any:
    """The smaller of two numbers; a float where one of them is."""
    return min(a, b) * 1.0 if isinstance(a, float) or isinstance(b, float) else min(a, b)


def sym_not(a: bool) -> bool:
    """``not a``."""
    return operator.not_(a)


def sym_ite(b: bool, t: Any, f: Any) -> Any:
    """``t`` if ``b``, else ``f``."""
    if not isinstance(b, bool) or type(t) is not type(f):
        raise AssertionError("sym_ite(): expected a bool and two values of one type")
    return t if b else f


def sym_sum(args: Iterable[Any]) -> Any:
    """The sum of numbers."""
    return sum(args)


# ---- parts of sparse tensors, copied ------------------------------------------------------------


def values_copy(input: Any) -> Tensor:
    """A copy of a sparse tensor's values."""
    return input.values().clone()


def indices_copy(input: Any) -> Tensor:
    """A copy of the indices of a ``sparse_coo`` tensor."""
    return input.indices().clone()


def crow_indices_copy(input: Any) -> Tensor:
    """A copy of where the rows of a ``sparse_csr`` or ``sparse_bsr`` matrix begin."""
    return input.crow_indices().clone()


def col_indices_copy(input: Any) -> Tensor:
    """A copy of the columns of the elements of a ``sparse_csr`` or ``sparse_bsr`` matrix."""
    return input.col_indices().clone()


def ccol_indices_copy(input: Any) -> Tensor:
    """A copy of where the columns of a ``sparse_csc`` or ``sparse_bsc`` matrix begin."""
    return input.ccol_indices().clone()


def row_indices_copy(input: Any) -> Tensor:
    """A copy of the rows of the elements of a ``sparse_csc`` or ``sparse_bsc`` matrix."""
    return input.row_indices().clone()
