"""What this process has done with others of late: the last collectives and messages of all groups.

When an operation fails, the record is written to the folder that the environment variable
``TAEDA_FLIGHT_RECORDER`` names, as ``rank0.json``, ``rank1.json`` and so on: the last entries of
all ranks side by side show who was where. `chrome_trace` shows the same over time.

>>> import taeda.distributed as dist
>>> from taeda.distributed import flight_recorder
>>> dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
>>> dist.all_reduce(taeda.ones(3))
>>> flight_recorder.records()[-1]["name"], flight_recorder.records()[-1]["sizes"]
('all_reduce', [[3]])
>>> dist.destroy_process_group()
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["chrome_trace", "dump", "records", "span"]

LENGTH = 2000


@dataclass
class _Record:
    group: str
    sequence: int
    name: str
    sizes: list[list[int]]
    dtype: str
    state: str = "begun"  # begun, running, done, failed
    begun: float = field(default_factory=time.time)
    started: float = 0.0
    ended: float = 0.0
    error: str = ""
    thread: int = 0

    def start(self) -> None:
        self.state, self.started, self.thread = "running", time.time(), threading.get_ident()

    def end(self, error: str = "") -> None:
        self.state, self.ended, self.error = "failed" if error else "done", time.time(), error


_records: deque[_Record] = deque(maxlen=LENGTH)


def _add(group: str, sequence: int, name: str, sizes: list[list[int]], dtype: str) -> _Record:
    made = _Record(group, sequence, name, sizes, dtype)
    _records.append(made)
    return made


def records() -> list[dict[str, Any]]:
    """The last operations, the oldest first.

    Each is a dict of ``group``, ``sequence`` (its number in the group), ``name``, ``sizes``,
    ``dtype``, ``state`` (``"begun"``, ``"running"``, ``"done"`` or ``"failed"``), the times
    ``begun``, ``started`` and ``ended`` in seconds since 1970, ``error`` and ``thread``.
    """
    return [asdict(each) for each in list(_records)]


@contextlib.contextmanager
def span(name: str) -> Iterator[None]:
    """Record how long a block of the program takes, beside the operations.

    Args:
        name: what the block does, such as ``"backward"``.
    """
    made = _add("", 0, name, [], "")
    made.start()
    try:
        yield
    finally:
        made.end()


def dump(path: str | os.PathLike[str]) -> None:
    """Write the records as JSON.

    Args:
        path: the file.
    """
    Path(path).write_text(json.dumps(records(), indent=1))


def chrome_trace(path: str | os.PathLike[str], rank: int = 0) -> None:
    """Write the records as a trace that ``chrome://tracing`` and Perfetto show.

    Args:
        path: the file.
        rank: the number of the process in the trace.
    """
    events = [
        {
            "name": each.name,
            "ph": "X",
            "pid": rank,
            "tid": each.thread,
            "ts": each.started * 1e6,
            "dur": (each.ended - each.started) * 1e6,
            "args": {"group": each.group, "sequence": each.sequence, "sizes": each.sizes},
        }
        for each in list(_records)
        if each.state == "done"
    ]
    Path(path).write_text(json.dumps({"traceEvents": events}))


def _dump_failure(rank: int) -> None:
    folder = os.environ.get("TAEDA_FLIGHT_RECORDER")
    if folder:
        with contextlib.suppress(OSError):
            Path(folder).mkdir(parents=True, exist_ok=True)
            dump(Path(folder) / f"rank{rank}.json")
