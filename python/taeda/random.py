"""The process-wide stream of random numbers."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from taeda import _C

__all__ = [
    "default_generator",
    "fork_rng",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
]

default_generator = _C.default_generator


def manual_seed(seed: int) -> _C.Generator:
    """Start the default stream that belongs to ``seed``, and return its Generator.

    On the cpu, the numbers that follow are those that PyTorch gives for this seed.

    Args:
        seed: any int from ``-2**63`` to ``2**64 - 1``.
    """
    return default_generator.manual_seed(int(seed))


def seed() -> int:
    """Seed the default stream from the operating system's entropy, and return that seed."""
    return default_generator.seed()


def initial_seed() -> int:
    """Return the seed that the default stream was started with."""
    return default_generator.initial_seed()


def get_rng_state() -> _C.Tensor:
    """Return the state of the default stream, as a uint8 tensor."""
    return default_generator.get_state()


def set_rng_state(new_state: Any) -> None:
    """Let the default stream go on from a state that ``get_rng_state`` gave."""
    default_generator.set_state(new_state)


@contextlib.contextmanager
def fork_rng(enabled: bool = True) -> Iterator[None]:
    """Put the default stream's state back when the ``with`` block ends.

    Args:
        enabled: with ``False``, do nothing.
    """
    if not enabled:
        yield
        return
    state = get_rng_state()
    try:
        yield
    finally:
        set_rng_state(state)
