"""PyTorch's place for layers that are in `vision`."""

from taeda.nn.modules.vision import Upsample, UpsamplingBilinear2d, UpsamplingNearest2d

__all__ = ["Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d"]
