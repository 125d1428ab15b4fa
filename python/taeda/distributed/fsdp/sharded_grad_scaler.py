"""The gradient scaler of several processes, which agree on infinities: of one."""

from __future__ import annotations

from typing import Any

from taeda.amp import GradScaler
from taeda.distributed._group import _known

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
