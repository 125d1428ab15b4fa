"""Memory that is kept apart from other memory, where CUDA's library is installed."""

from __future__ import annotations

import ctypes
import itertools
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from taeda.cuda import _memory, _runtime
from taeda.cuda._runtime import call

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["MemPool", "graph_pool_handle", "use_mem_pool"]

_numbers = itertools.count(1)


def graph_pool_handle() -> tuple[int, int]:
    """A name for memory that graphs share: ``graph(g, pool=handle)``."""
    return (0, next(_numbers))


def number(pool: tuple[int, int]) -> ctypes.c_uint64:
    """What the library knows a pool by."""
    return ctypes.c_uint64(pool[1])


class MemPool:
    """Memory of the current device that is kept apart: :func:`use_mem_pool` takes it from there.

    What is freed stays in the pool, also when caches are emptied, until the pool itself is gone.

    Args:
        allocator: None, the caching allocator; there are no others.
        use_on_oom: whether free memory of the pool may be used by others before they run out.
        no_split: whether memory is given out in the pieces that the driver gave.

    Example:
        >>> import taeda
        >>> if taeda.cuda.is_available():
        ...     pool = taeda.cuda.MemPool()
        ...     with taeda.cuda.use_mem_pool(pool):
        ...         x = taeda.ones(3, device="cuda")
        ...     print(pool.snapshot()[0]["segment_pool_id"] == pool.id)
    """

    def __init__(
        self, allocator: None = None, use_on_oom: bool = False, no_split: bool = False
    ) -> None:
        if allocator is not None:
            raise TypeError(
                "cuda.MemPool: allocator must be None, as there is no other than the caching one, "
                f"got {type(allocator).__name__}"
            )
        self._id = graph_pool_handle()
        self._index = _runtime.current()
        place = self._index, number(self._id)
        call("pool_options", *place, int(use_on_oom), int(no_split))
        call("hold_pool", *place)

    @property
    def id(self) -> tuple[int, int]:
        """The pool's name, which graphs take as ``pool``."""
        return self._id

    @property
    def allocator(self) -> None:
        """Who else gives the memory: nobody."""
        return

    def use_count(self) -> int:
        """How many hold the memory: this object, graphs, and blocks of ``use_mem_pool``."""
        holders = ctypes.c_int()
        call("pool_holders", self._index, number(self._id), ctypes.byref(holders))
        return holders.value

    def snapshot(self, include_traces: bool = True) -> list[dict[str, Any]]:
        """The pool's segments, as :func:`memory_snapshot` gives those of all."""
        return _memory.memory_snapshot(self._id, include_traces)

    def __del__(self) -> None:
        if hasattr(self, "_index") and not sys.is_finalizing() and not _runtime.why_not():
            call("let_pool_go", self._index, number(self._id))
            call("empty_pool", self._index, number(self._id))


@contextmanager
def use_mem_pool(pool: MemPool, device: Any = None) -> Iterator[None]:
    """Within the block, take this thread's memory on a device from a pool.

    Args:
        pool: the pool. Other threads, also those of ``backward()``, do not take from it.
        device: a device, its name or index; None is the current one.
    """
    if not isinstance(pool, MemPool):
        raise TypeError(f"cuda.use_mem_pool: pool must be a MemPool, got {type(pool).__name__}")
    index, inside = _runtime.index_of(device, "use_mem_pool"), number(pool.id)
    before = ctypes.c_uint64()
    call("hold_pool", index, inside)
    call("set_pool", index, inside, ctypes.byref(before))
    try:
        yield
    finally:
        call("set_pool", index, before, ctypes.byref(ctypes.c_uint64()))
        call("let_pool_go", index, inside)
