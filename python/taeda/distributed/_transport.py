"""What carries bytes between the processes of a group: the interface below collectives.

A transport begins transfers and finishes them. Both sides of a message know its size. Messages from
one process to another with the same tag arrive in the order in which they were sent.
"""

from __future__ import annotations

import abc
import threading
from collections.abc import Callable, Sequence

__all__ = ["Late", "Lost", "NoPeers", "Transfer", "Transport"]


class Lost(Exception):
    """Another process is gone, or has given up."""

    def __init__(self, peer: int | None, why: str) -> None:
        super().__init__(why)
        self.peer = peer


class Late(Exception):
    """Transfers were not done in time; ``peers`` are those that they wait for."""

    def __init__(self, peers: list[int]) -> None:
        super().__init__(f"still waiting for {peers}")
        self.peers = peers


class Transfer:
    """A message that is on its way, out or in.

    Attributes:
        peer: the other process's number in the group; None for a message from anybody, until one
            has come.
        tag: what tells messages apart.
        data: what is sent, or where to write.
        out: whether it is sent.
        done: whether it has ended.
        error: what went wrong, once it is done.
    """

    def __init__(self, peer: int | None, tag: int, data: memoryview, out: bool) -> None:
        self.peer, self.tag, self.data, self.out = peer, tag, data, out
        self.done = False
        self.error: Exception | None = None
        self._event: threading.Event | None = None

    def end(self, error: Exception | None = None) -> None:
        """Say that it is over."""
        self.error = error
        self.done = True
        if self._event is not None:
            self._event.set()

    def ended(self, seconds: float) -> bool:
        """Wait for a thread to say so, not longer than this."""
        if not self.done:
            self._event = self._event or threading.Event()
            if not self.done:  # it may have ended before there was an event
                self._event.wait(seconds)
        return self.done


class Transport(abc.ABC):
    """Carries bytes between the processes of a group.

    Attributes:
        rank: the number of this process in the group.
        size: how many there are.
        watch: called now and then by whoever waits: why the group has given up, or None.
    """

    rank: int
    size: int

    def __init__(self) -> None:
        self.watch: Callable[[], str | None] = _nothing_to_see

    @abc.abstractmethod
    def send(self, peer: int, tag: int, data: memoryview) -> Transfer:
        """Begin to send; the data must stay as it is until the transfer is done."""

    @abc.abstractmethod
    def receive(self, peer: int | None, tag: int, data: memoryview) -> Transfer:
        """Begin to receive; from anybody if ``peer`` is None."""

    @abc.abstractmethod
    def finish(self, transfers: Sequence[Transfer], until: float) -> None:
        """Wait until all are done.

        Args:
            transfers: what has been begun.
            until: when to give up, on the clock of ``time.monotonic``.

        Raises:
            Late: the time is over.
            Lost: a process is gone.
        """

    @abc.abstractmethod
    def close(self) -> None:
        """End all connections. What is under way fails here and at the other ends."""


def _nothing_to_see() -> str | None:
    return None


class NoPeers(Transport):
    """The transport of a group of one, which has nobody to send to."""

    rank, size = 0, 1

    def send(self, peer: int, tag: int, data: memoryview) -> Transfer:
        raise ValueError(f"there is no process {peer} in a group of 1")

    def receive(self, peer: int | None, tag: int, data: memoryview) -> Transfer:
        raise ValueError(f"there is no process {peer} in a group of 1")

    def finish(self, transfers: Sequence[Transfer], until: float) -> None:
        if transfers:
            raise ValueError("there are no transfers in a group of 1")

    def close(self) -> None:
        """End all connections; there are none."""
