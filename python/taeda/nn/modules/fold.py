"""PyTorch's place for layers that are in `vision`."""

from taeda.nn.modules.vision import Fold, Unfold

__all__ = ["Fold", "Unfold"]
