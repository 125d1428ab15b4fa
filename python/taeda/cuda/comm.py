"""Tensors sent to several CUDA devices, and brought together again, by one process.

Without a CUDA device all of it raises AssertionError, which says why.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import taeda
from taeda import Tensor

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = [
    "broadcast",
    "broadcast_coalesced",
    "gather",
    "reduce_add",
    "reduce_add_coalesced",
    "scatter",
]


def _device(who: str, given: Any) -> Any:
    """Return one of CUDA's devices, of an index or as it is named."""
    device = taeda.device("cuda", given) if isinstance(given, int) else taeda.device(given)
    if device.type != "cuda":
        raise ValueError(f"cuda.comm.{who}: Expected a non cpu device, but got: {device}")
    if device.index is None:
        return taeda.device("cuda", taeda.cuda.current_device())
    return device


def _need_cuda(who: str, tensors: Iterable[Tensor]) -> None:
    for i, x in enumerate(tensors):
        if not x.is_cuda:
            raise AssertionError(
                f"cuda.comm.{who}: expects all inputs to be on GPUs, but input {i} is on {x.device}"
            )


def _need_one(who: str, devices: Any, out: Any) -> None:
    if (devices is None) == (out is None):
        raise RuntimeError(
            f"cuda.comm.{who}: exactly one of 'devices' and 'out' must be given, got devices="
            f"{devices} and out={out}"
        )


def broadcast(
    tensor: Tensor,
    devices: Iterable[Any] | None = None,
    *,
    out: Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]:
    """Copy a tensor to devices.

    Args:
        tensor: on the CPU or a GPU.
        devices: names or indices of GPUs.
        out: tensors on GPUs to copy to, in place of ``devices``.

    Returns:
        The copies, one on each device; on its own device the tensor itself. Or ``out``.

    Raises:
        RuntimeError: not exactly one of ``devices`` and ``out`` is given.
        AssertionError: there is no CUDA.
    """
    _need_one("broadcast", devices, out)
    if out is not None:
        _need_cuda("broadcast", out)
        for x in out:
            x.copy_(tensor, non_blocking=True)
        return tuple(out)
    places = [_device("broadcast", d) for d in devices or ()]
    return tuple(tensor.to(place, non_blocking=True) for place in places)


def broadcast_coalesced(
    tensors: Sequence[Tensor], devices: Iterable[Any], buffer_size: int = 10485760
) -> list[tuple[Tensor, ...]]:
    """Copy tensors to devices.

    Args:
        tensors: on one device.
        devices: names or indices of GPUs.
        buffer_size: chooses nothing: each tensor is sent as it is.

    Returns:
        For each device a tuple of the tensors there.
    """
    places = [_device("broadcast_coalesced", d) for d in devices]
    return [tuple(x.to(place, non_blocking=True) for x in tensors) for place in places]


def reduce_add(inputs: Sequence[Tensor], destination: Any = None) -> Tensor:
    """Sum up tensors of one shape from several GPUs, in their order.

    Args:
        inputs: one from each GPU.
        destination: name or index of the GPU for the result; by default the current one.

    Raises:
        RuntimeError: there are none, or their shapes differ.
        AssertionError: one of them is not on a GPU.
    """
    if not inputs:
        raise RuntimeError("cuda.comm.reduce_add: expected at least one tensor")
    _need_cuda("reduce_add", inputs)
    place = _device("reduce_add", "cuda" if destination is None else destination)
    for i, x in enumerate(inputs):
        if x.shape != inputs[0].shape:
            raise ValueError(
                f"cuda.comm.reduce_add: input {i} has invalid size: got {list(x.shape)}, but "
                f"expected {list(inputs[0].shape)}"
            )
    total = inputs[0].to(place, non_blocking=True)
    for i, x in enumerate(inputs[1:]):
        there = x.to(place, non_blocking=True)
        total = total + there if i == 0 else total.add_(there)  # the first sum is a new tensor
    return total


