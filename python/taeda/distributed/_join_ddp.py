"""What `DistributedDataParallel` does in a process that has run out of batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import taeda

from . import _collectives as plain
from .algorithms.join import JoinHook

if TYPE_CHECKING:
    from taeda.nn.parallel import DistributedDataParallel

__all__ = ["DDPJoinHook"]


class DDPJoinHook(JoinHook):
    """Takes part in what the module does in the other processes.

    Args:
        ddp: the module.
    """

    def __init__(self, ddp: DistributedDataParallel) -> None:
        self._ddp = ddp

    def main_hook(self) -> None:
        ddp = self._ddp
        syncs = taeda.zeros(1)
        plain.all_reduce(syncs, group=ddp.process_group)
        if ddp.require_forward_param_sync and ddp.broadcast_buffers and ddp._sent_buffers:
            ddp._from_process(ddp._common_rank(False), ddp._sent_buffers)
        ddp.require_forward_param_sync = bool(syncs.item())
        if syncs.item() and ddp.reducer is not None:
            ddp.reducer.match_pass()

    def post_hook(self, is_last_joiner: bool) -> None:
        ddp = self._ddp
        if ddp.process_group.size() > 1:
            root = ddp._common_rank(is_last_joiner)
            ddp._from_process(root, [*ddp._everywhere, *ddp._sent_buffers])
        if ddp.reducer is not None:
            ddp.reducer.divisor = ddp.process_group.size()
