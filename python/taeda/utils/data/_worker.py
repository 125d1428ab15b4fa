"""The main function of a DataLoader's worker process."""

from __future__ import annotations

import random
import signal
import sys
import traceback
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import taeda

from . import _messages
from ._worker_info import EXHAUSTED, WorkerInfo, set_worker_info

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection

# Kinds of answers to a task, beside EXHAUSTED.
BATCH, FAILED = "batch", "failed"


@dataclass(frozen=True)
class Failure:
    """An exception in a worker, as it is raised again in the main process."""

    kind: Any
    text: str

    @classmethod
    def now(cls, worker: int) -> Failure:
        """The exception that is being handled."""
        kind, error, _ = sys.exc_info()
        assert kind is not None
        text = (
            f"Caught {kind.__name__} in DataLoader worker process {worker}.\n"
            f"Original {traceback.format_exc()}"
        )
        del error
        return cls(kind, text)

    def again(self) -> Exception:
        """An exception of the same type, with the worker's traceback as its message."""
        if self.kind is KeyError:
            # Its message is the repr of its argument, which would spoil the line ends.
            return KeyError(_Verbatim(self.text))
        try:
            error = self.kind(self.text)
        except Exception:  # a class whose constructor wants something else
            error = None
        return error if isinstance(error, Exception) else RuntimeError(self.text)


class _Verbatim(str):
    def __repr__(self) -> str:
        return str(self)


@dataclass(frozen=True)
class Job:
    """A worker's job, sent to it when it starts."""

    dataset: Any
    # Of a dataset: a function from a task to a batch, or to EXHAUSTED.
    fetch: Callable[[Any], Callable[[Any], Any]]
    init: Callable[[int], None] | None
    base_seed: int
    num_workers: int


def run(
    job: Job, worker: int, connection: Connection, inline: int, parents: list[Connection]
) -> None:
    """Answer tasks until the main process closes its end, or is gone.

    ``parents`` are the main process's ends that a fork has copied; open here, they would keep the
    workers from noticing that the main process is gone.
    """
    for other in parents:
        other.close()
    # Ctrl-C reaches all processes of a terminal; the main one stops the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    taeda.set_num_threads(1)
    try:
        _answer(job, worker, connection, inline, _prepare(job, worker))
    except (EOFError, OSError):
        pass  # the main process is gone
    finally:
        connection.close()


def _prepare(job: Job, worker: int) -> Failure | None:
    """Seed the random generators and run the user's function; returns an error, if any."""
    seed = job.base_seed + worker
    random.seed(seed)
    taeda.manual_seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        entropy = [worker, job.base_seed & 0xFFFFFFFF, job.base_seed >> 32, 0]
        numpy.random.seed(numpy.random.SeedSequence(entropy).generate_state(4))
    set_worker_info(WorkerInfo(worker, job.num_workers, seed, job.dataset))
    try:
        if job.init is not None:
            job.init(worker)
    except Exception:
        return Failure.now(worker)
    return None


def _answer(
    job: Job, worker: int, connection: Connection, inline: int, unready: Failure | None
) -> None:
    epoch, fetch, failure = 0, None, unready
    while True:
        task_epoch, number, task = _messages.receive(connection)
        if task_epoch != epoch:
            # A new pass: what is iterated over starts again.
            epoch, failure = task_epoch, unready
            if unready is None:
                fetch, failure = _fetch_of(job, worker)
        kind, answer = (FAILED, failure) if failure else _fetched(fetch, task, worker)
        try:
            _messages.send(connection, (epoch, number, kind, answer), inline)
        except (BrokenPipeError, ConnectionResetError):
            return
        except Exception:  # a batch that cannot be pickled, or does not fit into memory
            sent = Failure.now(worker)
            _messages.send(connection, (epoch, number, FAILED, sent), inline)


def _fetch_of(job: Job, worker: int) -> tuple[Any, Failure | None]:
    try:
        return job.fetch(job.dataset), None
    except Exception:
        return None, Failure.now(worker)


def _fetched(fetch: Any, task: Any, worker: int) -> tuple[str, Any]:
    try:
        batch = fetch(task)
    except Exception:
        return FAILED, Failure.now(worker)
    return (EXHAUSTED, None) if batch is EXHAUSTED else (BATCH, batch)
