"""Stands for ``torch._custom_ops``."""

from __future__ import annotations

from typing import NoReturn

__all__ = ["get_ctx"]


def get_ctx() -> NoReturn:
    """The context that gives functions on meta tensors data-dependent sizes.

    Raises:
        RuntimeError: always, as every size is a number here.
    """
    raise RuntimeError(
        "get_ctx: the shape of this result depends on data, which tensors of the meta device lack"
    )
