"""Stands for ``torch.onnx.symbolic_opset11`` and its like: nothing writes ONNX here."""

from __future__ import annotations

__all__: list[str] = []
