"""Autocast for CUDA, and the decorators of functions with derivatives of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import taeda
from taeda import amp

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["autocast", "custom_bwd", "custom_fwd"]


class autocast(amp.autocast):
    """:class:`taeda.amp.autocast` for ``"cuda"``.

    Args:
        enabled, dtype, cache_enabled: as there; the dtype is float16 by default.
    """

    def __init__(self, enabled: bool = True, dtype: Any = None, cache_enabled: bool = True) -> None:
        dtype = taeda.float16 if dtype is None else dtype
        super().__init__("cuda", dtype, enabled, cache_enabled)


def custom_fwd(fwd: Callable[..., Any] | None = None, *, cast_inputs: Any = None) -> Any:
    """:func:`taeda.amp.custom_fwd` for ``"cuda"``."""
    return amp.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd: Callable[..., Any] | None = None) -> Any:
    """:func:`taeda.amp.custom_bwd` for ``"cuda"``."""
    return amp.custom_bwd(bwd, device_type="cuda")
