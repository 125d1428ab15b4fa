"""Letting processes that have run out of batches wait for the others."""

from __future__ import annotations

import abc
import warnings
from typing import Any

import taeda
from taeda.distributed import _collectives as plain
from taeda.distributed._group import _known
from taeda.distributed._work import Work

__all__ = ["Join", "JoinHook", "Joinable"]


class JoinHook:
    """What a process does that has run out of batches; a subclass says what."""

    def main_hook(self) -> None:
        """Called again and again while other processes have batches."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Called once, when all have run out; the last to do so are told that they are."""


class Joinable(abc.ABC):
    """What takes part in `Join`."""

    _join: Join | None = None

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

    A process that leaves its loop takes part in what the others do, by the `main_hook` of each,
    until all have left theirs; then the `post_hook` of each is called.

    Args:
        joinables: what takes part, such as a `DistributedDataParallel`, of one group. The first
            calls `notify_join_context` for each batch.
        enable: False if all processes have equally many.
        throw_on_early_termination: end all processes when one has run out.
        kwargs: for the `join_hook` of each.

    Raises:
        ValueError: there is nothing in ``joinables``, or they have different groups.
        RuntimeError: a process has run out, with ``throw_on_early_termination``.
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
        groups = [_known(joinable.join_process_group) for joinable in joinables]
        if any(each is not groups[0] for each in groups):
            raise ValueError("Using join context manager with multiple process groups")
        self._group = groups[0]
        self._joinables = joinables
        self._hooks = [joinable.join_hook(**kwargs) for joinable in joinables]
        self._enable, self._throw = enable, throw_on_early_termination

    def __enter__(self) -> None:
        if self._enable:
            self._joinables[0]._join = self

    def __exit__(self, kind: Any, value: Any, traceback: Any) -> None:
        if not self._enable:
            return
        self._joinables[0]._join = None
        if kind is not None:
            return
        last, turns = True, 0
        while self._others_with_batches() > 0:
            if self._throw:
                self._tell_to_end()
            last, turns = False, turns + 1
            if turns == 1000:
                warnings.warn(
                    f"Rank {self._group.rank()} waits since 1000 batches for processes that have "
                    "more of them",
                    stacklevel=2,
                )
            for hook in self._hooks:
                hook.main_hook()
        for hook in self._hooks:
            hook.post_hook(last)

    def _others_with_batches(self) -> int:
        count = taeda.zeros(1)
        plain.all_reduce(count, group=self._group)
        return int(count.item())

    def _tell_to_end(self) -> None:
        plain.all_reduce(taeda.ones(1), group=self._group)
        raise RuntimeError(f"Rank {self._group.rank()} exhausted all inputs.")

    @staticmethod
    def notify_join_context(joinable: Any) -> Work | None:
        """Say that a process has another batch; does nothing outside of a `Join`.

        Args:
            joinable: the first of the `Join`; others do nothing.

        Returns:
            What to wait for; then its result is how many processes have one.
        """
        _known(joinable.join_process_group)
        join = getattr(joinable, "_join", None)
        if join is None:
            return None
        work = plain.all_reduce(taeda.ones(1), group=join._group, async_op=True)
        if join._throw:
            ended = taeda.zeros(1)
            plain.all_reduce(ended, group=join._group)
            if ended.item():
                raise RuntimeError(
                    "Detected at least one rank that exhausted inputs. Throwing across all ranks."
                )
        return work
