"""Batches for processes whose number may change in the middle of an epoch."""

from __future__ import annotations

from collections.abc import Iterator, Sized
from typing import Any

import taeda
from taeda.utils.data import Sampler

__all__ = ["ElasticBatchSampler"]


class ElasticBatchSampler(Sampler[list[int]]):
    """The indices of this process's part of each batch of all processes.

    The order of an epoch depends on ``seed`` and the epoch alone. `advance` counts what all
    processes have learned from, and the state goes into checkpoints; so after a restart, also with
    another number of processes, an epoch goes on where the checkpoint was made, with each sample
    once. Process ``r`` gets the r-th part of each batch, in the order of the batch.

    Args:
        dataset: a dataset with a length.
        batch_size: samples in a batch of all processes together.
        num_replicas: how many processes; by default those of the group.
        rank: which of them this is; by default its number in the group.
        shuffle: a new random order for each epoch.
        seed: of that order.
        drop_last: leave out a last batch that is smaller. Otherwise processes have unequal parts of
            it, and some perhaps none.

    >>> from taeda.distributed.elastic import ElasticBatchSampler
    >>> sampler = ElasticBatchSampler(range(10), 4, num_replicas=2, rank=1, shuffle=False)
    >>> list(sampler)
    [[2, 3], [6, 7], [9]]
    >>> sampler.advance()
    >>> fewer = ElasticBatchSampler(range(10), 4, num_replicas=1, rank=0, shuffle=False)
    >>> fewer.load_state_dict(sampler.state_dict())
    >>> list(fewer)
    [[4, 5, 6, 7], [8, 9]]
    """

    def __init__(
        self,
        dataset: Sized,
        batch_size: int,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        from taeda import distributed

        self.length, self.batch_size = len(dataset), batch_size
        self.num_replicas = distributed.get_world_size() if num_replicas is None else num_replicas
        self.rank = distributed.get_rank() if rank is None else rank
        if batch_size < 1 or not 0 <= self.rank < self.num_replicas:
            raise ValueError(
                f"ElasticBatchSampler: batch_size is {batch_size}, rank {self.rank} of "
                f"{self.num_replicas}"
            )
        self.shuffle, self.seed, self.drop_last = shuffle, seed, drop_last
        self.epoch = self.consumed = 0

    def _order(self) -> list[int]:
        if not self.shuffle:
            return list(range(self.length))
        generator = taeda.Generator().manual_seed(self.seed + self.epoch)
        return [int(i) for i in taeda.randperm(self.length, generator=generator).tolist()]

    def __iter__(self) -> Iterator[list[int]]:
        order = self._order()
        for first in range(self.consumed, self.length, self.batch_size):
            batch = order[first : first + self.batch_size]
            if self.drop_last and len(batch) < self.batch_size:
                return
            each = len(batch) / self.num_replicas
            yield batch[round(self.rank * each) : round((self.rank + 1) * each)]

    def __len__(self) -> int:
        left = self.length - self.consumed
        return left // self.batch_size if self.drop_last else -(-left // self.batch_size)

    def advance(self, batches: int = 1) -> None:
        """Say that all processes have learned from some batches."""
        self.consumed = min(self.length, self.consumed + batches * self.batch_size)

    def set_epoch(self, epoch: int) -> None:
        """Begin an epoch; one that is under way goes on."""
        if epoch != self.epoch:
            self.epoch, self.consumed = epoch, 0

    def state_dict(self) -> dict[str, Any]:
        """The epoch, and how many samples of it have been learned from."""
        return {"epoch": self.epoch, "consumed": self.consumed, "seed": self.seed}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on where a state was taken."""
        self.epoch, self.consumed = state_dict["epoch"], state_dict["consumed"]
        self.seed = state_dict["seed"]
