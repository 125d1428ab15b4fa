"""What a framework costs before it does anything: the time of its import and its size on disk."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import subprocess
import sys
from pathlib import Path

TIMED_IMPORT = """
import time
start = time.perf_counter()
import {name}
print(time.perf_counter() - start)
"""


def import_seconds(name: str) -> float:
    """Seconds that `import name` takes in a fresh process."""
    command = [sys.executable, "-c", TIMED_IMPORT.format(name=name)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def installed_bytes(name: str) -> int:
    """The size of the installed package; of its folder, where it runs from a source tree."""
    try:
        files = importlib.metadata.distribution(name).files or []
        sizes = [Path(f.locate()).stat().st_size for f in files if Path(f.locate()).is_file()]
    except importlib.metadata.PackageNotFoundError:
        sizes = []
    folder = Path(importlib.util.find_spec(name).origin).parent
    in_folder = [f.stat().st_size for f in folder.rglob("*") if f.is_file()]
    return max(sum(sizes), sum(in_folder))
