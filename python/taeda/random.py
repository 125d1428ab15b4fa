"""The process-wide streams of random numbers: the CPU's, and one of each CUDA device."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

import taeda
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
    """Start the default streams that belong to ``seed``, and return the CPU's Generator.

    The numbers that follow are those that PyTorch gives for this seed, on the CPU and on CUDA
    devices.

    Args:
        seed: any int from ``-2**63`` to ``2**64 - 1``.
    """
    _C._seed_default_generators(int(seed))
    return default_generator


def seed() -> int:
    """Seed the default streams from the operating system's entropy, and return that seed."""
    chosen = default_generator.seed()
    _C._seed_default_generators(chosen)
    return chosen


def initial_seed() -> int:
    """Return the seed that the CPU's default stream was started with."""
    return default_generator.initial_seed()


def get_rng_state() -> _C.Tensor:
    """Return the state of the CPU's default stream, as a uint8 tensor."""
    return default_generator.get_state()


def set_rng_state(new_state: Any) -> None:
    """Let the CPU's default stream go on from a state that ``get_rng_state`` gave."""
    default_generator.set_state(new_state)


def rng_states() -> dict[str, _C.Tensor]:
    """The states of the default streams by device, as far as they have been drawn from."""
    return {str(g.device): g.get_state() for g in (default_generator, *_C._cuda_generators())}


def set_rng_states(before: dict[str, _C.Tensor]) -> None:
    """Put states back that `rng_states` gave, of devices that there are."""
    set_rng_state(before["cpu"])
    for name in before.keys() - {"cpu"}:
        index = taeda.device(name).index or 0
        if index < taeda.cuda.device_count():
            _C._cuda_generator(index).set_state(before[name])
    for generator in _C._cuda_generators():
        if str(generator.device) not in before:  # made since then
            generator.manual_seed(initial_seed())


@contextlib.contextmanager
def fork_rng(
    devices: Iterable[Any] | None = None, enabled: bool = True, *, device_type: str = "cuda"
) -> Iterator[None]:
    """Put the states of the default streams back when the ``with`` block ends.

    Args:
        devices: those whose streams are put back beside the CPU's; None is all of them.
        enabled: with ``False``, do nothing.
        device_type: the kind of the devices.

    Raises:
        RuntimeError: devices of this kind have no streams of their own.
    """
    if not enabled:
        yield
        return
    if device_type != "cuda":
        raise RuntimeError(f"fork_rng: device_type must be 'cuda', got {device_type!r}")
    if devices is None:
        before = rng_states()
        try:
            yield
        finally:
            set_rng_states(before)
        return
    cpu = get_rng_state()
    of_devices = [(device, taeda.cuda.get_rng_state(device)) for device in devices]
    try:
        yield
    finally:
        set_rng_state(cpu)
        for device, state in of_devices:
            taeda.cuda.set_rng_state(state, device)
