"""The table that all cases stand in."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import NamedTuple


class Case(NamedTuple):
    """One row of the results.

    bytes and flops are the least that any implementation must do, and tell how near a kernel comes
    to the machine's limit. A forward pass reads its inputs and writes its outputs once; a backward
    pass reads the outputs' gradients and the saved inputs and writes the inputs' gradients once. A
    multiplication and its addition are two flops, of float32 (in float64 they count double: half as
    many fit into a register). Both 0: not declared.
    """

    group: str
    title: str
    prepare: Callable[[ModuleType], Callable[[], object]]
    bytes: float = 0
    flops: float = 0


CASES: dict[str, Case] = {}


def case(group: str, title: str, *, bytes: float = 0, flops: float = 0):
    """Adds a case under its function's name."""

    def register(prepare):
        CASES[prepare.__name__] = Case(group, title, prepare, bytes, flops)
        return prepare

    return register
