"""The processes that an agent starts on its machine, and what they print."""

from __future__ import annotations

import contextlib
import ctypes
import json
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

__all__ = ["Failure", "Workers"]

_PR_SET_PDEATHSIG = 1


def _die_with_parent() -> None:
    # Where there is no prctl, processes outlive an agent that is killed.
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


@dataclass
class Failure:
    """A process that has ended with an error: who and why.

    Attributes:
        rank: its number among all.
        local_rank: on its machine.
        pid: its process id.
        exit_code: negative for a signal.
        message: what the program has said, by `elastic.multiprocessing.errors.record`.
        when: in seconds since 1970.
    """

    rank: int
    local_rank: int
    pid: int
    exit_code: int
    message: str
    when: float

    def __str__(self) -> str:
        if self.exit_code < 0:
            with contextlib.suppress(ValueError):
                why = f"was killed by {signal.Signals(-self.exit_code).name}"
                return f"rank {self.rank} (local rank {self.local_rank}, pid {self.pid}) {why}"
        why = f"ended with exit code {self.exit_code}"
        said = f": {self.message}" if self.message else ""
        return f"rank {self.rank} (local rank {self.local_rank}, pid {self.pid}) {why}{said}"


class Workers:
    """Processes of one attempt.

    Args:
        command: what to run in each.
        environments: the variables of each, by its local rank.
        folder: for what they print and for their errors.
        redirects: per local rank, 1 to write stdout to a file, 2 stderr, 3 both.
        tee: likewise, to write and also to show.
        shown: the local ranks whose output is shown; None for all.
        role: what output is marked by.
    """

    def __init__(
        self,
        command: list[str],
        environments: list[dict[str, str]],
        folder: Path,
        redirects: list[int],
        tee: list[int],
        shown: set[int] | None,
        role: str,
    ) -> None:
        self._folder, self._shown, self._role = folder, shown, role
        self._threads: list[threading.Thread] = []
        self._files: list[IO[bytes]] = []
        self.processes = [
            self._start(command, environment, local, redirects[local], tee[local])
            for local, environment in enumerate(environments)
        ]
        self._ranks = [int(environment["RANK"]) for environment in environments]

    def _start(
        self, command: list[str], environment: dict[str, str], local: int, files: int, tee: int
    ) -> subprocess.Popen[bytes]:
        place = self._folder / str(local)
        place.mkdir(parents=True, exist_ok=True)
        environment["TORCHELASTIC_ERROR_FILE"] = str(place / "error.json")
        outputs: list[Any] = []
        for bit, name in ((1, "stdout"), (2, "stderr")):
            hidden = self._shown is not None and local not in self._shown
            if tee & bit and not hidden:
                outputs.append(subprocess.PIPE)
            elif (files | tee) & bit or hidden:
                self._files.append(open(place / f"{name}.log", "wb"))  # noqa: SIM115
                outputs.append(self._files[-1])
            else:
                outputs.append(None)
        process = subprocess.Popen(
            command, env=environment, stdout=outputs[0], stderr=outputs[1],
            preexec_fn=_die_with_parent,
        )  # fmt: skip
        for pipe, name, shown in (
            (process.stdout, "stdout", sys.stdout),
            (process.stderr, "stderr", sys.stderr),
        ):
            if pipe is not None:
                thread = threading.Thread(
                    target=self._copy, args=(pipe, place / f"{name}.log", shown, local), daemon=True
                )
                thread.start()
                self._threads.append(thread)
        return process

    def _copy(self, pipe: IO[bytes], path: Path, shown: Any, local: int) -> None:
        with open(path, "wb") as file:
            for line in pipe:
                file.write(line)
                file.flush()
                shown.write(f"[{self._role}{local}]:{line.decode(errors='replace')}")
                shown.flush()

    def running(self) -> bool:
        """Whether any is still running."""
        return any(process.poll() is None for process in self.processes)

    def failure(self) -> Failure | None:
        """The first that has ended with an error.

        One that was killed comes before those that failed because it was gone.
        """
        found = []
        for local, process in enumerate(self.processes):
            code = process.poll()
            if code in (None, 0):
                continue
            message, when = self._said(local)
            made = Failure(self._ranks[local], local, process.pid, int(code or 0), message, when)
            found.append(made)
        return min(found, key=lambda f: (f.exit_code > 0, f.when), default=None)

    def _said(self, local: int) -> tuple[str, float]:
        with contextlib.suppress(OSError, ValueError, KeyError):
            said = json.loads((self._folder / str(local) / "error.json").read_text())["message"]
            return str(said["message"]), float(said["extraInfo"]["timestamp"])
        return "", time.time()

    def stop(self, seconds: float = 5.0) -> None:
        """End all: politely at first, and by force after some seconds."""
        for process in self.processes:
            if process.poll() is None:
                process.terminate()
        until = time.monotonic() + seconds
        for process in self.processes:
            try:
                process.wait(max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.close()

    def close(self) -> None:
        """Write what is left of the output."""
        for thread in self._threads:
            thread.join(2)
        for file in self._files:
            file.close()
        self._threads, self._files = [], []
