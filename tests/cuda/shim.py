"""CUDA's library compiled for the host, on a stub of the driver: no GPU, no toolkit.

python -m tests.cuda.shim FOLDER            # builds libtaeda_cuda.so and libcuda.so.1 there
export LD_LIBRARY_PATH=FOLDER TAEDA_CUDA_LIBRARY=FOLDER/libtaeda_cuda.so
python -c "import taeda; print(taeda.cuda.get_device_name())"
GUARD_DEVICE=cuda GUARD_TABLES=few python -m tests.guard.run "$TAEDA_CUDA_LIBRARY" ops
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def build(folder: Path) -> None:
    """Compile both libraries into a folder."""
    if not shutil.which("cmake") or not shutil.which("ninja"):
        pytest.skip("cmake and ninja are needed to compile the library")
    for arguments in (
        ["-S", Path(__file__).parent, "-B", folder, "-G", "Ninja"],
        ["--build", folder],
    ):
        done = subprocess.run(
            ["cmake", *map(str, arguments)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]


def environment(folder: Path, **more: str) -> dict[str, str]:
    """The environment of a process that finds the libraries."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    library = str(folder / "libtaeda_cuda.so")
    return {**kept, "LD_LIBRARY_PATH": str(folder), "TAEDA_CUDA_LIBRARY": library, **more}


def run(folder: Path, *args: object, **more: str) -> subprocess.CompletedProcess[str]:
    """Run Python with the libraries; `more` is put into the environment."""
    command = [sys.executable, *map(str, args)]
    env = environment(folder, **more)
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)


if __name__ == "__main__":
    build(Path(sys.argv[1]).resolve())
