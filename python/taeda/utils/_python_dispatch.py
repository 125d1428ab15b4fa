"""What handles the operations below autograd: modes, and classes of tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from taeda import _C, _dispatched

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Self

__all__ = [
    "TorchDispatchMode",
    "is_traceable_wrapper_subclass",
    "no_dispatch",
    "return_and_correct_aliasing",
]

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


class no_dispatch:
    """Inside ``with no_dispatch():`` no class's ``__torch_dispatch__`` is asked.

    Operations on tensors that have no memory are errors then.
    """

    def __enter__(self) -> None:
        _C._change_torch_dispatch_disabled(1)

    def __exit__(self, *exc_info: object) -> None:
        _C._change_torch_dispatch_disabled(-1)


def is_traceable_wrapper_subclass(t: object) -> bool:
    """Whether a tensor's class tells how to take it apart into tensors and make it again."""
    both = hasattr(t, "__tensor_flatten__") and hasattr(t, "__tensor_unflatten__")
    return isinstance(t, _C.Tensor) and type(t) is not _C.Tensor and both


def return_and_correct_aliasing(func: Any, args: Any, kwargs: Any, out: Any) -> Any:
    """What a ``__torch_dispatch__`` should return where it has computed `out`.

    The tensor that `func` changes, for an operation in place or with ``out=``; otherwise `out`
    itself: that views share their base's memory needs no mending.

    >>> from taeda.utils._python_dispatch import return_and_correct_aliasing
    >>> x = taeda.ones(2)
    >>> add_ = taeda.ops.aten.add_.Tensor
    >>> return_and_correct_aliasing(add_, (x, 1), {}, taeda.zeros(2)) is x
    True
    """
    changed = (kwargs or {}).get("out")
    if changed is not None:
        return changed
    name = func.__name__.partition(".")[0]
    return args[0] if name.endswith("_") and not name.endswith("__") else out
