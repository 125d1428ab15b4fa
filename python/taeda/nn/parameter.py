"""Tensors that a Module registers by itself: parameters and buffers."""

from __future__ import annotations

import copy
from typing import Any

import taeda
from taeda import _C
from taeda._C import Tensor

__all__ = [
    "Buffer",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "UninitializedTensorMixin",
    "is_lazy",
]


class _ParameterMeta(type(Tensor)):  # type: ignore[misc]
    """Lets a tensor of another class count as an instance when it carries the class's mark.

    `Parameter(x)` of a user's own Tensor subclass keeps that subclass, and is still a Parameter.
    """

    def __instancecheck__(cls, instance: Any) -> bool:
        if type.__instancecheck__(cls, instance):
            return True
        mark = cls.__dict__.get("_mark")
        return mark is not None and isinstance(instance, Tensor) and getattr(instance, mark, False)


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A tensor that becomes one of a Module's parameters when it is assigned as an attribute.

    Args:
        data: the values, shared and not copied. Without it, the parameter is empty.
        requires_grad: whether gradients are recorded for it.

    A tensor of a user's subclass keeps its class; `isinstance(p, Parameter)` holds all the same.

    >>> layer = taeda.nn.Module()
    >>> layer.scale = taeda.nn.Parameter(taeda.ones(2))
    >>> [name for name, _ in layer.named_parameters()]
    ['scale']
    """

    _mark = "_is_param"
    __torch_function__ = _C._disabled_torch_function_impl  # ops on parameters give plain tensors

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Parameter:
        if data is None:
            data = taeda.empty(0)
        if not isinstance(data, Tensor):
            raise TypeError(f"Parameter: data must be a Tensor or None, got {type(data).__name__}")
        kind = type(data)
        if kind is Tensor or issubclass(cls, kind):
            return Tensor._make_subclass(cls, data, requires_grad)
        values = data.detach().requires_grad_(requires_grad)
        if type(values) is not kind:
            raise RuntimeError(
                f"Parameter: {kind.__name__}.detach() must give a {kind.__name__}, "
                f"got {type(values).__name__}"
            )
        parameter: Any = values
        parameter._is_param = True
        return parameter

    def __init__(self, data: Tensor | None = None, requires_grad: bool = True) -> None:
        # State is set in __new__; this documents the constructor's signature.
        super().__init__()

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        if id(self) in memo:
            return memo[id(self)]
        values = self.data.clone(memory_format=taeda.preserve_format)
        result = type(self)(values, self.requires_grad)
        memo[id(self)] = result
        attributes = _own_attributes(self)
        if attributes:
            result.__dict__.update(copy.deepcopy(attributes, memo))
        return result

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return (
            _rebuild_parameter,
            (type(self), self.data, self.requires_grad, _own_attributes(self)),
        )


def _own_attributes(tensor: Tensor) -> dict[str, Any]:
    """The Python attributes that a user has put on a tensor."""
    return {key: value for key, value in tensor.__dict__.items() if key != "_backward_hooks"}


def _rebuild_parameter(
    cls: type, data: Tensor, requires_grad: bool, attributes: dict[str, Any] | None = None
) -> Parameter:
    """Rebuild a pickled Parameter."""
    parameter = cls(data, requires_grad)
    if attributes:
        parameter.__dict__.update(attributes)
    return parameter


class Buffer(Tensor, metaclass=_ParameterMeta):
    """A tensor that becomes one of a Module's buffers when it is assigned as an attribute.

    Args:
        data: the values, shared and not copied. Without it, the buffer is empty.
        persistent: whether the buffer is part of the module's `state_dict`.

    The result is a plain tensor that carries a mark; `isinstance(x, Buffer)` tests the mark.
    """

    _mark = "_is_buffer"
    __torch_function__ = _C._disabled_torch_function_impl  # ops on buffers give plain tensors
    persistent: bool

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Buffer:
        if data is None:
            data = taeda.empty(0)
        if not hasattr(data, "detach"):
            raise AttributeError(
                f"Buffer: data must be a Tensor or None, got {type(data).__name__}"
            )
        buffer: Any = data.detach().requires_grad_(data.requires_grad)
        buffer.persistent = persistent
        buffer._is_buffer = True
        return buffer


def _unusable(name: str) -> ValueError:
    return ValueError(
        f"{name}: an uninitialized parameter was used before the first forward of its lazy "
        "module, or materialize(shape), gave it a shape"
    )


def _refused(name: str) -> Any:
    def refuse(self: Any, *args: Any, **kwargs: Any) -> Any:
        raise _unusable(name)

    refuse.__name__ = name
    refuse.__doc__ = "Refuse: the shape is not known yet."
    return refuse


class UninitializedTensorMixin:
    """A tensor of a lazy module whose shape is not yet known.

    It has a dtype and a device, can be moved and cast, and turns into an ordinary one, in place,
    by `materialize(shape)`. Asking for its shape or length before that raises, and so does
    computing with it.
    """

    cls_to_become: type
    data: Tensor

    # What works without a shape; everything else is refused by name.
    _SHAPELESS = frozenset({
        "to", "cpu", "cuda", "float", "double", "half", "bfloat16", "requires_grad_", "detach",
        "detach_", "size", "copy_", "clone", "empty_like", "is_floating_point", "is_complex",
        "type", "share_memory_",
    })  # fmt: skip

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        if name in cls._SHAPELESS or name.startswith("__"):
            return _C._disabled_torch_function_impl(func, types, args, kwargs or {})
        raise _unusable(name)

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Give the tensor its shape; its values are not initialised.

        Args:
            shape: the sizes.
            device, dtype: those of the result; by default the ones the tensor was made with.
        """
        device = self.data.device if device is None else device
        dtype = self.data.dtype if dtype is None else dtype
        self.data = taeda.empty(shape, device=device, dtype=dtype)
        self.__class__ = self.cls_to_become

    @property
    def shape(self) -> Any:
        """Refuse: the shape is not known yet."""
        raise RuntimeError(
            "the shape of an uninitialized parameter is not known before the module's "
            "first forward, or before materialize(shape)"
        )

    def share_memory_(self) -> Any:
        """Refuse: there is no memory yet."""
        raise RuntimeError(
            "an uninitialized parameter has no memory to share: run the module once, or "
            "call materialize(shape), first"
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __len__(self) -> int:
        raise ValueError(f"{type(self).__name__} has no length before it is materialized")

    numel, nelement, dim, stride, is_contiguous, data_ptr = map(
        _refused, ("numel", "nelement", "dim", "stride", "is_contiguous", "data_ptr")
    )


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A Parameter without a shape, made by lazy modules.

    Args:
        requires_grad: whether gradients are recorded once it is materialized.
        device, dtype: those of the parameter to be.
    """

    cls_to_become = Parameter

    def __new__(
        cls, requires_grad: bool = True, device: Any = None, dtype: Any = None
    ) -> UninitializedParameter:
        data = taeda.empty(0, device=device, dtype=dtype)
        return Tensor._make_subclass(cls, data, requires_grad)

    def __init__(self, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__()

    def __deepcopy__(self, memo: dict[int, Any]) -> UninitializedParameter:
        if id(self) in memo:
            return memo[id(self)]
        result = type(self)(self.requires_grad, self.data.device, self.data.dtype)
        memo[id(self)] = result
        return result

    def __reduce_ex__(self, protocol: Any) -> Any:
        return (type(self), (self.requires_grad, self.data.device, self.data.dtype))


class UninitializedBuffer(UninitializedTensorMixin, Tensor):
    """A buffer without a shape, made by lazy modules.

    Args:
        requires_grad: whether gradients are recorded once it is materialized.
        device, dtype: those of the buffer to be.
        persistent: whether it is part of the module's `state_dict`.
    """

    cls_to_become = Buffer
    persistent: bool

    def __new__(
        cls,
        requires_grad: bool = False,
        device: Any = None,
        dtype: Any = None,
        persistent: bool = True,
    ) -> UninitializedBuffer:
        data = taeda.empty(0, device=device, dtype=dtype)
        buffer = Tensor._make_subclass(cls, data, requires_grad)
        buffer.persistent = persistent
        buffer._is_buffer = True
        return buffer

    def __init__(
        self,
        requires_grad: bool = False,
        device: Any = None,
        dtype: Any = None,
        persistent: bool = True,
    ) -> None:
        super().__init__()

    def __deepcopy__(self, memo: dict[int, Any]) -> UninitializedBuffer:
        if id(self) not in memo:
            memo[id(self)] = type(self)(*self.__reduce_ex__(2)[1])
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> Any:
        return (
            type(self), (self.requires_grad, self.data.device, self.data.dtype, self.persistent)
        )  # fmt: skip


def is_lazy(param: Any) -> bool:
    """Whether `param` is an uninitialized parameter or buffer."""
    return isinstance(param, UninitializedTensorMixin)