def reduce_add_coalesced(
    inputs: Sequence[Sequence[Tensor]], destination: Any = None, buffer_size: int = 10485760
) -> tuple[Tensor, ...]:
    """Sum up lists of tensors, one list from each GPU, tensor by tensor.

    Args:
        inputs: for each GPU as many tensors, of the same shapes.
        destination: as for ``reduce_add``.
        buffer_size: chooses nothing: each tensor is sent as it is.
    """
    return tuple(reduce_add(same, destination) for same in zip(*inputs, strict=True))


def scatter(
    tensor: Tensor,
    devices: Iterable[Any] | None = None,
    chunk_sizes: Sequence[int] | None = None,
    dim: int = 0,
    streams: Sequence[Any] | None = None,
    *,
    out: Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]:
    """Cut a tensor along a dimension, and send a piece to each device.

    Args:
        tensor: on the CPU or a GPU.
        devices: names or indices of GPUs.
        chunk_sizes: of the pieces; by default they are equal, as far as possible.
        dim: the dimension to cut along.
        streams: for each device the stream to copy in, or None for the current one.
        out: tensors on GPUs whose sizes along ``dim`` add up to the tensor's, to copy to.

    Returns:
        The pieces, or ``out``.

    Raises:
        RuntimeError: not exactly one of ``devices`` and ``out`` is given, or sizes do not add up.
        AssertionError: there is no CUDA.
    """
    _need_one("scatter", devices, out)
    if out is not None:
        if chunk_sizes is not None:
            raise RuntimeError("cuda.comm.scatter: 'chunk_sizes' goes with 'devices', not 'out'")
        _need_cuda("scatter", out)
        for x, piece in zip(out, tensor.split([x.size(dim) for x in out], dim), strict=True):
            x.copy_(piece, non_blocking=True)
        return tuple(out)
    places = [_device("scatter", d) for d in devices or ()]
    if not places:
        raise RuntimeError("cuda.comm.scatter: expected at least one device to scatter to")
    if chunk_sizes is not None and len(chunk_sizes) != len(places):
        raise RuntimeError(
            f"cuda.comm.scatter: expected {len(places)} chunk_sizes, one for each device, got "
            f"{len(chunk_sizes)}"
        )
    pieces = tensor.chunk(len(places), dim)
    if chunk_sizes is not None:
        pieces = tensor.split(list(chunk_sizes), dim)
    flows = [None] * len(pieces) if streams is None else list(streams)
    sent = []
    for piece, place, flow in zip(pieces, places, flows, strict=False):
        with taeda.cuda.stream(flow):
            sent.append(piece.contiguous().to(place, non_blocking=True))
    return tuple(sent)


def gather(
    tensors: Sequence[Tensor],
    dim: int = 0,
    destination: Any = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Join tensors of several GPUs along a dimension, on one device.

    Args:
        tensors: equal in all other dimensions; tensors without dimensions are joined as elements.
        dim: the dimension to join along.
        destination: "cpu", or name or index of a GPU; by default the current one.
        out: a tensor for the result, in place of ``destination``.

    Raises:
        RuntimeError: both are given, or there is no tensor.
        AssertionError: a tensor is not on a GPU.
    """
    if out is not None and destination is not None:
        raise RuntimeError("cuda.comm.gather: 'destination' must not be given together with 'out'")
    if not tensors:
        raise RuntimeError("cuda.comm.gather: expected at least one tensor")
    _need_cuda("gather", tensors)
    if out is not None:
        place = out.device
    elif destination in ("cpu", -1, taeda.device("cpu")):
        place = taeda.device("cpu")
    else:
        place = _device("gather", "cuda" if destination is None else destination)
    joined = [x.to(place) for x in tensors]
    joined = [x.unsqueeze(0) if x.dim() == 0 else x for x in joined]
    return taeda.cat(joined, dim, out=out) if out is not None else taeda.cat(joined, dim)
