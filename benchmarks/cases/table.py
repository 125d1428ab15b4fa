"""The table that all cases stand in."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import NamedTuple


class Case(NamedTuple):
    """One row of the results."""

    group: str
    title: str
    prepare: Callable[[ModuleType], Callable[[], object]]


CASES: dict[str, Case] = {}


def case(group: str, title: str):
    """Adds a case under its function's name."""

    def register(prepare):
        CASES[prepare.__name__] = Case(group, title, prepare)
        return prepare

    return register
