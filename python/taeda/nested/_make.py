"""The functions that make nested tensors."""

from __future__ import annotations

from typing import Any

import taeda
from taeda import _C
from taeda._C import Tensor
from taeda._symbols import jagged
from taeda.nested import _ragged
from taeda.nested._padded import to_padded
from taeda.nested._strided import IrregularTensor, stack_up
from taeda.nested._tensor import NestedTensor, dim_in, make

__all__ = [
    "as_nested_tensor",
    "masked_select",
    "narrow",
    "nested_tensor",
    "nested_tensor_from_jagged",
    "to_padded_tensor",
]

_ops = _C.ops


def _is_jagged(layout: Any) -> bool:
    """Whether a layout argument says jagged; RuntimeError where it is neither."""
    if layout is None or layout is taeda.strided:
        return False
    if layout is not jagged:
        raise RuntimeError(f"Specified layout is unsupported for nested tensors: {layout}")
    return True


def nested_tensor_of(tensors: list[Tensor], strided: bool) -> NestedTensor:
    """One nested tensor of dense ones, with their history."""
    if not tensors:
        if not strided:
            raise RuntimeError("Cannot construct a nested tensor from an empty tensor list")
        ragged = _ragged.of_counts([], taeda.tensor([0]))
        return make(_ops.zeros((0,)), ragged, 1, True)
    first = tensors[0]
    if any(t.dim() != first.dim() for t in tensors):
        raise RuntimeError(
            "When constructing a nested tensor, all tensors in list must have the same dim"
        )
    if any(t.dtype != first.dtype for t in tensors):
        raise RuntimeError(
            "When constructing a nested tensor, all tensors in list must have the same dtype"
        )
    if any(t.device != first.device for t in tensors):
        raise RuntimeError(
            "When constructing a nested tensor, all tensors in list must be on the same device"
        )
    if first.dim() == 0:
        raise RuntimeError("Cannot construct a nested tensor from a list of zero-dim tensors")
    columns = list(zip(*(t.shape for t in tensors), strict=True))
    differ = [d for d, sizes in enumerate(columns) if len(set(sizes)) > 1] or [0]
    if len(differ) > 1:
        if strided:
            return stack_up(tensors)
        raise RuntimeError(
            "Cannot represent given tensor list as a nested tensor with the jagged layout. Note "
            "that the jagged layout only allows for a single ragged dimension. For example: "
            "(B, *, D_0, D_1, ..., D_N), with ragged * dim."
        )
    counts = _ops.zeros((1,), dtype=taeda.int64, device=first.device)
    ragged = _ragged.of_counts(list(columns[differ[0]]), counts)
    return make(_ops.cat(tensors, differ[0]), ragged, differ[0] + 1, strided)


