"""An optimizer whose state is divided among processes: one has all."""

from ._zero import ZeroRedundancyOptimizer

__all__ = ["ZeroRedundancyOptimizer"]
