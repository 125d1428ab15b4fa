"""Exchanging two tensors; naming the module of a class."""

from __future__ import annotations

from typing import Any

from taeda._C import Tensor

__all__ = ["set_module", "swap_tensors"]


def swap_tensors(t1: Tensor, t2: Tensor) -> None:
    """Exchange all that two tensors are: values, class, gradient, attributes.

    Whoever holds one of them finds the other there afterwards.

    Args:
        t1, t2: tensors that are not results of differentiable operations.

    Raises:
        RuntimeError: one of them has a ``grad_fn``; or one is a plain Tensor and the other is not,
            which Python cannot exchange.

    >>> import taeda
    >>> a, b = taeda.zeros(1), taeda.ones(2)
    >>> taeda.utils.swap_tensors(a, b)
    >>> a, b
    (tensor([1., 1.]), tensor([0.]))
    """
    for t in (t1, t2):
        if t.grad_fn is not None:
            raise RuntimeError(
                f"swap_tensors(): one tensor is the result of {t.grad_fn.name()}; only leaves of "
                "the graph can be exchanged"
            )
    # What a sparse or nested tensor says of gradients, it says of an attribute.
    needs, grads = (t1.requires_grad, t2.requires_grad), (t1.grad, t2.grad)
    try:
        t1.__class__, t2.__class__ = t2.__class__, t1.__class__
    except TypeError as error:
        names = f"{type(t1).__name__} and {type(t2).__name__}"
        raise RuntimeError(f"swap_tensors(): cannot exchange a {names}: {error}") from None
    kept = dict(t1.__dict__)
    for t in (t1, t2):
        Tensor.grad.__set__(t, None)  # type: ignore[attr-defined]
        Tensor.requires_grad_(t, False)
    t1._exchange_data(t2)
    t1.__dict__.clear()
    t1.__dict__.update(t2.__dict__)
    t2.__dict__.clear()
    t2.__dict__.update(kept)
    t1.requires_grad_(needs[1])
    t2.requires_grad_(needs[0])
    t1.grad, t2.grad = grads[1], grads[0]


def set_module(obj: Any, mod: str) -> None:
    """Set the ``__module__`` that a class or function is shown with.

    Raises:
        TypeError: ``mod`` is no str.
    """
    if not isinstance(mod, str):
        raise TypeError(f"set_module: the mod argument should be a string, got {mod!r}")
    obj.__module__ = mod
