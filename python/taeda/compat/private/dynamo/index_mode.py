"""Stands for ``torch._dynamo._trace_wrapped_higher_order_op``: indexing within ``vmap``."""

from __future__ import annotations

from taeda.overrides import BaseTorchFunctionMode

__all__ = ["TransformGetItemToIndex"]


class TransformGetItemToIndex(BaseTorchFunctionMode):
    """A mode inside of which ``x[i]`` takes a tensor ``i`` without dimensions within ``vmap``.

    It does so without the mode, too.

    >>> table = taeda.tensor([1.0, 2.0, 3.0])
    >>> with TransformGetItemToIndex():
    ...     taeda.vmap(lambda i: table[i])(taeda.tensor([2, 0]))
    tensor([3., 1.])
    """
