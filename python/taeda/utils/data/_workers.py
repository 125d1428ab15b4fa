"""Worker processes, and passes through a dataset that they share."""

from __future__ import annotations

import functools
import os
import signal
import time
import warnings
import weakref
from multiprocessing import connection as mp_connection
from typing import TYPE_CHECKING, Any

from . import _messages, _worker
from ._pin_thread import PinThread
from ._worker import FAILED, Failure, Job
from ._worker_info import EXHAUSTED

if TYPE_CHECKING:
    from collections.abc import Iterator

# Seconds that workers are given to finish before they are terminated, and then killed.
_PATIENCE = 2.0
# What may wait in one socket, unread, in all.
_SOCKET_ROOM = 64 * 1024


class _Process:
    """A worker, seen from the main process."""

    def __init__(self, number: int, process: Any, connection: Any) -> None:
        self.number = number
        self.process = process
        self.connection = connection
        self.active = True  # has more to give in this pass


class Workers:
    """The worker processes of a DataLoader.

    Args:
        context: a ``multiprocessing`` context.
        count: how many.
        job: what they do.
        prefetch: how many tasks each has at most.
    """

    def __init__(self, context: Any, count: int, job: Job, prefetch: int) -> None:
        self.inline = _SOCKET_ROOM // (prefetch + 1)
        self.processes: list[_Process] = []
        self.epoch = 0
        self._threads: list[PinThread] = []  # that of this pass, if it pins
        self._finalizer = weakref.finalize(self, _stop, self.processes, self._threads, os.getpid())
        forks = context.get_start_method() == "fork"
        try:
            for number in range(count):
                ours, theirs = context.Pipe(duplex=True)
                others = [p.connection for p in self.processes] + [ours] if forks else []
                process = context.Process(
                    target=_worker.run, args=(job, number, theirs, self.inline, others), daemon=True
                )
                # Noted first, so that whatever happens it is stopped.
                self.processes.append(_Process(number, process, ours))
                process.start()
                theirs.close()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End the processes, and wait until they are gone."""
        self._finalizer()

    def start_pass(self, user: Any, pin: int | None) -> None:
        """Discard the workers' remaining answers of the previous pass.

        Args:
            user: with whom the pass ends.
            pin: the device for which batches are pinned; None: they are not.
        """
        _stop_threads(self._threads, os.getpid())
        self.epoch += 1
        for worker in self.processes:
            worker.active = True
        if pin is not None:
            receive = functools.partial(_receive, self.processes, self.epoch, 0.0)
            self._threads.append(PinThread(receive, pin))
            weakref.finalize(user, _stop_threads, self._threads[:], os.getpid())

    def end_pass(self) -> None:
        """End the thread that pins, if there is one."""
        _stop_threads(self._threads, os.getpid())

    def send(self, worker: _Process, number: int, task: Any) -> None:
        """Give a worker a task."""
        try:
            _messages.send(worker.connection, (self.epoch, number, task), self.inline)
        except (BrokenPipeError, ConnectionResetError):
            raise _dead(worker) from None

    def receive(self, timeout: float) -> tuple[_Process, int, str, Any]:
        """The next answer of this pass, whichever worker gives it.

        Raises:
            RuntimeError: a worker died, or none answered within ``timeout`` seconds (0: no limit).
        """
        if self._threads:
            return self._threads[0].receive(timeout)
        answer = _receive(self.processes, self.epoch, timeout, None)
        assert answer is not None
        return answer


def _receive(
    processes: list[_Process], epoch: int, timeout: float, wake: Any
) -> tuple[_Process, int, str, Any] | None:
    """The next answer of a pass; None if something comes to ``wake``, a connection, before."""
    end = time.monotonic() + timeout if timeout else None
    by_connection = {worker.connection: worker for worker in processes}
    others = [] if wake is None else [wake]
    while True:
        left = None if end is None else max(0.0, end - time.monotonic())
        ready = mp_connection.wait([*by_connection, *others], left)
        if not ready:
            raise RuntimeError(f"DataLoader timed out after {timeout} seconds")
        if wake in ready:
            return None
        for connection in ready:
            worker = by_connection[connection]
            try:
                answered, number, kind, answer = _messages.receive(worker.connection)
            except (EOFError, ConnectionResetError):
                raise _dead(worker) from None
            if answered == epoch:
                return worker, number, kind, answer


def _dead(worker: _Process) -> RuntimeError:
    worker.process.join(_PATIENCE)
    code, pid = worker.process.exitcode, worker.process.pid
    how = f"with exit code {code}"
    if code is not None and code < 0:
        how = f"killed by {signal.Signals(-code).name}"
        if -code == signal.SIGKILL:
            how += " (when the system runs out of memory, it kills so)"
    return RuntimeError(f"DataLoader worker {worker.number} (pid {pid}) exited unexpectedly, {how}")


def _stop_threads(threads: list[PinThread], owner: int) -> None:
    """End the threads of a pass, unless this is a fork's copy, where there are none."""
    while threads:
        thread = threads.pop()
        if os.getpid() == owner:
            thread.stop()


