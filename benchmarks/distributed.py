"""Measure groups of processes on this machine, beside PyTorch's and plain MPI.

    python -m benchmarks.distributed                 # tables on the terminal
    python -m benchmarks.distributed --write         # and docs/distributed-measured.md
    python -m benchmarks.distributed --rounds 3 --ranks 2

In every round each kind measures each case, taking turns. A case's figure is the median over the
rounds. Plain MPI needs mpi4py and mpich (the extra ``mpi``).
"""

from __future__ import annotations

import argparse
import datetime
import importlib.util
import json
import os
import platform
import socket
import statistics
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from benchmarks.distributed_model import simulated

PAGE = Path(__file__).resolve().parents[1] / "docs" / "distributed-measured.md"
WORKER = Path(__file__).with_name("distributed_worker.py")
SIZES = (4, 4096, 1 << 18, 1 << 22, 1 << 26)
KINDS = ("taeda", "taeda, sockets alone", "torch gloo", "plain MPI")


def launched(kind: str, ranks: int, task: str, **options: Any) -> dict[str, Any]:
    """Run a task in some processes: what the first one measured."""
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        port = made.getsockname()[1]
    words = [sys.executable, "-W", "ignore", str(WORKER), kind.split()[0].strip(","), task]
    words.append(json.dumps(options))
    common = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    if kind == "taeda, sockets alone":
        common["TAEDA_SHARED_MEMORY"] = "0"
    if kind == "plain MPI":
        mpiexec = str(Path(sysconfig.get_path("scripts")) / "mpiexec")
        done = subprocess.run(
            [mpiexec, "-n", str(ranks), *words], env=common, capture_output=True, text=True,
            timeout=600,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)
    started = [
        subprocess.Popen(
            words, stdout=subprocess.PIPE, text=True,
            env={**common, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(ranks),
                 "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)},
        )
        for rank in range(ranks)
    ]  # fmt: skip
    outputs = [process.communicate(timeout=600)[0] for process in started]
    assert all(process.returncode == 0 for process in started), (kind, task)
    return json.loads(outputs[0])


def medians(rows: list[dict[str, Any]]) -> dict[str, float]:
    """The median of each figure over rounds."""
    return {key: statistics.median(row[key] for row in rows) for key in rows[0]}


def available() -> list[str]:
    """The kinds whose packages are installed."""
    needs = {"torch gloo": "torch", "plain MPI": "mpi4py"}
    kinds = []
    for kind in KINDS:
        if kind in needs and importlib.util.find_spec(needs[kind]) is None:
            print(f"{kind} is left out: there is no {needs[kind]}")
        else:
            kinds.append(kind)
    return kinds


def table(head: list[str], rows: list[list[str]]) -> list[str]:
    """Lines of a table whose columns but the first are figures."""
    lines = ["| " + " | ".join(head) + " |", "|---|" + "--:|" * (len(head) - 1)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def size_of(count: int) -> str:
    """Bytes as a short text."""
    for unit, size in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= size:
            return f"{count // size} {unit}"
    return f"{count} B"


def all_reduce(ranks: int, rounds: int) -> tuple[list[str], dict[str, dict[str, float]]]:
    """Times of all_reduce by size."""
    kinds = available()
    found: dict[str, list[dict[str, Any]]] = {kind: [] for kind in kinds}
    for _ in range(rounds):
        for kind in kinds:
            found[kind].append(launched(kind, ranks, "all_reduce", sizes=SIZES))
    figures = {kind: medians(rows) for kind, rows in found.items()}
    rows = []
    for size in SIZES:
        row = [size_of(size)]
        for kind in kinds:
            seconds = figures[kind][str(size)]
            row.append(f"{seconds * 1e6:,.0f} µs, {size / seconds / 1e9:.2f} GB/s")
        rows.append(row)
    return table([f"{ranks} processes", *kinds], rows), figures


def ddp(ranks: int, rounds: int) -> list[str]:
    """Times of a training step, and how much of communication backward hides."""
    kinds = [kind for kind in available() if kind in ("taeda", "torch gloo")]
    found: dict[str, list[dict[str, Any]]] = {kind: [] for kind in kinds}
    for _ in range(rounds):
        for kind in kinds:
            found[kind].append(launched(kind, ranks, "ddp"))
    rows = []
    for kind in kinds:
        got = medians(found[kind])
        hidden = f"{100 * got['hidden']:.0f} %" if "hidden" in got else ""
        rows.append([kind, f"{got['ddp'] * 1e3:.1f} ms", f"{got['alone'] * 1e3:.1f} ms", hidden])
    head = [f"{ranks} processes", "a step with DDP", "without", "communication during backward"]
    return table(head, rows)


def memory(ranks: list[int]) -> list[str]:
    """Peak memory under ZeRO-3 beside the formula."""
    rows = []
    for count in ranks:
        got = launched("taeda", count, "memory")
        rows.append(
            [str(count), f"{got['peak']:.0f} MB", f"{got['formula']:.0f} MB",
             f"{got['peak'] / got['formula']:.2f}"]
        )  # fmt: skip
    return table(["processes", "peak of a process", "formula", "ratio"], rows)


def main() -> None:
    """Measure and print; write the page if asked to."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--note", default="", help="a sentence about the machine for the page")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    given = parser.parse_args()
    sections: list[tuple[str, list[str]]] = []
    fitted: dict[str, dict[str, float]] = {}
    for ranks in given.ranks:
        lines, figures = all_reduce(ranks, given.rounds)
        sections.append((f"all_reduce among {ranks} processes", lines))
        fitted[str(ranks)] = figures["taeda, sockets alone"]
        sections.append((f"DistributedDataParallel among {ranks}", ddp(ranks, given.rounds)))
    sections.append(("Memory under ZeRO-3", memory([1, *given.ranks])))
    sections.append(("To 10,000 processes", simulated(fitted, table)))
    text = page(sections, given.rounds, given.note)
    print(text)
    if given.write:
        PAGE.write_text(text)


def page(sections: list[tuple[str, list[str]]], rounds: int, note: str) -> str:
    """The page of what was measured."""
    cpu = next(
        (line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line),
        platform.machine(),
    )  # fmt: skip
    lines = [
        "# Distributed training, measured",
        "",
        "Written by `python -m benchmarks.distributed --write`; "
        "[distributed.md](distributed.md) is the guide.",
        "",
        f"{datetime.date.today()}, {len(os.sched_getaffinity(0))} cores of {cpu}, all processes "
        f"on this machine, one thread each, medians of {rounds} rounds. Where there are more "
        "processes than cores, they wait for cores." + (f" {note}" if note else ""),
    ]
    for title, body in sections:
        lines += ["", f"## {title}", "", *EXPLAINED.get(title.split(" among")[0], []), *body]
    return "\n".join(lines) + "\n"


EXPLAINED = {
    "all_reduce": ["Float32 sums; bytes of a process's tensor over the time of a call.", ""],
    "DistributedDataParallel": [
        "Six linear layers of 1024 x 1024 (6.3 million parameters), 64 examples in each process, "
        "SGD. The last column is the part of the time of all_reduce calls that passes while "
        "backward computes, by the flight recorder.",
        "",
    ],
    "Memory under ZeRO-3": [
        "16 linear layers of 1024 x 1024 (16.8 million parameters), each divided by `fully_shard`, "
        "Adam. Peak resident memory over that before the model. The formula for P bytes of "
        "parameters, of which u are the largest unit's, and N processes: 4 P / N (parts of "
        "parameters, gradients and two moments) + 5 u (a unit gathered and received, its gradients, "
        "these as they are sent and as they are shared) + activations.",
        "",
    ],
}


if __name__ == "__main__":
    main()
