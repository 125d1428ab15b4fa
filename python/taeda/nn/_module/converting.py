"""The part of Module that moves and casts its tensors."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import taeda
from taeda import _C
from taeda._C import Tensor
from taeda.nn.parameter import Parameter
from taeda.utils._swapping import swap_tensors

if TYPE_CHECKING:
    from typing_extensions import Self


def _takes_data(tensor: Tensor, data: Tensor) -> bool:
    """Whether a tensor may have the memory of another. Those that have none do not."""
    if _C._is_placeholder(tensor) or _C._is_placeholder(data):
        return False
    return tensor.is_meta == data.is_meta


class Converting:
    """`to`, `cuda`, `float` and their like: one function applied to every tensor of a module."""

    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Replace the data of every parameter, of its gradient and of every buffer by `fn` of it.

        A parameter stays the same object, so that optimizers keep hold of it, unless it moves to
        or from the meta device, or ``__future__`` says otherwise.
        """
        overwrite, swap = _switches()
        if recurse:
            for module in self.children():  # type: ignore[attr-defined]
                module._apply(fn)
        for name, parameter in self._parameters.items():
            if parameter is None:
                continue
            grad = parameter.grad
            with taeda.no_grad():
                data = fn(parameter)
            if swap:
                parameter.grad = None
                swap_tensors(parameter, Parameter(data, parameter.requires_grad))
            elif _takes_data(parameter, data) and not overwrite:
                parameter.data = data
            else:
                parameter = self._parameters[name] = Parameter(data, parameter.requires_grad)
            if grad is not None:
                with taeda.no_grad():
                    grad_data = fn(grad)
                if _takes_data(grad, grad_data) and parameter.grad is grad:
                    grad.data = grad_data
                else:
                    parameter.grad = grad_data.requires_grad_(grad.requires_grad)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Move and cast the parameters and buffers, in place, and return the module.

        `to(device=None, dtype=None, non_blocking=False, *, memory_format=None)`,
        `to(dtype, non_blocking=False)` or `to(tensor, non_blocking=False)`.

        Args:
            device: where to move them.
            dtype: a floating or complex dtype; tensors of other dtypes keep theirs.
            tensor: one whose device and dtype to use.
            non_blocking: copy asynchronously from pinned memory to an accelerator.
            memory_format: a layout for 4-dimensional (`channels_last`) or 5-dimensional
                (`channels_last_3d`) tensors.

        >>> layer = taeda.nn.Linear(2, 2).to(taeda.float64)
        >>> layer.weight.dtype
        taeda.float64
        """
        device, dtype, non_blocking, memory_format = _parse_to(*args, **kwargs)
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(
                f"{type(self).__name__}.to: nn.Module.to only accepts floating point or complex "
                f"dtypes, but got desired dtype={dtype}"
            )
        rank = None
        if memory_format is not None and memory_format is not taeda.preserve_format:
            rank = {taeda.channels_last: 4, taeda.channels_last_3d: 5}.get(memory_format, 0)

        def convert(tensor: Tensor) -> Tensor:
            cast = tensor.is_floating_point() or tensor.is_complex()
            to_dtype = dtype if cast else None
            if tensor.is_meta and device is not None and device.type != "meta":
                raise NotImplementedError(
                    f"{type(self).__name__}.to: Cannot copy out of meta tensor; no data! Please "
                    "use Module.to_empty() instead of Module.to() when moving module from meta to "
                    "a different device."
                )
            if rank is not None and rank in (0, tensor.dim()):
                return tensor.to(
                    device=device,
                    dtype=to_dtype,
                    non_blocking=non_blocking,
                    memory_format=memory_format,
                )
            return tensor.to(device=device, dtype=to_dtype, non_blocking=non_blocking)

        return self._apply(convert)

    def to_empty(self, *, device: Any, recurse: bool = True) -> Self:
        """Move to `device` without the values: the tensors there are uninitialised.

        This is how a module made on the meta device gets memory.
        """
        return self._apply(lambda t: taeda.empty_like(t, device=device), recurse=recurse)

    def type(self, dst_type: Any) -> Self:
        """Cast every parameter and buffer, whatever its dtype, to `dst_type`."""
        return self._apply(lambda t: t.type(dst_type))

    def float(self) -> Self:
        """Cast the floating-point parameters and buffers to float32."""
        return self._apply(lambda t: t.float() if t.is_floating_point() else t)

    def double(self) -> Self:
        """Cast the floating-point parameters and buffers to float64."""
        return self._apply(lambda t: t.double() if t.is_floating_point() else t)

    def half(self) -> Self:
        """Cast the floating-point parameters and buffers to float16."""
        return self._apply(lambda t: t.half() if t.is_floating_point() else t)

    def bfloat16(self) -> Self:
        """Cast the floating-point parameters and buffers to bfloat16."""
        return self._apply(lambda t: t.bfloat16() if t.is_floating_point() else t)

    def cpu(self) -> Self:
        """Move the parameters and buffers to the CPU."""
        return self._apply(lambda t: t.cpu())

    def cuda(self, device: Any = None) -> Self:
        """Move the parameters and buffers to a CUDA device, by default the current one."""
        return self._apply(lambda t: t.cuda(device))

    def share_memory(self) -> Self:
        """Move the parameters and buffers to memory shared between processes."""
        return self._apply(lambda t: t.share_memory_())


def _switches() -> tuple[bool, bool]:
    """What ``taeda.__future__`` says of new parameters; it need not be loaded."""
    switches = sys.modules.get("taeda.__future__")
    return (switches._overwrite, switches._swap) if switches else (False, False)


def _parse_to(
    *args: Any,
    device: Any = None,
    dtype: Any = None,
    tensor: Any = None,
    other: Any = None,
    non_blocking: bool = False,
    copy: Any = None,
    memory_format: Any = None,
) -> tuple[Any, Any, bool, Any]:
    """Sort out the forms of `to`; return device, dtype, non_blocking and memory_format."""
    if copy:
        raise RuntimeError("Module.to: .to() does not accept copy argument")
    given = list(args)
    tensor = other if tensor is None else tensor
    if given and isinstance(given[0], Tensor):
        tensor = given.pop(0)
    elif given and isinstance(given[0], _C.dtype):
        dtype = given.pop(0)
    elif given:
        device = given.pop(0)
        if given and (given[0] is None or isinstance(given[0], _C.dtype)):
            dtype = given.pop(0)
    if given:
        non_blocking = given.pop(0)
        if given and given[0] is False:  # copy
            given.pop(0)
    if given or not isinstance(non_blocking, (bool, int)):
        names = ", ".join(type(argument).__name__ for argument in args)
        raise TypeError(
            "Module.to: expected (device, dtype, non_blocking), (dtype, non_blocking) or "
            f"(tensor, non_blocking), got ({names})"
        )
    if dtype is not None and not isinstance(dtype, _C.dtype):
        raise TypeError(f"Module.to: dtype must be taeda.dtype, not {type(dtype).__name__}")
    if tensor is not None:
        device, dtype = tensor.device, tensor.dtype
    if device is not None and not isinstance(device, _C.device):
        device = _C.device(device)
    return device, dtype, bool(non_blocking), memory_format
