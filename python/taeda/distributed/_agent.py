"""What starts processes on a machine, watches them, and agrees with other machines on restarts."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from ._errors import DistStoreError
from ._stores import PrefixStore, Store
from ._workers import Failure, Workers

__all__ = ["Agent", "JobFailed", "Settings"]

_BEAT = 0.5  # seconds between signs of life of an agent
_SILENCE = 5.0  # without one it counts as gone


class JobFailed(RuntimeError):
    """The job has failed and is not started anew; the message says who and why."""


@dataclass
class Settings:
    """What the launcher was told.

    Attributes:
        command: what to run in each process.
        least_nodes: machines that the job needs.
        most_nodes: machines that it can use.
        least_processes: processes that this machine must run.
        processes: processes that it runs at first; one less after each failure, but for the above.
        node_rank: the number of this machine, if it has one.
        master: the machine of the store.
        port: of the store.
        max_restarts: how often to start anew.
        interval: seconds between looks at processes.
        meeting: seconds to wait for machines.
        last_call: seconds to wait for more machines than are needed.
        run_id: the name of the job.
        role: the name of its processes.
        folder: for logs; a temporary one by default.
        redirects: per local rank, what goes to files.
        tee: per local rank, what goes to files and is shown.
        shown: the local ranks whose output is shown; None for all.
    """

    command: list[str]
    least_nodes: int = 1
    most_nodes: int = 1
    least_processes: int = 1
    processes: int = 1
    node_rank: int | None = None
    master: str = "127.0.0.1"
    port: int = 29500
    max_restarts: int = 0
    interval: float = 0.1
    meeting: float = 300.0
    last_call: float = 3.0
    run_id: str = "none"
    role: str = "default"
    folder: Path | None = None
    redirects: list[int] = field(default_factory=list)
    tee: list[int] = field(default_factory=list)
    shown: set[int] | None = None


@dataclass
class _Round:
    """An attempt: which machine this is, and how many processes run on which."""

    place: int
    processes: list[int]


class Agent:
    """Runs the processes of one machine until the job is done.

    Args:
        settings: what to run.
        store: which all agents reach; it is that of the processes too.
    """

    def __init__(self, settings: Settings, store: Store) -> None:
        self._settings = settings
        self._store = PrefixStore(f"agents/{settings.run_id}", store)
        self._processes = settings.processes
        self._folder = settings.folder or Path(tempfile.mkdtemp(prefix="taeda_run_"))
        self._beaten = 0.0
        self._heard: dict[int, tuple[bytes, float]] = {}
        self.workers: Workers | None = None

    def run(self) -> None:
        """Run until all processes have ended well.

        Raises:
            JobFailed: one has not, and there are no restarts left.
        """
        attempt = 0
        while True:
            met = self._meet(attempt)
            failed = self._attempt(attempt, met)
            if failed is None:
                return
            left = self._settings.max_restarts - attempt
            _say(f"attempt {attempt}: {failed}; " + (
                f"starting anew ({left} left)" if left > 0 else "no restarts are left"
            ))  # fmt: skip
            if left <= 0:
                raise JobFailed(failed)
            attempt += 1

    # ---- agreeing with other machines ----

    def _meet(self, attempt: int) -> _Round:
        """Wait for the other machines, and learn which of them this is."""
        store, settings = PrefixStore(f"round{attempt}", self._store), self._settings
        place = store.add("joined", 1) - 1
        if settings.node_rank is not None and attempt == 0:
            place = settings.node_rank
        store.set(f"at/{place}", json.dumps(self._processes))
        if store.add("there", 1) >= settings.most_nodes:
            store.compare_set("closed", "", str(settings.most_nodes))
        until = time.monotonic() + settings.meeting
        enough = 0.0
        while not store.check(["closed"]):
            there, now = store.add("there", 0), time.monotonic()
            if there >= settings.least_nodes:
                enough = enough or now
                if now > enough + settings.last_call:
                    store.compare_set("closed", "", str(there))
            if now > until:
                raise JobFailed(
                    f"{there} of {settings.least_nodes} machines have come within "
                    f"{settings.meeting:g} s"
                )
            time.sleep(0.05)
        count = int(store.get("closed"))
        if place >= count:
            raise JobFailed(
                f"the job has begun with {count} machines before this one came; start it again"
            )
        found = [json.loads(store.get(f"at/{i}")) for i in range(count)]
        self._heard = {}
        return _Round(place, found)

    def _attempt(self, attempt: int, met: _Round) -> str | None:
        """Run all processes once: None if they have ended well, else who failed, and why."""
        store = PrefixStore(f"round{attempt}", self._store)
        folder = self._folder / self._settings.run_id / f"attempt_{attempt}"
        self.workers = Workers(
            self._settings.command, self._environments(attempt, met), folder,
            _each(self._settings.redirects, self._processes),
            _each(self._settings.tee, self._processes), self._settings.shown, self._settings.role,
        )  # fmt: skip
        failed = self._watch(store, met)
        if failed is None:
            self.workers.close()
            return None
        self.workers.stop()
        return failed

    def _environments(self, attempt: int, met: _Round) -> list[dict[str, str]]:
        first, total = sum(met.processes[: met.place]), sum(met.processes)
        mine = met.processes[met.place]
        settings = self._settings
        common = {
            **os.environ,
            "LOCAL_WORLD_SIZE": str(mine),
            "WORLD_SIZE": str(total),
            "GROUP_RANK": str(met.place),
            "GROUP_WORLD_SIZE": str(len(met.processes)),
            "ROLE_NAME": settings.role,
            "ROLE_WORLD_SIZE": str(total),
            "MASTER_ADDR": settings.master,
            "MASTER_PORT": str(settings.port),
            "TORCHELASTIC_RESTART_COUNT": str(attempt),
            "TORCHELASTIC_MAX_RESTARTS": str(settings.max_restarts),
            "TORCHELASTIC_RUN_ID": settings.run_id,
            "TORCHELASTIC_USE_AGENT_STORE": "True",
            "TAEDA_AGENT_STORE": "1",
        }
        if mine > 1:
            common.setdefault("OMP_NUM_THREADS", "1")
        return [
            {
                **common,
                "RANK": str(first + i),
                "LOCAL_RANK": str(i),
                "ROLE_RANK": str(first + i),
            }
            for i in range(mine)
        ]

    def _watch(self, store: Store, met: _Round) -> str | None:
        assert self.workers is not None
        done = False
        while True:
            time.sleep(self._settings.interval)
            failure = self.workers.failure()
            if failure is not None:
                # Those that fail because it has gone should not be taken for the first.
                time.sleep(self._settings.interval)
                failure = self.workers.failure() or failure
                if self._processes > self._settings.least_processes:
                    self._processes -= 1
                return _first(store, failure, met)
            if len(met.processes) > 1:
                gone = self._other_machines(store, met)
                if gone is not None:
                    return gone
            if not done and not self.workers.running():
                done = True
                store.add("done", 1)
            if done and store.add("done", 0) >= len(met.processes):
                return None

    def _other_machines(self, store: Store, met: _Round) -> str | None:
        """Show a sign of life and look for those of others: who has failed or is silent."""
        now = time.monotonic()
        if now < self._beaten + _BEAT:
            return None
        self._beaten = now
        try:
            store.add(f"beat/{met.place}", 1)
            if store.check(["failed"]):
                return store.get("failed").decode()
            for other in range(len(met.processes)):
                beat = str(store.add(f"beat/{other}", 0)).encode()
                if other == met.place or self._heard.get(other, (b"", 0.0))[0] != beat:
                    self._heard[other] = beat, now
                elif now > self._heard[other][1] + _SILENCE:
                    why = f"the machine {other} has been silent for {_SILENCE:g} s"
                    return store.compare_set("failed", "", why).decode()
        except DistStoreError:
            raise
        except RuntimeError as error:
            raise JobFailed(f"the machine that keeps the store is gone: {error}") from error
        return None

    def stop(self) -> None:
        """End the processes."""
        if self.workers is not None:
            self.workers.stop()

    def linger(self) -> None:
        """Keep the store a moment longer, for agents that still look at it."""
        if self._settings.most_nodes > 1:
            time.sleep(2 * _BEAT)


def _first(store: Store, failure: Failure, met: _Round) -> str:
    """Who failed first, on any machine."""
    if len(met.processes) == 1:
        return str(failure)
    with contextlib.suppress(RuntimeError):
        return store.compare_set("failed", "", str(failure)).decode()
    return str(failure)


def _each(values: list[int], count: int) -> list[int]:
    """One value for each process: a single one is for all."""
    return values * count if len(values) == 1 else (values + [0] * count)[:count]


def _say(text: str) -> None:
    print(f"taeda.distributed.run: {text}", file=sys.stderr, flush=True)
