"""The thread that moves batches of workers to pinned memory, before they are asked for."""

from __future__ import annotations

import queue
import sys
import threading
import traceback
from multiprocessing import Pipe
from typing import TYPE_CHECKING, Any

import taeda

from ._worker import BATCH, FAILED, Failure
from .pin_memory import pin_memory

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["PinThread"]


class PinThread:
    """A thread that takes the workers' answers, until it is stopped or they fail.

    Args:
        receive: gives the next answer, whose last two items are its kind and the batch. It is given
            a connection, and returns None when something comes there.
        device: the index of the device whose driver pins.
    """

    def __init__(self, receive: Callable[[Any], tuple[Any, ...] | None], device: int) -> None:
        self._answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._ends = Pipe(duplex=False)  # what comes to the first one wakes the thread
        self._stopping = threading.Event()
        self._thread = threading.Thread(
            target=_run,
            args=(receive, device, self._ends[0], self._stopping, self._answers),
            name="taeda-pin-memory",
            daemon=True,
        )
        self._thread.start()

    def receive(self, timeout: float) -> Any:
        """The next answer, pinned.

        Raises:
            RuntimeError: there was none within ``timeout`` seconds (0: no limit).
            Exception: what the thread was raised.
        """
        try:
            answer = self._answers.get(timeout=timeout or None)
        except queue.Empty:
            raise RuntimeError(f"DataLoader timed out after {timeout} seconds") from None
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def stop(self) -> None:
        """End the thread, and wait until it is gone."""
        if not self._stopping.is_set():
            self._stopping.set()
            # Closing it would not wake the thread: processes that were forked have it, too.
            self._ends[1].send_bytes(b"stop")
            self._ends[1].close()
        if threading.current_thread() is not self._thread:  # where garbage may be collected
            self._thread.join()
            self._ends[0].close()


def _run(
    receive: Callable[[Any], tuple[Any, ...] | None],
    device: int,
    wake: Any,
    stopping: threading.Event,
    answers: queue.SimpleQueue[Any],
) -> None:
    try:
        taeda.cuda.set_device(device)
        while not stopping.is_set():
            answer = receive(wake)
            if answer is None:
                return
            answers.put((*answer[:-2], *_pinned(*answer[-2:])))
    except BaseException as error:
        if not stopping.is_set():
            answers.put(error)


def _pinned(kind: str, batch: Any) -> tuple[str, Any]:
    if kind != BATCH:
        return kind, batch
    try:
        return kind, pin_memory(batch)
    except Exception:
        error, _, _ = sys.exc_info()
        assert error is not None
        text = f"Caught {error.__name__} in the thread that pins memory.\nOriginal "
        return FAILED, Failure(error, text + traceback.format_exc())
