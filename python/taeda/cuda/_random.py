"""The streams of random numbers that CUDA devices draw, where CUDA's library is installed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import taeda
from taeda import _C
from taeda.cuda import _runtime

__all__ = [
    "get_rng_state",
    "get_rng_state_all",
    "initial_seed",
    "manual_seed",
    "manual_seed_all",
    "seed",
    "seed_all",
    "set_rng_state",
    "set_rng_state_all",
]


def generators() -> tuple[_C.Generator, ...]:
    """The default generators of all devices."""
    return tuple(_C._cuda_generator(index) for index in range(_runtime.count()))


def _generator(device: Any, function: str) -> _C.Generator:
    return _C._cuda_generator(_runtime.index_of(device, function))


def manual_seed(seed: int) -> None:
    """Start the current device's stream that belongs to a seed; no-op where there is no device.

    :func:`taeda.manual_seed` does so for all devices.

    Args:
        seed: any int from ``-2**63`` to ``2**64 - 1``.
    """
    seed = int(seed)
    if _runtime.count():
        _generator(None, "manual_seed").manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    """Start the streams of all devices that belong to a seed."""
    seed = int(seed)
    for generator in generators():
        generator.manual_seed(seed)


def seed() -> None:
    """Seed the current device's stream from the operating system's entropy."""
    if _runtime.count():
        _generator(None, "seed").seed()


def seed_all() -> None:
    """Seed the streams of all devices alike, from the operating system's entropy."""
    manual_seed_all(_C.Generator().seed())


def initial_seed() -> int:
    """The seed that the current device's stream was started with."""
    return _generator(None, "initial_seed").initial_seed()


def get_rng_state(device: Any = "cuda") -> taeda.Tensor:
    """The state of a device's stream: seed and offset, 16 bytes in the CPU's memory."""
    return _generator(device, "get_rng_state").get_state()


def get_rng_state_all() -> list[taeda.Tensor]:
    """The states of all devices' streams."""
    return [generator.get_state() for generator in generators()]


def set_rng_state(new_state: taeda.Tensor, device: Any = "cuda") -> None:
    """Let a device's stream go on from a state that ``get_rng_state`` gave.

    Raises:
        TypeError: the state is no uint8 tensor of the CPU.
        RuntimeError: it is none of a CUDA generator.
    """
    _generator(device, "set_rng_state").set_state(new_state)


def set_rng_state_all(new_states: Iterable[taeda.Tensor]) -> None:
    """Let the streams of all devices go on from states that ``get_rng_state_all`` gave."""
    for index, state in enumerate(new_states):
        set_rng_state(state, index)