def _stop(processes: list[_Process], threads: list[PinThread], owner: int) -> None:
    """Ask workers to end; terminate, then kill those that do not."""
    if os.getpid() != owner:
        return  # a fork's copy, thrown away there
    _stop_threads(threads, owner)  # before what it reads from is closed
    for worker in processes:
        # The end of the stream tells a worker to stop, also one that is waiting to send.
        worker.connection.close()
    started = [w.process for w in processes if w.process.pid is not None]
    for signal_name in (None, "terminate", "kill"):
        deadline = time.monotonic() + _PATIENCE
        alive = [process for process in started if process.is_alive()]
        for process in alive:
            if signal_name is not None:
                getattr(process, signal_name)()
        for process in alive:
            process.join(max(0.0, deadline - time.monotonic()))
    for process in started:
        if not process.is_alive():
            process.close()
    processes.clear()


class WorkerPass:
    """One pass through a dataset with worker processes; yields batches.

    Args:
        workers: the processes.
        tasks: what to give them, one task a batch.
        prefetch: how many tasks each has at most.
        timeout: seconds to wait for a batch; 0 waits for ever.
        in_order: yield batches in the order of the tasks, rather than as they come.
        keep: leave the processes running at the end.
        length: the number of batches that the loader has said there are; None where nobody asked.
        pin: the device for which a thread pins the batches; None: they are not pinned.
    """

    def __init__(
        self,
        workers: Workers,
        tasks: Iterator[Any],
        prefetch: int,
        *,
        timeout: float,
        in_order: bool,
        keep: bool,
        length: int | None,
        pin: int | None = None,
    ) -> None:
        self._workers = workers
        self._tasks = tasks
        self._timeout, self._in_order, self._keep, self._length = timeout, in_order, keep, length
        self._sent = self._next = self._yielded = 0
        self._turn = 0  # which worker gets the next task
        self._owner: dict[int, _Process] = {}  # of tasks whose batches have not been yielded
        self._waiting: dict[int, tuple[str, Any]] = {}  # answers that came before their turn
        self._ended = False
        workers.start_pass(self, pin)
        self._epoch = workers.epoch
        try:
            for _ in range(prefetch * len(workers.processes)):
                self._give()
        except BaseException:
            # A worker has died already, or the sampler failed.
            self._end(keep=False)
            raise

    def _give(self) -> None:
        """Give the next task to the next worker that has more to give."""
        processes = self._workers.processes
        for step in range(len(processes)):
            worker = processes[(self._turn + step) % len(processes)]
            if worker.active:
                break
        else:
            return
        try:
            task = next(self._tasks)
        except StopIteration:
            return
        self._turn = (worker.number + 1) % len(processes)
        self._owner[self._sent] = worker
        self._workers.send(worker, self._sent, task)
        self._sent += 1

    def __iter__(self) -> WorkerPass:
        return self

    def __next__(self) -> Any:
        if self._ended:
            raise StopIteration
        if self._epoch != self._workers.epoch:
            raise RuntimeError(
                "DataLoader: another pass has begun with the same persistent workers"
            )
        try:
            kind, answer = self._answer()
        except BaseException:
            # A worker died, the time is up, or somebody pressed Ctrl-C.
            self._end(keep=False)
            raise
        if kind == EXHAUSTED:
            self._end(self._keep)
            raise StopIteration
        self._count()
        if kind == FAILED:
            assert isinstance(answer, Failure)
            raise answer.again()
        return answer

    def _answer(self) -> tuple[str, Any]:
        """The next answer in order; EXHAUSTED if there are no more."""
        while self._owner:
            number = self._expected()
            if number in self._waiting:
                kind, answer = self._waiting.pop(number)
            else:
                worker, number, kind, answer = self._workers.receive(self._timeout)
                if kind == EXHAUSTED:
                    worker.active = False
                elif self._in_order and number != self._expected():
                    self._waiting[number] = kind, answer
                    continue
            del self._owner[number]
            self._give()
            if kind != EXHAUSTED:
                return kind, answer
        return EXHAUSTED, None

    def _expected(self) -> int:
        """The first task that is not done with."""
        return next(iter(self._owner))

    def _count(self) -> None:
        self._yielded += 1
        if self._length is not None and self._yielded > self._length:
            warnings.warn(
                f"DataLoader: the length was said to be {self._length} batches, but more have "
                "come; an IterableDataset must divide its samples among the workers, which "
                "get_worker_info() tells apart",
                stacklevel=4,
            )
            self._length = None

    def stop(self) -> None:
        """End the pass, and the processes with it."""
        self._end(keep=False)

    def _end(self, keep: bool) -> None:
        self._ended = True
        self._owner.clear()
        self._waiting.clear()
        if self._epoch == self._workers.epoch:  # else another pass goes on
            self._workers.end_pass()
        if not keep:
            self._workers.stop()
