"""Stands for ``torch._dynamo``: what packages ask of a compiler, where there is none."""

from __future__ import annotations

from typing import Any, TypeVar

from taeda.compiler import allow_in_graph, disable, is_compiling, list_backends, reset

from . import config, eval_frame, utils
from .eval_frame import OptimizedModule

__all__ = [
    "OptimizedModule",
    "allow_in_graph",
    "assume_constant_result",
    "config",
    "disable",
    "disallow_in_graph",
    "eval_frame",
    "forbid_in_graph",
    "graph_break",
    "is_compiling",
    "list_backends",
    "mark_dynamic",
    "mark_static",
    "mark_static_address",
    "maybe_mark_dynamic",
    "reset",
    "utils",
]

T = TypeVar("T")


def assume_constant_result(fn: T) -> T:
    """Return a function as it is: it is called every time."""
    return fn


def graph_break(msg: str = "") -> None:
    """Where a compiler would begin another graph: there are no graphs."""


def disallow_in_graph(fn: T) -> T:
    """Return a function as it is: there are no graphs that it could be part of."""
    return fn


forbid_in_graph = disallow_in_graph


def mark_dynamic(t: Any, index: Any, **options: Any) -> None:
    """Say that a size of a tensor may change: it may anyway."""


maybe_mark_dynamic = mark_dynamic


def mark_static(t: Any, index: Any = None) -> None:
    """Say that sizes of a tensor do not change: nothing is made for them."""


def mark_static_address(t: Any, guard: bool = False) -> None:
    """Say that a tensor's memory stays where it is: nothing depends on it."""
