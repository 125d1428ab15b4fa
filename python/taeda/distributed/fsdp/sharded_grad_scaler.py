"""The gradient scaler of several processes, which agree on infinities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import taeda
from taeda.amp import GradScaler
from taeda.distributed._collectives import all_reduce
from taeda.distributed._group import _known
from taeda.distributed._types import ReduceOp

if TYPE_CHECKING:
    from taeda.optim import Optimizer

__all__ = ["ShardedGradScaler"]


class ShardedGradScaler(GradScaler):
    """A `GradScaler` whose processes agree on what is infinite.

    Args:
        device: the kind of device.
        process_group: the processes, all by default.
        options: as for `GradScaler`.

    Raises:
        ValueError: there is no group.
    """

    def __init__(self, device: str = "cuda", process_group: Any = None, **options: Any) -> None:
        super().__init__(device, **options)
        self.process_group = _known(process_group)

    def unscale_(self, optimizer: Optimizer) -> None:
        super().unscale_(optimizer)
        key = id(optimizer)
        if self.process_group.size() > 1 and key in self._found_inf:
            found = taeda.tensor([float(self._found_inf[key])])
            all_reduce(found, ReduceOp.MAX, self.process_group)
            self._found_inf[key] = bool(found.item())
