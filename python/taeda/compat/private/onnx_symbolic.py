"""Stands for ``torch.onnx.symbolic_opset11`` and its like, whose functions write ONNX: none here."""

from __future__ import annotations

__all__: list[str] = []
