from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from tests.cuda import shim


@pytest.fixture(scope="session")
def libraries(tmp_path_factory) -> Path:
    """The folder of both libraries, compiled once for all workers of pytest-xdist.

    `TAEDA_CUDA_SHIM` in the environment is a folder where they have been compiled before.
    """
    if "TAEDA_CUDA_SHIM" in os.environ:
        return Path(os.environ["TAEDA_CUDA_SHIM"])
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "cuda_shim"
    with open(folder.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "libtaeda_cuda.so").exists():
            shim.build(folder)
    return folder
