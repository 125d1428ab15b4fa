"""`Variable`, the name that tensors with gradients had once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from taeda import _C
from taeda._C import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Engine", "Variable"]


class Engine:
    """What a backward pass tells of itself, as ``Variable._execution_engine``."""

    @staticmethod
    def queue_callback(callback: Callable[[], object]) -> None:
        """Call a function when the backward pass that is running ends.

        Raises:
            RuntimeError: none is running in this thread.
        """
        _C._queue_callback(callback)

    @staticmethod
    def is_checkpoint_valid() -> bool:
        """Whether gradients go to all leaves, so that a backward pass within may add to them."""
        return not _C._backward_is_running() or _C._backward_fills_all_leaves()


class _VariableMeta(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Tensor)


class Variable(metaclass=_VariableMeta):
    """`Variable(data, requires_grad=False)`: a tensor that shares the memory of `data`.

    Every tensor is a Variable; there is no need to make one.
    """

    _execution_engine = Engine()

    def __new__(cls, data: Any, requires_grad: bool = False) -> Any:
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        return data.detach().requires_grad_(requires_grad)
