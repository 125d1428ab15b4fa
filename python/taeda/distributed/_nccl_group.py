"""What a group does by NCCL, and the thread that notices when it does not come to an end."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from taeda import Tensor
from taeda.cuda._streams import Event, Stream, current_stream, stream
from taeda.futures import Future

from ._deterministic import is_deterministic
from ._errors import DistBackendError, DistStoreError
from ._nccl import Communicator, NcclChannel, on
from ._stores import PrefixStore
from ._transport import Late, Lost
from ._work import Work

if TYPE_CHECKING:
    from ._process_group import ProcessGroup

__all__ = ["NcclGroup", "NcclWork"]

PERIOD = 0.1  # seconds between two looks at what is under way


class NcclWork(Work):
    """An operation that has begun on a communicator's stream.

    Args:
        group: whose it is.
        name: of the operation, for messages.
        sequence: its number in the group; 0 for messages, which have none.
        seconds: how long it may take.
        event: comes when it is over.
        stream: whose work it is.
        result: the tensors that it writes.
        held: keeps its tensors alive until it is over, or the current stream waits for it.
        source: whom a message comes from.
    """

    def __init__(
        self,
        group: NcclGroup,
        name: str,
        sequence: int,
        seconds: float,
        event: Event,
        stream: Stream,
        result: list[Tensor],
        held: Any,
        record: Any,
        source: int = -1,
    ) -> None:
        super().__init__(result, ended=False)
        self._group, self._name, self._sequence, self._seconds = group, name, sequence, seconds
        self._event, self._stream, self._held = event, stream, held
        self._record, self._source = record, source
        self._begun = time.monotonic()

    def _come(self) -> bool:
        """Whether it has come to its end."""
        if not self._over.is_set() and self._event.query() and not self._group.failed(self):
            self._held = None
            self._record.end()
            self._end()
        return self._over.is_set()

    def _fail(self, error: Exception) -> None:
        if not self._over.is_set():
            self._record.end(str(error))
            self._end(error)

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Let the current stream wait for the end: True. The host goes on.

        Args:
            timeout: let the host wait, for so long. It waits without one too where
                ``TORCH_NCCL_BLOCKING_WAIT=1`` is in the environment.

        Raises:
            RuntimeError: the operation failed, or is not over in this time.
        """
        if timeout is not None:
            until = time.monotonic() + timeout.total_seconds()
            while not self._come() and time.monotonic() < until:
                time.sleep(1e-3)
            return super().wait(timedelta())
        if self._error is not None:
            raise self._error
        if os.environ.get("TORCH_NCCL_BLOCKING_WAIT") == "1":
            self._block()
        current_stream(self._stream.device).wait_event(self._event)
        self._held = None
        return True

    def _block(self) -> None:
        """Let the host wait."""
        self._event.synchronize()
        self._come()
        if self._error is not None:
            raise self._error

    def is_completed(self) -> bool:
        return self._come()

    def is_success(self) -> bool:
        return self._come() and self._error is None

    def _source_rank(self) -> int:
        """Whom it came from, among all processes."""
        return self._source

    def get_future(self) -> Future[list[Tensor]]:
        """A future with the result, which is there for the stream that waits for it."""
        return _StreamFuture(self, self._result)


class _StreamFuture(Future[Any]):
    """A value that is computed on a stream: waiting for it lets the current stream wait."""

    def __init__(self, work: NcclWork, result: Any, event: Event | None = None) -> None:
        super().__init__()
        self._work, self._event = work, event
        self.set_result(result)

    def wait(self) -> Any:
        if self._event is None:
            self._work.wait()
        else:
            current_stream(self._work._stream.device).wait_event(self._event)
        return self.value()

    def then(self, callback: Callable[[Future[Any]], Any]) -> Future[Any]:
        with stream(self._work._stream):
            result = callback(self)
            if isinstance(result, Future):
                result = result.wait()
            event = self._work._stream.record_event()
        return _StreamFuture(self._work, result, event)


