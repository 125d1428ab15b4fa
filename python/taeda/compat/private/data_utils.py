"""Stands for ``torch.utils.data._utils``: its ``collate`` is found there."""

from __future__ import annotations

__all__: list[str] = []
