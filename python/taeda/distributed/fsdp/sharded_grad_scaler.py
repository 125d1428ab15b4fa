"""The gradient scaler of several processes, which agree on infinities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
        if self._enabled and self.process_group.size() > 1:
            for found in self._per_optimizer_states[id(optimizer)]["found_inf_per_device"].values():
                all_reduce(found, ReduceOp.MAX, self.process_group)
