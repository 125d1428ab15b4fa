"""Rarely used methods of Tensor, written in Python."""

from __future__ import annotations

import warnings
from typing import Any

from taeda import _C

Tensor = _C.Tensor

__all__ = ["METHODS"]


def _adjoint(self: Any) -> Any:
    """Return a view with the last two dimensions swapped, its elements conjugated."""
    if self.dim() == 1:
        raise RuntimeError("adjoint(): only matrices have an adjoint, got a tensor of 1 dimension")
    return self.mH if self.dim() else self.conj()


def _dim_order(self: Any, *, ambiguity_check: Any = False) -> tuple[int, ...]:
    """Return the dimensions in memory order, the outermost first.

    Args:
        ambiguity_check: raise an error where dimensions of size 1 allow several orders.
    """
    if not isinstance(ambiguity_check, bool):
        raise TypeError(
            f"dim_order(): ambiguity_check must be a bool, got {type(ambiguity_check).__name__}"
        )
    order = sorted(range(self.dim()), key=lambda d: -self.stride(d))
    strides = [self.stride(d) for d in order]
    if ambiguity_check and len(set(strides)) < len(strides):
        raise RuntimeError(f"dim_order(): strides {self.stride()} allow several orders")
    return tuple(order)


def _fill_diagonal(self: Any, fill_value: Any, wrap: bool = False) -> Any:
    """Fill the main diagonal, in place.

    Args:
        fill_value: a number.
        wrap: go on below, after a row that is left out, where a matrix has more rows than columns.

    Raises:
        RuntimeError: there are fewer than 2 dimensions, or more than 2 that differ in size.
    """
    if self.dim() < 2:
        raise RuntimeError(f"fill_diagonal_(): dimensions must be at least 2, got {self.dim()}")
    if self.dim() > 2:
        if len(set(self.shape)) != 1:
            raise RuntimeError(f"fill_diagonal_(): sizes {list(self.shape)} must be equal")
        place = (self.shape[0],), (sum(self.stride()),), self.storage_offset()
        self.as_strided(*place).fill_(fill_value)
        return self
    rows, columns = self.shape
    for start in range(0, rows if wrap else min(rows, 1), columns + 1):
        self[start : start + columns].diagonal().fill_(fill_value)
    return self


def _swapaxes(self: Any, axis0: int, axis1: int) -> Any:
    """Swap two dimensions, in place."""
    return self.transpose_(axis0, axis1)


def _swapdims(self: Any, dim0: int, dim1: int) -> Any:
    """Swap two dimensions, in place."""
    return self.transpose_(dim0, dim1)


def _resize(self: Any, *sizes: Any) -> Any:
    """Return the elements with other sizes of the same product. Deprecated for ``reshape``."""
    warnings.warn("Tensor.resize is deprecated; use reshape or resize_", stacklevel=2)
    return self.reshape(*sizes)


def _resize_as(self: Any, tensor: Any) -> Any:
    """Return the elements with another tensor's sizes. Deprecated for ``reshape_as``."""
    warnings.warn("Tensor.resize_as is deprecated; use reshape_as or resize_as_", stacklevel=2)
    return self.reshape(tensor.shape)


def _is_distributed(self: Any) -> bool:
    """Whether the tensor is spread over several processes: no."""
    return False


def _map2(self: Any, x: Any, y: Any, callable: Any) -> Any:
    """Replace each element, in place, by a Python function of it and two others. Slow.

    Args:
        x, y: the other elements, broadcast to this tensor's shape.
        callable: takes three numbers and returns one.
    """
    if self.requires_grad or x.requires_grad or y.requires_grad:
        raise TypeError("map2_(): not for tensors that require gradients")
    x, y = x.expand_as(self), y.expand_as(self)
    numbers = zip(*(t.reshape(-1).tolist() for t in (self, x, y)), strict=True)
    made = _C.tensor([callable(*three) for three in numbers], dtype=self.dtype)
    return self.copy_(made.reshape(self.shape))


def _module_load(self: Any, other: Any, assign: bool = False) -> Any:
    """Return the tensor with which ``Module.load_state_dict`` replaces this one, given ``other``.

    Args:
        other: the value from the state.
        assign: keep the value's own memory, instead of copying.
    """
    return other.detach() if assign else self.copy_(other).detach()


