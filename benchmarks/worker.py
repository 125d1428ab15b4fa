"""One framework in a process of its own: reads case names, answers each with its fastest time.

Started by the driver as `python -m benchmarks.worker FRAMEWORK THREADS`. Every line read is the
name of a case; every line written is a JSON object with `seconds`, or with `error`. A case's data
are made anew each time, so that the processes together stay within the memory of a small machine.
"""

from __future__ import annotations

import gc
import importlib
import json
import sys
import time
from collections.abc import Callable

from benchmarks.cases import CASES

REPEATS = 7
SECONDS_PER_REPEAT = 0.02


def loop_time(run: Callable[[], object], count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        run()
    return time.perf_counter() - start


def nothing() -> None:
    """Costs what the loop itself takes for any call."""


def fastest(run: Callable[[], object]) -> float:
    """Seconds per call: the least of several loops, each long enough for the clock.

    What the same loop takes to call an empty function is taken off: 45 ns or so are not the
    framework's.
    """
    count, elapsed = 1, loop_time(run, 1)
    while elapsed < SECONDS_PER_REPEAT / 2:
        count = max(2 * count, int(count * SECONDS_PER_REPEAT / max(elapsed, 1e-7) / 2))
        elapsed = loop_time(run, count)
    gc.collect()
    gc.disable()
    try:
        whole = min(loop_time(run, count) for _ in range(REPEATS))
        own = min(loop_time(nothing, count) for _ in range(REPEATS))
        return (whole - own) / count
    finally:
        gc.enable()


def main() -> None:
    framework = importlib.import_module(sys.argv[1])
    framework.set_num_threads(int(sys.argv[2]))
    capability = framework.backends.cpu.get_cpu_capability()
    print(json.dumps({"version": framework.__version__, "capability": capability}), flush=True)
    for line in sys.stdin:
        try:
            framework.manual_seed(0)
            answer = {"seconds": fastest(CASES[line.strip()].prepare(framework))}
        except Exception as error:  # one case that fails must not end the run
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
