"""Several collectives as one operation."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from ._algorithms import Channel
from ._group import _known
from ._work import Work

# Once these have begun on contiguous tensors, nothing is left to do.
_WHOLE = {"all_reduce", "broadcast", "all_gather_into_tensor", "reduce_scatter_tensor"}


class _CoalescingManager:
    """What `_coalescing_manager` gives: its `wait` waits for the operations of the block."""

    def __init__(self) -> None:
        self.works: list[Work] = []

    def append(self, work: Work | None) -> None:
        """Wait for another operation too."""
        if work is not None:
            self.works.append(work)

    def wait(self) -> None:
        """Wait for the operations."""
        for work in self.works:
            work.wait()
        self.works = []


@contextlib.contextmanager
def _coalescing_manager(
    group: Any = None, device: Any = None, async_ops: bool = False
) -> Iterator[_CoalescingManager]:
    """A block whose collectives begin together at its end, as one operation of the group.

    Args:
        group: the processes, all by default.
        device: whose tensors they concern; nothing depends on it.
        async_ops: leave it to the block's value to wait for them.

    Raises:
        ValueError: there is no such group, or one such block is inside of another.
    """
    given = _known(group)
    if given._coalesced is not None:
        raise ValueError("_coalescing_manager: there is one already for the group")
    manager = _CoalescingManager()
    given._coalesced = []
    try:
        yield manager
    finally:
        wanted, given._coalesced = given._coalesced, None
    if not wanted:
        return
    names = {name for name, _, _ in wanted}
    bodies = [body for _, body, _ in wanted]
    results = [tensor for _, _, result in wanted for tensor in result]
    whole = names <= _WHOLE and all(tensor.is_contiguous() for tensor in results)

    def together(channel: Channel) -> None:
        channel.perform(bodies, whole)

    work = given._collective("_".join([*sorted(names), "coalesced"]), together, results, True)
    manager.append(work)
    if not async_ops:
        manager.wait()
