"""Stands for ``torch.fx.experimental.proxy_tensor``."""

from __future__ import annotations

__all__ = ["get_proxy_mode"]


def get_proxy_mode() -> None:
    """The trace by tensors that is being recorded: none ever is."""
