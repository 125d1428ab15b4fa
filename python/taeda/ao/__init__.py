"""What models that can be quantised are written with. They run in floating point."""

from . import quantization

__all__ = ["quantization"]
