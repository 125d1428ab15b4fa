"""The base of tensors whose elements are beside them, not in their own memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from taeda import _C
from taeda._C import Tensor

if TYPE_CHECKING:
    from typing_extensions import Self


def _parts(values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, (tuple, list)):
            yield from _parts(value)
        else:
            yield value


@_C._sees_every_call
class Unreadable(Tensor):
    """A tensor that no kernel can read: every op, also those called from C++, asks its class.

    A subclass defines ``__torch_function__``.
    """

    _is_placeholder = True  # its memory must not become another tensor's

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        for value in _parts((*args, *kwargs.values())):
            if isinstance(value, Unreadable):
                return type(value).__torch_function__(func, types, args, kwargs)
        raise TypeError(f"{func.__name__}(): no argument is a tensor without memory")

    # ---- gradients: those of the elements ----

    _values_: Tensor

    @property
    def requires_grad(self) -> bool:
        """Whether operations on this tensor are recorded for gradients."""
        return self._values_.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self._values_.requires_grad = value

    @property
    def grad_fn(self) -> Any:
        """The operation that made the values, or None."""
        return self._values_.grad_fn

    @property
    def is_leaf(self) -> bool:
        """Whether no recorded operation made the values."""
        return self._values_.is_leaf

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Set whether operations on this tensor are recorded."""
        self._values_.requires_grad_(requires_grad)
        return self

    def detach_(self) -> Self:
        """Forget the history."""
        self._values_.detach_()
        return self

    def retain_grad(self) -> None:
        """Keep the gradient of a result, too."""
        self._values_.retain_grad()

    @property
    def retains_grad(self) -> bool:
        """Whether the gradient of a result is kept."""
        return self._values_.retains_grad

    # ---- Python's numbers ----

    def __bool__(self) -> bool:
        if self.numel() != 1:
            raise RuntimeError(
                "Boolean value of Tensor with more than one value is ambiguous"
                if self.numel()
                else "Boolean value of Tensor with no values is ambiguous"
            )
        return bool(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __complex__(self) -> complex:
        return complex(self.item())
