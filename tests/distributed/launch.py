"""Programs in several processes, as a launcher starts them."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time


def free_port() -> int:
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return made.getsockname()[1]


def environment(**variables: object) -> dict[str, str]:
    """This process's variables without those of a launcher, and with others."""
    kept = {
        k: v
        for k, v in os.environ.items()
        if k not in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")
        and not k.startswith(("TORCHELASTIC", "TAEDA_AGENT", "PMI", "OMPI", "SLURM"))
    }
    return {**kept, "OMP_NUM_THREADS": "1", **{k: str(v) for k, v in variables.items()}}


def start(path, ranks, library="taeda", arguments=(), **variables) -> list[subprocess.Popen]:
    """Start a program that imports torch, or taeda in its place, in some processes."""
    port = free_port()
    how = ["-m", "taeda.torch"] if library == "taeda" else []
    return [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", *how, str(path), *map(str, arguments)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=environment(RANK=rank, LOCAL_RANK=rank, WORLD_SIZE=ranks, LOCAL_WORLD_SIZE=ranks,
                            MASTER_ADDR="127.0.0.1", MASTER_PORT=port, **variables),
        )
        for rank in range(ranks)
    ]  # fmt: skip


def run(program, ranks, folder, library="taeda", seconds=60, **variables) -> list[str]:
    """Run a program's text in some processes: what each has printed."""
    path = folder / f"program_{library}_{time.monotonic_ns()}.py"
    path.write_text(program)
    processes = start(path, ranks, library, **variables)
    try:
        outputs = [process.communicate(timeout=seconds) for process in processes]
    finally:
        for process in processes:
            process.kill()
    for process, (_, errors) in zip(processes, outputs, strict=True):
        assert process.returncode == 0, errors
    return [printed for printed, _ in outputs]
