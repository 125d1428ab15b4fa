"""What models that can be quantised are written with. They run in floating point."""

from . import pruning, quantization

__all__ = ["pruning", "quantization"]
