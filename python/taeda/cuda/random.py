"""The generators of CUDA devices: what :mod:`taeda.cuda` has of them.

>>> import taeda
>>> taeda.cuda.random.get_rng_state_all()
[]
"""

from __future__ import annotations

from taeda.cuda import (
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)

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
