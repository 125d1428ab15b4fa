"""`taeda.ops.aten`: taeda's operations under PyTorch's ATen names.

>>> import taeda
>>> taeda.ops.aten.add(taeda.ones(2), 1), taeda.ops.aten.add.Tensor
(tensor([2., 2.]), <OpOverload(op='aten.add', overload='Tensor')>)
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from taeda import _C

__all__ = ["OpOverload", "OpOverloadPacket", "packet"]

# The arguments of a call select the overload; the overload's name is ignored.
_OVERLOADS = frozenset(
    [
        *("default", "Tensor", "Scalar", "Tensor_Tensor", "Tensor_Scalar", "Scalar_Tensor"),
        *("int", "float", "bool", "self", "out", "stable", "other", "decimals", "dtype"),
        *("dim", "dims", "dim_IntList", "dim_int", "dim_max", "dim_min"),
        *("Tensor_mode", "Scalar_mode", "Scalar_Other", "Scalar_Self", "ScalarOther", "ScalarSelf"),
        *("src", "value", "reduce", "value_reduce", "two", "int_Scalar", "int_Tensor", "sizes"),
        *("m", "p", "start", "start_step", "memory_format"),
    ]
)


class OpOverload:
    """An operation under the name of one of its overloads. Calling it calls the operation."""

    def __init__(self, overloadpacket: OpOverloadPacket, name: str) -> None:
        self.overloadpacket = overloadpacket
        self._overloadname = name
        self.__name__ = f"{overloadpacket.__name__}.{name}"
        self.__doc__ = overloadpacket.__doc__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.overloadpacket(*args, **kwargs)

    @property
    def op(self) -> Callable[..., Any]:
        """The function that is called."""
        return self.overloadpacket.op

    @property
    def namespace(self) -> str:
        """The namespace: aten."""
        return "aten"

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    def name(self) -> str:
        """The full name, such as `aten::add.Tensor`; the overload `default` has none of its own."""
        own = self.overloadpacket.__name__
        return f"aten::{own}" if self._overloadname == "default" else f"aten::{self.__name__}"

    def __str__(self) -> str:
        return f"aten.{self.__name__}"

    def __repr__(self) -> str:
        op = self.overloadpacket.__name__
        return f"<OpOverload(op='aten.{op}', overload='{self._overloadname}')>"


class OpOverloadPacket:
    """An operation. Attributes such as `default` or `Tensor` name its overloads."""

    def __init__(self, name: str, op: Callable[..., Any]) -> None:
        self.__name__ = name
        self.__doc__ = op.__doc__
        self.op = op

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.op(*args, **kwargs)

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    def __getattr__(self, name: str) -> OpOverload:
        if name.startswith("__"):
            raise AttributeError(name)
        if name not in _OVERLOADS:
            raise AttributeError(
                f"The underlying op of 'aten.{self.__name__}' has no overload name '{name}'"
            )
        return self.overload(name)

    def overload(self, name: str) -> OpOverload:
        """The overload of a name."""
        found: OpOverload | None = self.__dict__.get(name)
        if found is None:
            found = self.__dict__[name] = OpOverload(self, name)
        return found

    def __str__(self) -> str:
        return f"aten.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='aten.{self.__name__}')>"


def _pin_memory(self: _C.Tensor, device: Any = None) -> _C.Tensor:
    """As `Tensor.pin_memory`."""
    pinned: _C.Tensor = self.pin_memory(device)
    return pinned


def _sparse_addmm(
    self: _C.Tensor, mat1: _C.Tensor, mat2: _C.Tensor, *, beta: Any = 1, alpha: Any = 1
) -> _C.Tensor:
    """As `sparse.addmm`: `beta * self + alpha * (mat1 @ mat2)`, where `mat1` is sparse."""
    from taeda.sparse import addmm

    return addmm(self, mat1, mat2, beta=beta, alpha=alpha)


_ALSO = {"_pin_memory": _pin_memory, "_sparse_addmm": _sparse_addmm}


@functools.cache
def packet(name: str) -> OpOverloadPacket | None:
    """The operation of this name; None if there is none."""
    op: Any = _ALSO.get(name) or getattr(_C.ops, name, None)
    return None if op is None or name.startswith("__") else OpOverloadPacket(name, op)
