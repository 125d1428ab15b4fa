"""Kill processes of a training at random moments: ``python -m benchmarks.distributed_kills 50``.

Trainings of three processes are started by the launcher, and one of their processes is killed every
few seconds, whatever it is doing. Each training must end with each sample learned from once, and
all of them with the same parameters.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

PROGRAM = Path(__file__).resolve().parents[1] / "tests" / "distributed" / "elastic_training.py"
KILLS_OF_ONE = 10


def children_of(pid: int) -> list[int]:
    """The processes that a process has started."""
    return [int(n) for n in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def training(folder: Path, kills: int, chance: random.Random) -> tuple[int, str]:
    """Run one, and kill its processes: how many were killed, and the parameters."""
    command = [
        sys.executable, "-m", "taeda.distributed.run", "--nproc-per-node", "3", "--max-restarts",
        "100", "--log-dir", str(folder / "logs"), "--redirects", "3", "-m", "taeda.torch",
        str(PROGRAM), str(folder), "0",
    ]  # fmt: skip
    launcher = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    killed = 0
    while launcher.poll() is None and killed < kills:
        time.sleep(chance.uniform(1.5, 4.0))
        found = children_of(launcher.pid) if launcher.poll() is None else []
        if found:
            os.kill(chance.choice(found), signal.SIGKILL)
            killed += 1
    _, said = launcher.communicate(timeout=120)  # a hang ends here
    assert launcher.returncode == 0, said
    result = json.loads((folder / "result.json").read_text())
    expected = Counter(epoch * 1000 + i for epoch in range(2) for i in range(240))
    assert Counter(result["seen"]) == expected, "a sample was lost, or learned from twice"
    return killed, result["weights"]


def main() -> None:
    """Kill as many as the command line says."""
    wanted, chance, done = int(sys.argv[1]), random.Random(3), 0
    parameters = set()
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        for number in range(10**6):
            if done >= wanted:
                break
            folder = Path(name) / str(number)
            folder.mkdir()
            killed, weights = training(folder, min(KILLS_OF_ONE, wanted - done), chance)
            done += killed
            parameters.add(weights)
            print(f"training {number}: {killed} killed, no sample lost", flush=True)
    assert len(parameters) == 1, "trainings ended with different parameters"
    print(f"{done} killed in {time.monotonic() - begun:.0f} s; all parameters are the same")


if __name__ == "__main__":
    main()
