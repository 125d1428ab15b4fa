"""PyTorch's place for layers that are in `vision`."""

from taeda.nn.modules.vision import PixelShuffle, PixelUnshuffle

__all__ = ["PixelShuffle", "PixelUnshuffle"]
