"""Stands for ``torch.utils.data._utils.worker``: where the seeds of NumPy in workers come from."""

from __future__ import annotations

__all__: list[str] = []


def _generate_state(base_seed: int, worker_id: int) -> list[int]:
    """Four words that seed NumPy in a worker of a DataLoader."""
    from numpy.random import SeedSequence

    entropy = [worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    words: list[int] = SeedSequence(entropy).generate_state(4).tolist()
    return words
