"""Operations of a group that are under way, and the thread that performs those nobody waits for."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING

from taeda import Tensor
from taeda.futures import Future

if TYPE_CHECKING:
    from typing import Any

__all__ = ["Runner", "Work"]


class Work:
    """An operation of a group.

    Args:
        result: the tensors that it writes.
        ended: whether it has ended already.
    """

    def __init__(self, result: list[Tensor] | None = None, ended: bool = True) -> None:
        self._result = [] if result is None else result
        self._over = threading.Event()
        self._error: Exception | None = None
        self._future: Future[list[Tensor]] | None = None
        self._lock = threading.Lock()
        if ended:
            self._over.set()

    def _end(self, error: Exception | None = None) -> None:
        with self._lock:
            self._error = error
            self._over.set()
        if self._future is not None:
            self._tell(self._future)

    def _tell(self, future: Future[list[Tensor]]) -> None:
        if self._error is None:
            future.set_result(self._result)
        else:
            future.set_exception(self._error)

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait for the end: True.

        Args:
            timeout: how long; the group's own by default.

        Raises:
            RuntimeError: the operation failed, or is not over in this time.
        """
        if not self._over.wait(None if timeout is None else timeout.total_seconds()):
            raise RuntimeError(f"Work.wait: the operation is not over after {timeout}")
        if self._error is not None:
            raise self._error
        return True

    def _source_rank(self) -> int:
        """Whom a message came from, or goes to, among all processes; -1 for other operations."""
        return -1

    def _block(self) -> None:
        """Let this thread wait, also for an operation of a device."""
        self.wait()

    def synchronize(self) -> None:
        """Wait for the end."""
        self.wait()

    def is_completed(self) -> bool:
        """Whether it has ended."""
        return self._over.is_set()

    def is_success(self) -> bool:
        """Whether it has ended and nothing went wrong."""
        return self._over.is_set() and self._error is None

    def exception(self) -> Exception | None:
        """The error that ended it, None where there was none."""
        return self._error

    def result(self) -> list[Tensor]:
        """The tensors that it writes."""
        return self._result

    def get_future(self) -> Future[list[Tensor]]:
        """A future with the result."""
        with self._lock:
            made = self._future is None
            if self._future is None:
                self._future = Future()
            over = self._over.is_set()
        if made and over:
            self._tell(self._future)
        return self._future


class Runner:
    """Performs a group's operations one after another, in the order in which they were begun.

    What is waited for at once is performed by the caller, unless something is before it.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._jobs: deque[tuple[Callable[[], Any], Work]] = deque()
        self._changed = threading.Condition()
        self._busy = False
        self._thread: threading.Thread | None = None
        self._ended = False

    def begin(self, job: Callable[[], Any], result: list[Tensor]) -> Work:
        """Let the thread perform it."""
        work = Work(result, ended=False)
        with self._changed:
            self._jobs.append((job, work))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
            self._changed.notify_all()
        return work

    def perform(self, job: Callable[[], Any]) -> None:
        """Perform it here, after what was begun before."""
        with self._changed:
            self._changed.wait_for(lambda: not self._busy and not self._jobs)
            self._busy = True
        try:
            job()
        finally:
            with self._changed:
                self._busy = False
                self._changed.notify_all()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._ended or (self._jobs and not self._busy))
                if not self._jobs:
                    return
                self._busy = True
                job, work = self._jobs.popleft()
            error: Exception | None = None
            try:
                job()
            except Exception as raised:
                error = raised
            with self._changed:
                self._busy = False
                self._changed.notify_all()
            work._end(error)
            del job, work

    def end(self) -> None:
        """Let the thread end when it has nothing left to do."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()
