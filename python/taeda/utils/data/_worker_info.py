"""Information about the current worker process."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["WorkerInfo", "get_worker_info"]

# What a function of tasks answers where there is nothing more.
EXHAUSTED = "exhausted"


class WorkerInfo(NamedTuple):
    """Information about a DataLoader's worker process.

    Attributes:
        id: its number, from 0.
        num_workers: how many there are.
        seed: what its random generators were seeded with.
        dataset: its own copy of the dataset.
    """

    id: int
    num_workers: int
    seed: int
    dataset: Any


_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """Information about the current DataLoader worker; None in any other process.

    An IterableDataset uses it to divide its samples among the workers.
    """
    return _info


def set_worker_info(info: WorkerInfo) -> None:
    """Make this process a worker."""
    global _info
    _info = info
