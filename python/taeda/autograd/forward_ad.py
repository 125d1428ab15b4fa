"""Forward mode: derivatives that travel along with the values.

Inside `dual_level`, a tensor may carry a tangent: a direction, of its own sizes, in which it moves.
Operations on it give results that carry theirs, so that one run of a function gives its value and
the product of its Jacobian with a direction. Every operation that can be differentiated twice can
be so forwards, and so can pointwise ones that can be once. Gradients computed at a level carry
tangents too, which are products with the Hessian; tangents are recorded like any other value, so
they can be differentiated.

A level belongs to the thread that entered it, and levels cannot be nested.
"""

from __future__ import annotations

from types import TracebackType
from typing import NamedTuple

from taeda import _C
from taeda._C import Tensor
from taeda.autograd import _run

__all__ = [
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
]


class UnpackedDualTensor(NamedTuple):
    """The result of `unpack_dual`: the value and, if there is one, the tangent."""

    primal: Tensor
    tangent: Tensor | None


def enter_dual_level() -> int:
    """Begin a level, in this thread. Returns its number, 0; prefer `dual_level`.

    Raises:
        RuntimeError: the thread is at a level already.
    """
    _C._enter_dual_level()
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """End the level that `enter_dual_level` began. Its tangents are gone then.

    Raises:
        RuntimeError: there is no level, or `level` is another.
    """
    if level not in (None, 0) and _C._at_dual_level():
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This is "
            "not supported."
        )
    _C._exit_dual_level()


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """Return a view of `tensor` that carries `tangent`.

    Args:
        tensor: of a floating or complex dtype.
        tangent: of the sizes of `tensor`, and best of its dtype. It is kept as it is, and in-place
            operations on the result change it, if it is laid out in memory as `tensor` is; else a
            copy is kept.
        level: that of the enclosing `dual_level`, which is the default.

    Raises:
        RuntimeError: there is no level, the sizes differ, or one of the two has a tangent already.
        ValueError: one is not of a floating or complex dtype.

    >>> import taeda
    >>> from taeda.autograd import forward_ad
    >>> with forward_ad.dual_level():
    ...     x = forward_ad.make_dual(taeda.tensor([1.0, 2.0]), taeda.tensor([1.0, 0.0]))
    ...     forward_ad.unpack_dual(x**2).tangent
    tensor([2., 0.])
    """
    if level is not None and level < 0:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to "
            "enter_dual_level() first."
        )
    if level:
        raise RuntimeError("Invalid level given to make_dual")
    if _run.nested is not None and isinstance(tensor, _run.nested):
        if not isinstance(tangent, _run.nested):
            raise RuntimeError("make_dual(): the tangent of a nested tensor must be nested")
        return tensor._with(make_dual(tensor._values_, tangent._values_))
    make = _C._make_dual if _run.batching is None else _run.batching.make_dual
    return make(tensor, tangent)


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """Take a tensor apart into its value and its tangent.

    Args:
        tensor: any tensor. One without a tangent, as all are outside of a level, gives
            `(tensor, None)`.
        level: that of the enclosing `dual_level`, which is the default. At another level there is
            no tangent.

    >>> import taeda
    >>> taeda.autograd.forward_ad.unpack_dual(taeda.ones(2))
    UnpackedDualTensor(primal=tensor([1., 1.]), tangent=None)
    """
    if level not in (None, 0):
        return UnpackedDualTensor(tensor, None)
    if _run.nested is not None and isinstance(tensor, _run.nested):
        parts = unpack_dual(tensor._values_)
        tangent = None if parts.tangent is None else tensor._with(parts.tangent)
        return UnpackedDualTensor(tensor._with(parts.primal), tangent)
    unpack = _C._unpack_dual if _run.batching is None else _run.batching.unpack_dual
    return UnpackedDualTensor(*unpack(tensor))


class dual_level:
    """A context manager within which tensors may carry tangents; entering it gives the level, 0.

    >>> import taeda
    >>> from taeda.autograd import forward_ad
    >>> w = taeda.tensor([1.0, 2.0], requires_grad=True)
    >>> with forward_ad.dual_level():  # the gradient of sum(w**3), and the Hessian times (1, 1)
    ...     y = (forward_ad.make_dual(w, taeda.ones(2)) ** 3).sum()
    ...     (g,) = taeda.autograd.grad(y, w)
    ...     forward_ad.unpack_dual(g)
    UnpackedDualTensor(primal=tensor([ 3., 12.]), tangent=tensor([ 6., 12.]))
    """

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        exit_dual_level()
