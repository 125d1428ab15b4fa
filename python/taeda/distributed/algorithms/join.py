"""Letting processes that have run out of batches wait for the others, of which there are none."""

from __future__ import annotations

import abc
from typing import Any

from taeda.distributed._collectives import Work
from taeda.distributed._group import _known

__all__ = ["Join", "JoinHook", "Joinable"]


class JoinHook:
    """What a process does that has run out of batches; a subclass says what."""

    def main_hook(self) -> None:
        """Called again and again while other processes have batches."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Called once, when all have run out; the last to do so is told that it is."""


class Joinable(abc.ABC):
    """What takes part in `Join`."""

    @abc.abstractmethod
    def join_hook(self, **kwargs: Any) -> JoinHook:
        """Return what to do after running out of batches; ``kwargs`` are those of `Join`."""

    @property
    @abc.abstractmethod
    def join_device(self) -> Any:
        """The device of what processes exchange."""

    @property
    @abc.abstractmethod
    def join_process_group(self) -> Any:
        """The processes."""


class Join:
    """A block for a loop over batches, of which other processes may have more.

    With one process, its end calls the `post_hook` of each.

    Args:
        joinables: what takes part, such as a `DistributedDataParallel`.
        enable: False if all processes have equally many.
        throw_on_early_termination: end all processes when one has run out.
        kwargs: for the `join_hook` of each.

    Raises:
        ValueError: there is nothing in ``joinables``.
    """

    def __init__(
        self,
        joinables: list[Any],
        enable: bool = True,
        throw_on_early_termination: bool = False,
        **kwargs: Any,
    ) -> None:
        if len(joinables) == 0:
            raise ValueError("The join context manager requires at least one joinable")
        for joinable in joinables:
            _known(joinable.join_process_group)
        self._hooks = [joinable.join_hook(**kwargs) for joinable in joinables]
        self._enable = enable

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, value: Any, traceback: Any) -> None:
        if self._enable and kind is None:
            for hook in self._hooks:
                hook.post_hook(True)

    @staticmethod
    def notify_join_context(joinable: Any) -> Work | None:
        """Say that a process has another batch; there is nobody to hear it."""
        _known(joinable.join_process_group)
        return None
