"""Modes that see the operations below autograd, forward and backward."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from taeda import _C, _dispatched

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Self

__all__ = ["TorchDispatchMode"]

func_of: Callable[..., Any] = _dispatched.func_of  # what the core asks for `func`


class TorchDispatchMode:
    """Inside ``with TorchDispatchMode():`` its ``__torch_dispatch__`` handles every operation.

    A subclass defines ``__torch_dispatch__(self, func, types, args=(), kwargs=None)``. It is called
    below autograd for every operation that this thread runs, those of a backward pass too: `func`
    is an overload under PyTorch's name, such as ``aten.mm.default``; composite operations are seen
    as their parts. While it runs the mode is set aside and nothing is recorded, so it may call
    ``func`` itself; of modes inside of one another, the innermost is asked first, and what it calls
    meets the next.

    >>> class Names(TorchDispatchMode):
    ...     def __torch_dispatch__(self, func, types, args=(), kwargs=None):
    ...         print(func)
    ...         return func(*args, **(kwargs or {}))
    >>> x = taeda.ones(2, 2, requires_grad=True)
    >>> with Names():
    ...     y = x @ x + 1
    aten.mm.default
    aten.add.Tensor
    """

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Answer a call in the operation's place. A subclass has to define it."""
        raise NotImplementedError(
            f"{type(self).__name__} defines no __torch_dispatch__, which a TorchDispatchMode needs"
        )

    def __enter__(self) -> Self:
        _C._push_dispatch_mode(self)
        return self

    def __exit__(self, *exc_info: object) -> None:
        _C._pop_dispatch_mode()