class NcclGroup:
    """A group's communicators, and what is under way on them.

    Args:
        group: the group.
    """

    def __init__(self, group: ProcessGroup) -> None:
        self._group = group
        self._communicators: dict[tuple[int, ...], Communicator] = {}
        self._making = threading.Lock()
        self._watched: list[NcclWork] = []
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._ended = False

    def begin(
        self,
        name: str,
        body: Callable[[NcclChannel], None],
        result: list[Tensor],
        seconds: float,
        record: Any,
        sequence: int = 0,
        pair: Sequence[int] = (),
        source: int = -1,
    ) -> NcclWork:
        """Begin an operation.

        Args:
            name: of the operation.
            body: begins it on a channel.
            result: tensors of the device, which it writes.
            seconds: how long it may take.
            record: of the flight recorder.
            sequence: its number in the group.
            pair: the two processes that a message concerns, by their numbers in the group.
            source: whom a message comes from.

        Raises:
            DistBackendError: another process did not come in time, or is gone.
            RuntimeError: NCCL fails, or the group has tensors on another device.
            TypeError, ValueError: NCCL cannot combine such tensors; nothing has begun.
        """
        group = self._group
        record.start()
        group._check_whole(name)
        group._current = max(group._current, sequence)
        try:
            communicator = self._communicator(
                result[0].device.index or 0, tuple(sorted(pair)), seconds
            )
            channel = NcclChannel(communicator, is_deterministic())
            on(communicator, lambda: body(channel))
        except (TypeError, ValueError) as error:
            record.end(str(error))
            raise
        except Exception as error:
            failure = group._failure(name, sequence, error, seconds)
            record.end(str(failure))
            raise failure from error
        event = communicator.stream.record_event()
        held = (body, channel)
        work = NcclWork(
            self, name, sequence, seconds, event, communicator.stream, result, held, record, source
        )
        self._watch(work)
        return work

    def _communicator(self, index: int, pair: tuple[int, ...], seconds: float) -> Communicator:
        """That of all processes, or of two; made when it is first asked for, by all of them."""
        with self._making:
            found = self._communicators.get(pair)
            if found is None:
                found = self._communicators[pair] = self._made(index, pair, seconds)
        if found.index != index:
            raise RuntimeError(
                f"nccl: a process has one device in a group, cuda:{found.index}, but the tensor is "
                f"on cuda:{index}"
            )
        return found

    def _made(self, index: int, pair: tuple[int, ...], seconds: float) -> Communicator:
        group = self._group
        members = list(pair) or list(range(group.size()))
        store = PrefixStore("nccl/" + "-".join(map(str, pair)), group._store)
        store.set(f"here/{group.rank()}", "1")
        if why := group._watch():
            raise Lost(None, why)
        try:
            # NCCL would wait for ever.
            store.wait([f"here/{p}" for p in members], timedelta(seconds=seconds))
        except DistStoreError as error:
            raise Late([p for p in members if not store.check([f"here/{p}"])]) from error
        return Communicator(store, "id", index, len(members), members.index(group.rank()))

    # ---- what is under way ----

    def _watch(self, work: NcclWork) -> None:
        with self._changed:
            self._watched.append(work)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._look, name=f"taeda nccl {self._group.group_name}", daemon=True
                )
                self._thread.start()
            self._changed.notify_all()

    def _look(self) -> None:
        """Look at what is under way, now and then."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._ended or self._watched)
                if self._ended:
                    return
                works = list(self._watched)
            waiting = [work for work in works if not work._come()]
            for work in waiting[:1]:
                self._check(work)
            with self._changed:
                self._watched = [work for work in self._watched if not work._over.is_set()]
            time.sleep(PERIOD)

    def _check(self, work: NcclWork) -> None:
        """Give the group up if the oldest operation will not come to its end."""
        group = self._group
        age = time.monotonic() - work._begun
        error: Exception | None = None
        if age > work._seconds:
            error = Late([p for p in range(group.size()) if p != group.rank()])
        elif age > 0.5 and (why := group._watch()):
            error = Lost(None, why)
        if error is None or self.failed(work):
            return
        if work._sequence == 0 and isinstance(error, Late):
            group._break(f"{work._name}: not over after {work._seconds:g} s")
        else:
            group._failure(work._name, work._sequence, error, work._seconds)

    def failed(self, work: NcclWork) -> bool:
        """Whether the group has ended, perhaps now, as NCCL says that something has gone wrong."""
        if self._group._broken:
            return True
        for communicator in list(self._communicators.values()):
            if what := communicator.what_failed():
                error = RuntimeError(f"nccl: {what}")
                self._group._failure(work._name, work._sequence, error, work._seconds)
                return True
        return False

    def abort(self, why: str) -> None:
        """End what is under way: its waiting raises."""
        with self._changed:
            works, self._watched = self._watched, []
        for work in works:
            work._fail(DistBackendError(why))
        for communicator in self._communicators.values():
            communicator.end(abort=True)

    def shutdown(self) -> None:
        """Give the communicators back, when what is under way is over."""
        try:
            for communicator in self._communicators.values():
                communicator.stream.synchronize()
        finally:
            with self._changed:
                self._ended = True
                self._changed.notify_all()
            for communicator in self._communicators.values():
                communicator.end(abort=False)
            self._communicators.clear()
