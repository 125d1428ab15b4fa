"""PyTorch's place for layers that are in `vision`."""

from taeda.nn.modules.vision import ChannelShuffle

__all__ = ["ChannelShuffle"]
