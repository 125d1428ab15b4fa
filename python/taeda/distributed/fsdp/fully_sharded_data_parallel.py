"""The wrapper and its settings, where PyTorch defines them."""

from ._settings import *  # noqa: F403
from ._settings import __all__ as _names
from ._wrapper import FullyShardedDataParallel

__all__ = [*_names, "FullyShardedDataParallel"]
