"""DistributedSampler: each of several processes visits its share of a dataset."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeVar

import taeda

from .sampler import Sampler

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .dataset import Dataset

__all__ = ["DistributedSampler"]

T_co = TypeVar("T_co", covariant=True)


class DistributedSampler(Sampler[int]):
    """Every ``num_replicas``-th index, from ``rank`` on, in an order that all replicas agree on.

    Args:
        dataset: a dataset with a length.
        num_replicas: how many processes share it: by default those of the group.
        rank: which of them this is, from 0: by default its number in the group.
        shuffle: a new random order for each epoch, as told by ``set_epoch``.
        seed: of that order; the same in all processes.
        drop_last: leave out what does not divide evenly. False repeats indices from the start, so
            that all replicas have equally many.

    Raises:
        ValueError: ``num_replicas`` or ``rank`` is missing and there is no group, or ``rank`` is
            out of range.

    >>> from taeda.utils.data.distributed import DistributedSampler
    >>> list(DistributedSampler(range(10), num_replicas=3, rank=1, shuffle=False))
    [1, 4, 7, 0]
    """

    def __init__(
        self,
        dataset: Dataset[T_co],
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        if num_replicas is None or rank is None:
            from taeda import distributed

            num_replicas = distributed.get_world_size() if num_replicas is None else num_replicas
            rank = distributed.get_rank() if rank is None else rank
        if not 0 <= rank < num_replicas:
            raise ValueError(
                f"DistributedSampler: Invalid rank {rank}, rank should be in the interval "
                f"[0, {num_replicas - 1}]"
            )
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        self.shuffle = shuffle
        self.seed = seed
        total = len(dataset)  # type: ignore[arg-type]
        if drop_last:
            self.num_samples = total // num_replicas
        else:
            self.num_samples = math.ceil(total / num_replicas)
        self.total_size = self.num_samples * num_replicas

    def __iter__(self) -> Iterator[int]:
        total = len(self.dataset)  # type: ignore[arg-type]
        if self.shuffle:
            generator = taeda.Generator()
            generator.manual_seed(self.seed + self.epoch)
            order = taeda.randperm(total, generator=generator).tolist()
        else:
            order = list(range(total))
        while order and len(order) < self.total_size:
            order += order[: self.total_size - len(order)]
        return iter(order[self.rank : self.total_size : self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Choose the random order: call it with the epoch's number before each epoch."""
        self.epoch = epoch
