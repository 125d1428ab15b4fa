"""Starting several processes with one function."""

from __future__ import annotations

import multiprocessing
import signal
import sys
import time
import traceback
from multiprocessing import connection
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


class ProcessException(Exception):
    """A process that was started has failed."""

    def __init__(self, msg: str, error_index: int, pid: int) -> None:
        super().__init__(msg)
        self.msg = msg
        self.error_index = error_index
        self.pid = pid

    def __reduce__(self) -> Any:
        return type(self), (self.msg, self.error_index, self.pid)


class ProcessRaisedException(ProcessException):
    """Its function raised an exception, whose traceback the message holds."""


class ProcessExitedException(ProcessException):
    """It ended without one: by a signal, or with an exit code that is not 0."""

    def __init__(
        self,
        msg: str,
        error_index: int,
        error_pid: int,
        exit_code: int,
        signal_name: str | None = None,
    ) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code = exit_code
        self.signal_name = signal_name

    def __reduce__(self) -> Any:
        args = (self.msg, self.error_index, self.pid, self.exit_code, self.signal_name)
        return type(self), args


def _run(fn: Any, index: int, args: tuple[Any, ...], errors: Any) -> None:
    try:
        fn(index, *args)
    except KeyboardInterrupt:
        pass  # the process that started this one is interrupted too
    except Exception:
        errors.send(traceback.format_exc())
        sys.exit(1)


class ProcessContext:
    """Processes that run one function.

    Attributes:
        processes: as ``multiprocessing`` knows them.
    """

    def __init__(self, processes: list[Any], errors: list[Any]) -> None:
        self.processes = processes
        self._errors = errors
        self._left = {process.sentinel: i for i, process in enumerate(processes)}

    def pids(self) -> list[int]:
        """The processes' numbers."""
        return [int(process.pid) for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait until one process more has ended; True where all have.

        Args:
            timeout: seconds to wait; None waits for as long as it takes.
            grace_period: seconds the others are given to end where one failed, before they are
                terminated.

        Raises:
            ProcessRaisedException: a process's function raised an exception.
            ProcessExitedException: a process ended in another way than it should.
        """
        if not self._left:
            return True
        failed = None
        for sentinel in connection.wait(list(self._left), timeout):
            index = self._left.pop(sentinel)
            self.processes[index].join()
            if self.processes[index].exitcode != 0:
                failed = index
        if failed is None:
            return not self._left
        self._end_all(grace_period)
        self._raise(failed)
        return False

    def _end_all(self, grace_period: float | None) -> None:
        deadline = time.monotonic() + (grace_period or 0)
        for process in self.processes:
            process.join(max(0.0, deadline - time.monotonic()))
            if process.is_alive():
                process.terminate()
        for process in self.processes:
            process.join(30)
            if process.is_alive():
                process.kill()
                process.join()
        self._left.clear()

    def _raise(self, index: int) -> None:
        process = self.processes[index]
        try:
            text = self._errors[index].recv()
        except EOFError:  # it ended before it could say anything
            text = ""
        if text:
            text = f"\n\n-- Process {index} terminated with the following error:\n{text}"
            raise ProcessRaisedException(text, index, process.pid)
        code = process.exitcode
        name = signal.Signals(-code).name if code < 0 else None
        how = f"signal {name}" if name else f"exit code {code}"
        text = f"process {index} terminated with {how}"
        raise ProcessExitedException(text, index, process.pid, code, name)


SpawnContext = ProcessContext


def start_processes(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Start ``nprocs`` processes that call ``fn(i, *args)``, with i from 0.

    Args:
        fn: a function; with ``"spawn"``, one that can be pickled.
        args: its arguments after the first; tensors among them are shared.
        nprocs: how many processes.
        join: wait until all have ended, and return None; where False, return them at once.
        daemon: end the processes with this one.
        start_method: ``"spawn"``, ``"fork"`` or ``"forkserver"``.

    Raises:
        ProcessRaisedException: with ``join``, ``fn`` raised an exception; the others are ended.
        ProcessExitedException: with ``join``, a process ended in another way than it should.
    """
    context: Any = multiprocessing.get_context(start_method)
    processes, errors = [], []
    for index in range(nprocs):
        reader, writer = context.Pipe(duplex=False)
        process = context.Process(target=_run, args=(fn, index, args, writer), daemon=daemon)
        process.start()
        writer.close()
        processes.append(process)
        errors.append(reader)
    started = ProcessContext(processes, errors)
    if not join:
        return started
    ended = False
    while not ended:
        ended = started.join()
    return None


def spawn(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """``start_processes``, for new processes that inherit nothing.

    Raises:
        ValueError: ``start_method`` is not ``"spawn"``; that is what ``start_processes`` is for.
    """
    if start_method != "spawn":
        raise ValueError(
            f"spawn: start_method must be 'spawn', got {start_method!r}; use start_processes"
        )
    return start_processes(fn, args, nprocs, join, daemon, start_method)