def _pin_memory(self: Any, device: Any = None) -> Any:
    """A copy in pinned memory, from which a device copies while the host goes on.

    It is the tensor itself where that is pinned. Copies with ``non_blocking=True`` make use of it.

    Args:
        device: as in PyTorch, which deprecates it: the kind of device, ``"cuda"``.

    Raises:
        RuntimeError: there is no such device, or the tensor is not a dense one of the CPU.
    """
    if device is not None and _C.device(device).type != "cuda":
        raise RuntimeError(f"pin_memory(): device must be a cuda device, got {device!r}")
    return self if self.is_pinned() else _C._pinned_copy(self)


def _record_stream(self: Any, stream: Any) -> None:
    """Say that a stream of the device works with the memory.

    When the tensor is gone, its memory is used again after the work that the stream has then.

    Args:
        stream: a ``cuda.Stream`` other than the one that was current when the tensor was made.

    Raises:
        RuntimeError: the tensor is not on a CUDA device.
    """
    if self.device.type != "cuda":
        raise RuntimeError(f"record_stream(): {self.device} is no cuda device")
    from taeda.cuda import _streams

    _streams.record_use(self, stream)


_set_to = Tensor.set_


def _set_(self: Any, source: Any = None, *args: Any, **kwargs: Any) -> Any:
    """Look at other memory, in place.

    Args:
        source: a tensor; or a storage, with ``storage_offset``, ``size`` and ``stride`` in it.
            None for no memory.
    """
    untyped = getattr(source, "_untyped", None)
    if untyped is not None:
        if source.dtype != self.dtype:
            raise RuntimeError(f"set_(): expected a storage of {self.dtype}, got {source.dtype}")
        source = untyped
    return _set_to(self, *(() if source is None else (source,)), *args, **kwargs)


def _storage_type(self: Any) -> Any:
    """Return the type of the tensor's storage, such as ``taeda.FloatStorage``."""
    from taeda.storage import type_of

    return type_of(self.dtype)


def _const_data_ptr(self: Any) -> int:
    """Return the address of the first element, to read from."""
    return int(self.data_ptr())


def _dequantize(self: Any) -> Any:
    """Return the tensor in float32: none of taeda's is quantised."""
    return self.to(_C.float32)


def _absent(device: str, error: type[Exception]) -> Any:
    def move(self: Any, *args: Any, **kwargs: Any) -> Any:
        raise error(f"Tensor.{device}: this build has no {device} device")

    move.__doc__ = f"Copy to a device of the kind {device}: {error.__name__}, as there is none."
    return move


def _smm(self: Any, mat: Any) -> Any:
    """Return the product with a dense matrix, as a sparse one."""
    from taeda._functional.more_functions import smm

    return smm(self, mat)


def _sspaddmm(self: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """Return ``beta * self + alpha * (mat1 @ mat2)``, as a sparse matrix."""
    from taeda._functional.more_functions import sspaddmm

    return sspaddmm(self, mat1, mat2, beta=beta, alpha=alpha)


def _to_padded_tensor(self: Any, padding: float, output_size: Any = None) -> Any:
    """Return a dense tensor with padding behind each sequence of a nested one.

    The arguments are those of ``taeda.nested.to_padded_tensor``.
    """
    from taeda.nested import to_padded_tensor

    return to_padded_tensor(self, padding, output_size)


METHODS = {
    "adjoint": _adjoint,
    "const_data_ptr": _const_data_ptr,
    "dequantize": _dequantize,
    "ipu": _absent("ipu", RuntimeError),
    "mtia": _absent("mtia", AssertionError),
    "set_": _set_,
    "smm": _smm,
    "sspaddmm": _sspaddmm,
    "storage_type": _storage_type,
    "xpu": _absent("xpu", AssertionError),
    "dim_order": _dim_order,
    "fill_diagonal_": _fill_diagonal,
    "is_distributed": _is_distributed,
    "map2_": _map2,
    "module_load": _module_load,
    "pin_memory": _pin_memory,
    "record_stream": _record_stream,
    "resize": _resize,
    "resize_as": _resize_as,
    "swapaxes_": _swapaxes,
    "swapdims_": _swapdims,
    "to_padded_tensor": _to_padded_tensor,
}
