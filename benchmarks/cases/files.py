"""Reading files."""

from __future__ import annotations

import atexit
import functools
import os
import tempfile

from benchmarks.cases.table import case


@case("files", "loading a checkpoint of 64 MB, 16 tensors")
def load_checkpoint(fw):
    path = _checkpoint(fw)
    return lambda: fw.load(path)


@case("files", "mapping a checkpoint of 64 MB, 16 tensors")
def map_checkpoint(fw):
    path = _checkpoint(fw)
    return lambda: fw.load(path, mmap=True)


@functools.cache
def _checkpoint(fw) -> str:
    """One file for the process, in a folder that goes when the process ends."""
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    path = os.path.join(folder.name, "model.pt")
    fw.save({f"layers.{i}.weight": fw.randn(1024, 1024) for i in range(16)}, path)
    return path
