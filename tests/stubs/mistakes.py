"""Mistakes that a type checker must find, each marked with the error it gives."""

from __future__ import annotations

import taeda
from taeda import nn

x = taeda.ones(2)
taeda.softmaks(x)  # type: ignore[attr-defined]
x.sofmax(0)  # type: ignore[attr-defined]
taeda.softmax(x, "rows")  # type: ignore[arg-type]
taeda.cumsum(x, dim=0, out=3)  # type: ignore[arg-type]
x.grad.sum()  # type: ignore[union-attr]
length: str = x.size(0)  # type: ignore[assignment]
nn.Linear("4", 2)  # type: ignore[arg-type]
