"""Values that are there later: ``Future``, ``collect_all``, ``wait_all``.

>>> import taeda
>>> future = taeda.futures.Future()
>>> doubled = future.then(lambda f: 2 * f.value())
>>> future.set_result(21)
>>> doubled.wait()
42
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from typing import Any, Generic, TypeVar

__all__ = ["Future", "collect_all", "wait_all"]

T = TypeVar("T")
S = TypeVar("S")


class Future(Generic[T]):
    """A value that one thread sets and others wait for.

    Args:
        devices: where the value's tensors will be; there are no streams of work to wait for.
    """

    def __init__(self, *, devices: list[Any] | None = None) -> None:
        self._completed = threading.Event()
        self._lock = threading.Lock()
        self._result: Any = None
        self._error: Exception | None = None
        self._callbacks: list[Callable[[], None]] = []

    def done(self) -> bool:
        """Whether there is a value, or an error."""
        return self._completed.is_set()

    def wait(self) -> T:
        """The value, once it is there.

        Raises:
            Exception: the one that ``set_exception`` was given.
        """
        self._completed.wait()
        return self.value()

    def value(self) -> T:
        """The value, which must be there.

        Raises:
            RuntimeError: it is not.
            Exception: the one that ``set_exception`` was given.
        """
        if not self.done():
            raise RuntimeError("Future.value: it has not been set; wait() waits for it")
        if self._error is not None:
            raise self._error
        return self._result

    def set_result(self, result: T) -> None:
        """Give the value. Callbacks run now, in this thread.

        Raises:
            RuntimeError: there is a value or an error already.
        """
        self._complete(result, None)

    def set_exception(self, result: Exception) -> None:
        """Give an error, which ``wait`` and ``value`` will raise.

        Raises:
            RuntimeError: there is a value or an error already.
        """
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._complete(None, result)

    def _complete(self, result: Any, error: Exception | None) -> None:
        with self._lock:
            if self.done():
                raise RuntimeError(
                    "Attempting to mark a completed Future as complete again. Note that a Future "
                    "can only be marked completed once."
                )
            self._result, self._error = result, error
            self._completed.set()
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    def _when_done(self, callback: Callable[[], None]) -> None:
        with self._lock:
            if not self.done():
                self._callbacks.append(callback)
                return
        callback()

    def then(self, callback: Callable[[Future[T]], S]) -> Future[S]:
        """A future for what ``callback(self)`` returns, which is called when the value is there.

        What it raises is the error of the new future.
        """
        following: Future[S] = Future()

        def run() -> None:
            try:
                result = callback(self)
            except Exception as error:
                following.set_exception(error)
            else:
                following.set_result(result)

        self._when_done(run)
        return following

    def add_done_callback(self, callback: Callable[[Future[T]], None]) -> None:
        """Call ``callback(self)`` when the value is there; what it raises becomes a warning."""

        def run() -> None:
            try:
                callback(self)
            except Exception as error:
                warnings.warn(
                    f"Future: a callback raised {type(error).__name__}: {error}", stacklevel=2
                )

        self._when_done(run)


def collect_all(futures: list[Future[Any]]) -> Future[list[Future[Any]]]:
    """A future for the list itself, which is there when all of its futures are.

    An error of one of them is then its error too.
    """
    futures = list(futures)
    together: Future[list[Future[Any]]] = Future()
    missing = len(futures)
    lock = threading.Lock()
    if not futures:
        together.set_result(futures)

    def count() -> None:
        nonlocal missing
        with lock:
            missing -= 1
            last = missing == 0
        if last:
            error = next((f._error for f in futures if f._error is not None), None)
            if error is None:
                together.set_result(futures)
            else:
                together.set_exception(error)

    for future in futures:
        future._when_done(count)
    return together


def wait_all(futures: list[Future[Any]]) -> list[Any]:
    """The values of all futures, once they are there.

    Raises:
        Exception: the error of one of them.
    """
    return [future.wait() for future in collect_all(futures).wait()]