def nested_tensor(
    tensor_list: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> NestedTensor:
    """Copy tensors of different sizes into one nested tensor, without their history.

    Args:
        tensor_list: tensors, or what makes tensors, that differ in one dimension; in strided layout
            they may differ in several, which few operations take.
        dtype, device: of the result; by default those of the tensors.
        layout: ``taeda.jagged``, or ``taeda.strided`` (the default, which has no ``shape``).
        requires_grad: whether operations on it are recorded.
        pin_memory: keep the values in pinned memory, for an accelerator.

    Raises:
        RuntimeError: the tensors do not go together.

    >>> x = taeda.nested.nested_tensor([[1, 2], [3, 4, 5]], layout=taeda.jagged)
    >>> x.to_padded_tensor(0)
    tensor([[1, 2, 0],
            [3, 4, 5]])
    """
    strided = not _is_jagged(layout)
    parts = tensor_list.unbind() if isinstance(tensor_list, Tensor) else list(tensor_list)
    with taeda.no_grad():
        tensors = [taeda.as_tensor(t, dtype=dtype, device=device).detach() for t in parts]
        result: Any = nested_tensor_of(tensors, strided)
        if len(tensors) == 1:
            result = result.clone()
        if pin_memory:
            result._values_ = result._values_.pin_memory()
    return result.requires_grad_(requires_grad)


def as_nested_tensor(
    ts: Any, dtype: Any = None, device: Any = None, layout: Any = None
) -> NestedTensor:
    """Make a nested tensor of tensors, through which gradients flow to them.

    Args:
        ts: a list of tensors; or one tensor, whose first dimension is the batch; or a nested tensor
            of the layout, which is returned.
        dtype, device: of the result; by default those of the tensors.
        layout: ``taeda.jagged`` or ``taeda.strided`` (the default).
    """
    strided = not _is_jagged(layout)
    if isinstance(ts, NestedTensor):
        if ts._strided_ != strided:
            raise RuntimeError(
                "as_nested_tensor(): Converting between nested tensor layouts is not supported"
            )
        same: Any = ts.to(device, dtype) if device is not None or dtype is not None else ts
        return same
    if isinstance(ts, Tensor):
        if ts.dim() < 2:
            raise RuntimeError(
                f"as_nested_tensor(): a tensor needs 2 dimensions or more, got {ts.dim()}"
            )
        ts = taeda.as_tensor(ts, dtype=dtype, device=device)
        offsets = _ops.arange(ts.size(0) + 1, device=ts.device) * ts.size(1)
        return make(ts.flatten(0, 1), _ragged.of_offsets(offsets, None, None, None), 1, strided)
    if not isinstance(ts, (list, tuple)):
        raise TypeError(
            "as_nested_tensor(): Expected first argument to be a tensor or a list / tuple of "
            f"tensors, got {type(ts).__name__}"
        )
    return nested_tensor_of([taeda.as_tensor(t, dtype=dtype, device=device) for t in ts], strided)


def _check_indices(name: str, what: str, x: Any) -> None:
    if not isinstance(x, Tensor):
        raise TypeError(f"{name}(): {what} must be Tensor, not {type(x).__name__}")
    if x.dim() != 1 or x.is_floating_point() or x.is_complex() or x.dtype == taeda.bool:
        raise RuntimeError(
            f"{name}(): {what} must be a 1-D tensor of integers, got {x.dtype} of shape "
            f"{list(x.shape)}"
        )


def nested_tensor_from_jagged(
    values: Tensor,
    offsets: Tensor | None = None,
    lengths: Tensor | None = None,
    jagged_dim: int | None = None,
    min_seqlen: int | None = None,
    max_seqlen: int | None = None,
) -> NestedTensor:
    """Make a nested tensor, of jagged layout, of sequences that lie one after the other.

    Args:
        values: the sequences, in dimension ``jagged_dim - 1``. It is not copied.
        offsets: where each begins, and where the last ends: (batch + 1). Tensors that are made with
            the same ``offsets`` go together.
        lengths: how many elements each has: (batch). With ``offsets``, that leaves holes.
        jagged_dim: which dimension of the result is ragged, by default 1.
        min_seqlen, max_seqlen: the least and the greatest length, where they are known.

    Raises:
        RuntimeError: the offsets and lengths do not fit the values.

    >>> x = taeda.nested.nested_tensor_from_jagged(taeda.arange(5), taeda.tensor([0, 2, 5]))
    >>> x.unbind()
    (tensor([0, 1]), tensor([2, 3, 4]))
    """
    name = "nested_tensor_from_jagged"
    if offsets is None and lengths is None:
        raise RuntimeError(f"{name}(): At least one of offsets or lengths is required.")
    if not isinstance(values, Tensor) or isinstance(values, NestedTensor):
        raise TypeError(f"{name}(): values must be a dense tensor, got {type(values).__name__}")
    dim = 1 if jagged_dim is None else jagged_dim
    if dim < 1:
        raise ValueError(f"Expected jagged_dim >=1, but got {dim}.")
    if dim > values.dim():
        raise RuntimeError(f"{name}(): values of {values.dim()} dimensions have no dimension {dim}")
    if lengths is not None:
        _check_indices(name, "lengths", lengths)
    if offsets is None:
        assert lengths is not None
        offsets, lengths = _ops.pad(lengths.cumsum(0), (1, 0)), None
    _check_indices(name, "offsets", offsets)
    ragged = _ragged.of_offsets(offsets, lengths, min_seqlen, max_seqlen)
    _check_places(name, ragged, values.size(dim - 1))
    return make(values, ragged, dim)


def _check_places(name: str, ragged: Any, total: int) -> None:
    """Refuse sequences that are not all within the values."""
    starts, counts = ragged.starts, ragged.counts
    if not starts or (ragged.lengths is not None and len(counts) != len(starts) - 1):
        raise RuntimeError(
            f"{name}(): offsets must be one more than lengths, got {len(starts)} and {len(counts)}"
        )
    ends = [a + n for a, n in zip(starts, counts, strict=False)]
    if min([*starts, *counts]) < 0 or max([starts[-1], *ends]) > total:
        raise RuntimeError(
            f"{name}(): offsets must not decrease, and all sequences must be within the {total} "
            f"elements of the values"
        )
    if counts and not ragged.shortest <= min(counts) <= max(counts) <= ragged.longest:
        raise RuntimeError(
            f"{name}(): min_seqlen {ragged.shortest} and max_seqlen {ragged.longest} do not bound "
            f"the lengths, which are from {min(counts)} to {max(counts)}"
        )


def to_padded_tensor(input: Tensor, padding: float, output_size: Any = None) -> Tensor:
    """Make a dense tensor, with padding behind each sequence.

    Args:
        input: a nested tensor.
        padding: the number to fill up with.
        output_size: the sizes of the result, by default those that the longest sequence needs. In
            jagged layout the ragged dimension alone may differ: of longer sequences the end is left
            out.
    """
    if not isinstance(input, NestedTensor):
        raise NotImplementedError("to_padded_tensor(): a nested tensor is needed, got a dense one")
    if isinstance(input, IrregularTensor):
        return input.padded(padding, output_size)
    width = None if output_size is None else _chosen_width(input, list(output_size))
    padded = to_padded(input, padding, width)
    return padded.clone() if input._ragged_.is_regular else padded


def _chosen_width(input: NestedTensor, sizes: list[int]) -> int:
    """The ragged size that `output_size` asks for."""
    wanted = [len(input), *input._values_.shape]
    wanted[input._dim_] = sizes[input._dim_] if len(sizes) == input.dim() else -1
    if sizes != wanted:
        raise RuntimeError(
            f"to_padded_tensor(): output_size {sizes} does not fit a nested tensor of shape "
            f"{tuple(input._size())}: only the ragged size can be chosen"
        )
    return sizes[input._dim_]


def narrow(
    tensor: Tensor, dim: int, start: Any, length: Any, layout: Any = taeda.strided
) -> NestedTensor:
    """Take a part of each item of a batch, as a nested tensor that shares the memory.

    Args:
        tensor: dense, (batch, length, ...).
        dim: 1 for jagged layout; for strided layout 0.
        start, length: where each part begins and how long it is: numbers, or for jagged layout
            tensors with a number for each item.
        layout: ``taeda.jagged`` or ``taeda.strided`` (the default).
    """
    if not _is_jagged(layout):
        if isinstance(start, Tensor) or isinstance(length, Tensor):
            raise RuntimeError("start and length must be integers for the strided layout NT impl")
        if dim_in(dim, tensor.dim()) != 0:
            raise RuntimeError(f"narrow(): only dim=0 supported for nested tensors, but got: {dim}")
        return as_nested_tensor(tensor.narrow(0, start, length))
    if dim_in(dim, tensor.dim()) != 1:
        raise RuntimeError("jagged layout only supports dim=1")
    batch, width = tensor.shape[:2]
    device = tensor.device
    starts, counts = (
        x.to(device=device, dtype=taeda.int64).expand(batch)
        if isinstance(x, Tensor)
        else _ops.full((batch,), x, dtype=taeda.int64, device=device)
        for x in (start, length)
    )
    if bool(((starts < 0) | (counts < 0) | (starts + counts > width)).any()):
        raise RuntimeError(f"narrow(): start and length must be within the {width} elements")
    begins = _ops.arange(batch, device=device) * width + starts
    offsets = _ops.cat([begins, (begins + counts)[-1:]])
    return make(tensor.flatten(0, 1), _ragged.Ragged(offsets, counts.contiguous()), 1)


def masked_select(tensor: Tensor, mask: Tensor) -> NestedTensor:
    """The elements where a mask holds, row by row: a nested tensor (rows, ragged).

    Args:
        tensor: dense, (..., n); its leading dimensions are the rows.
        mask: of bools, broadcast with it.

    >>> x, mask = taeda.arange(4).reshape(2, 2), taeda.tensor([True, False])
    >>> [row.tolist() for row in taeda.nested.masked_select(x, mask).unbind()]
    [[0], [2]]
    """
    if isinstance(tensor, NestedTensor) or isinstance(mask, NestedTensor):
        raise NotImplementedError("nested.masked_select(): the tensor and the mask must be dense")
    if tensor.layout is not taeda.strided:
        raise RuntimeError(
            f"torch.nested.masked_select requires a strided tensor, given {tensor.layout}"
        )
    tensor, mask = _ops.broadcast_tensors(tensor, mask)
    values = tensor.masked_select(mask)
    counts = mask.sum(-1).reshape(-1)
    offsets = _ops.pad(counts.cumsum(0), (1, 0))
    return make(values, _ragged.Ragged(offsets), 1)


# ---- pickling -----------------------------------------------------------------------------------


def state(x: NestedTensor) -> tuple[Any, ...]:
    """What `rebuild` makes the tensor of."""
    values, grad = x._values_.detach(), x.requires_grad
    if isinstance(x, IrregularTensor):
        return values, None, None, x._sizes_, True, grad
    return values, x._ragged_.offsets, x._ragged_.lengths, x._dim_, x._strided_, grad


def rebuild(
    values: Tensor, offsets: Any, lengths: Any, dim: Any, strided: bool, requires_grad: bool
) -> NestedTensor:
    """Rebuild a tensor from the result of `state`, which is checked."""
    if offsets is None:
        result: NestedTensor = IrregularTensor.of(values, [tuple(s) for s in dim])
    else:
        result = nested_tensor_from_jagged(values, offsets, lengths, dim)
        result._strided_ = strided
    return result.requires_grad_(requires_grad)
