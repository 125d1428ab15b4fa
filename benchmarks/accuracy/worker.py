"""One framework in a process of its own: reads names of rows, answers each with what it computes.

Started by the driver as `python -m benchmarks.accuracy.worker FRAMEWORK`. Every line read is a key
of CASES; every line written is a JSON object with `path`, a file of arrays, or with `error`.
"""

from __future__ import annotations

import importlib
import json
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np

from benchmarks.accuracy import table
from benchmarks.accuracy.cases import CASES


def main() -> None:
    warnings.simplefilter("ignore")
    framework = importlib.import_module(sys.argv[1])
    framework.set_num_threads(1)
    capability = framework.backends.cpu.get_cpu_capability()
    print(json.dumps({"version": framework.__version__, "capability": capability}), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "found.npz"
        for line in sys.stdin:
            case = CASES[line.strip()]
            try:
                np.savez(path, *table.outputs(framework, case, case.made()))
                answer = {"path": str(path)}
            except Exception as error:  # one row that fails must not end the run
                answer = {"error": f"{type(error).__name__}: {error}"}
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
