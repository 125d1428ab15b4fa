"""Stacks of Python that asked for memory, by numbers that the library keeps."""

from __future__ import annotations

import os
import sys
from typing import Any

__all__ = ["frames", "number"]

_NONE = -1
_HERE = os.path.dirname(os.path.dirname(__file__)) + os.sep  # taeda's own lines are left out

_stacks: list[tuple[tuple[Any, int], ...]] = []  # of code and line, the innermost first
_numbers: dict[tuple[tuple[Any, int], ...], int] = {}


def number() -> int:
    """The number of the calling thread's stack."""
    lines = []
    frame: Any = sys._getframe(1)
    while frame is not None:
        if not frame.f_code.co_filename.startswith(_HERE):
            lines.append((frame.f_code, frame.f_lineno))
        frame = frame.f_back
    stack = tuple(lines)
    found = _numbers.get(stack)
    if found is None:
        found = _numbers[stack] = len(_stacks)
        _stacks.append(stack)
    return found


def frames(number: int) -> list[dict[str, Any]]:
    """The frames of a stack, by its number: the name of the function, file and line of each."""
    stack = () if number == _NONE else _stacks[number]
    return [
        {"name": code.co_name, "filename": code.co_filename, "line": line} for code, line in stack
    ]
