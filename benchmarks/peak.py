"""The peak memory of one case, in a process of its own.

    python -m benchmarks.peak FRAMEWORK CASE

prints a JSON object: the largest resident set before the case (`imported`) and after five of its
steps (`peak`), in bytes, on one thread.
"""

from __future__ import annotations

import importlib
import json
import resource
import subprocess
import sys
from pathlib import Path

STEPS = 5


def peak_bytes() -> int:
    """The largest resident set of this process so far.

    Linux's getrusage would answer with the parent's where that was larger; /proc does not.
    """
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    return next(int(s.split()[1]) * 1024 for s in lines if s.startswith("VmHWM:"))


def measure(framework: str, case: str) -> dict:
    """What the process for this framework and case prints, or {"error": the reason}."""
    command = [sys.executable, "-m", "benchmarks.peak", framework, case]
    root = Path(__file__).resolve().parents[1]
    done = subprocess.run(command, capture_output=True, text=True, cwd=root)
    if done.returncode:
        return {"error": (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1]}
    return json.loads(done.stdout)


def main() -> None:
    from benchmarks.cases import CASES

    framework = importlib.import_module(sys.argv[1])
    framework.set_num_threads(1)
    framework.manual_seed(0)
    imported = peak_bytes()
    run = CASES[sys.argv[2]].prepare(framework)
    for _ in range(STEPS):
        run()
    print(json.dumps({"imported": imported, "peak": peak_bytes()}))


if __name__ == "__main__":
    main()
