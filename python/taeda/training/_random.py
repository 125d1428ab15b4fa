"""The random streams that training draws from, saved and put back."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from typing import Any

import taeda
from taeda import Generator
from taeda.random import rng_states, set_rng_states

__all__ = ["load_streams", "streams"]


def _generators(loader: Any) -> Iterator[Generator]:
    """The generators that a loader, its samplers and its datasets were given, each once."""
    seen: set[int] = set()
    waiting = [loader]
    while waiting:
        owner = waiting.pop(0)
        if owner is None or id(owner) in seen:
            continue
        seen.add(id(owner))
        found = getattr(owner, "generator", None)
        if isinstance(found, Generator) and id(found) not in seen:
            seen.add(id(found))
            yield found
        names = ("sampler", "batch_sampler", "dataset")
        waiting += [part for name in names if (part := getattr(owner, name, None)) is not None]


def streams(loader: Any) -> dict[str, Any]:
    """The states of the default streams, Python's, NumPy's where it is loaded, and a loader's."""
    state: dict[str, Any] = {
        "default": rng_states(),
        "loader": None if loader is None else [g.get_state() for g in _generators(loader)],
    }
    version, numbers, following = random.getstate()
    state["python"] = [version, taeda.tensor(numbers, dtype=taeda.int64), following]
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        kind, keys, *rest = numpy.random.get_state()
        state["numpy"] = [str(kind), taeda.tensor(keys.tolist(), dtype=taeda.int64), *rest]
    return state


def load_streams(state: dict[str, Any], loader: Any) -> None:
    """Let all streams go on from where ``streams`` found them.

    Raises:
        ValueError: the loader has another number of generators than the one that was saved.
    """
    generators = list(_generators(loader))
    saved_states = state["loader"] or []
    if loader is None or state["loader"] is None:
        generators = saved_states = []
    if len(generators) != len(saved_states):
        raise ValueError(
            f"Trainer: the data that was trained on had {len(saved_states)} random generators "
            f"of its own, this one has {len(generators)}: resuming takes a loader made as before"
        )
    default = state["default"]  # older files have the CPU's state alone
    set_rng_states(default if isinstance(default, dict) else {"cpu": default})
    for generator, saved in zip(generators, saved_states, strict=True):
        generator.set_state(saved)
    version, numbers, following = state["python"]
    random.setstate((version, tuple(numbers.tolist()), following))
    if "numpy" in state:
        import numpy

        kind, keys, *rest = state["numpy"]
        legacy = (kind, numpy.array(keys.tolist(), dtype=numpy.uint32), *rest)
        numpy.random.set_state(legacy)  # noqa: NPY002
