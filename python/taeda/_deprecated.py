"""Functions that PyTorch has deprecated and scripts still call."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from taeda import _C

if TYPE_CHECKING:
    from taeda import Tensor, dtype

__all__ = ["range"]


def range(
    start: float = 0,
    end: float | None = None,
    step: float = 1,
    *,
    out: Tensor | None = None,
    dtype: dtype | None = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Numbers from ``start`` to ``end``, **including it**. Deprecated: use ``arange``.

    Args:
        start: the first; a single positional argument is ``end`` instead.
        end: no number is beyond it.
        step: from one number to the next.
        out: where the result goes; it keeps its shape if it has as many elements.
        dtype: where it is None, the default dtype, also for integers.
        device: where the result is.
        requires_grad: whether the result wants a gradient.

    Raises:
        RuntimeError: ``step`` is 0, or leads away from ``end``.
    """
    warnings.warn(
        "range is deprecated, because it includes its end, as Python's range does not; use arange",
        stacklevel=2,
    )
    if end is None:
        start, end = 0, start
    if step == 0 or (end - start) / step < 0:
        raise RuntimeError(f"range(): no steps of {step} lead from {start} to {end}")
    if dtype is None:
        dtype = _C.get_default_dtype() if out is None else out.dtype
    count = int((end - start) / step) + 1
    exact = _C.ops.arange(count, dtype=_C.float64, device=device)
    values = (exact * step + start).to(dtype)
    if out is not None:
        if out.numel() != count:
            out.resize_(values.shape)
        values = out.copy_(values.reshape(out.shape))
    return values.requires_grad_() if requires_grad else values
