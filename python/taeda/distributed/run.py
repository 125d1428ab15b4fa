"""Start a program in several processes: ``python -m taeda.distributed.run script.py arguments``.

The options are torchrun's, and so are the variables that processes find in their environment:
RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR and the rest. When a process ends with an error, all are
stopped, and started anew up to ``--max-restarts`` times. Between machines the same command runs on
each, with the same ``--rdzv-endpoint`` (or ``--master-addr``, ``--master-port`` and
``--node-rank``).

A script that imports PyTorch runs on taeda with ``-m taeda.torch script.py``.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import sys
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from ._agent import Agent, JobFailed, Settings
from ._errors import DistNetworkError
from ._tcp_store import TCPStore

__all__ = ["main"]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m taeda.distributed.run",
        description="Start a program in several processes that train together.",
    )
    add = parser.add_argument

    def option(name: str, **kwargs: object) -> None:
        add(f"--{name}", f"--{name.replace('-', '_')}", **kwargs)  # type: ignore[arg-type]

    option("nnodes", default="1", help="machines, or MIN:MAX of them")
    option(
        "nproc-per-node",
        default="1",
        help="processes on this machine; 'cpu' or 'auto': cores; MIN:MAX: MAX, and one less after "
        "each failure",
    )
    option("rdzv-backend", default="static", choices=["static", "c10d"], help="how machines meet")
    option("rdzv-endpoint", default="", help="HOST:PORT of the machine where they meet")
    option("rdzv-id", default="none", help="the name of the job, the same on all machines")
    option("rdzv-conf", default="", help="timeout=SECONDS of meeting")
    option("standalone", action="store_true", help="one machine, and any free port")
    option("max-restarts", type=int, default=0, help="how often to start anew after a failure")
    option("monitor-interval", type=float, default=0.1, help="seconds between looks at processes")
    option("role", default="default", help="the name of these processes in messages")
    option("module", action="store_true", help="run a module, as python -m does")
    option("no-python", action="store_true", help="run a program that is not Python's")
    option("log-dir", default=None, help="a folder for what processes print")
    option("redirects", default="0", help="what goes to files: 0 none, 1 stdout, 2 stderr, 3 both")
    option("tee", default="0", help="what goes to files and is shown as well, likewise")
    option("local-ranks-filter", default="", help="the local ranks whose output is shown, as 0,1")
    option("node-rank", type=int, default=None, help="the number of this machine")
    option("master-addr", default="127.0.0.1", help="the machine of rank 0")
    option("master-port", type=int, default=29500, help="its port")
    add("-m", dest="module", action="store_true", help=argparse.SUPPRESS)
    add("program", help="the script or module")
    add("arguments", nargs=argparse.REMAINDER, help="its arguments")
    return parser


def _range(text: str) -> tuple[int, int]:
    """``MIN:MAX``, or one number for both."""
    if text in ("cpu", "auto"):
        cores = len(os.sched_getaffinity(0))
        return cores, cores
    least, _, most = text.partition(":")
    try:
        found = int(least), int(most or least)
    except ValueError:
        raise SystemExit(f"taeda.distributed.run: expected N or MIN:MAX, got {text!r}") from None
    if not 1 <= found[0] <= found[1]:
        raise SystemExit(f"taeda.distributed.run: expected 1 <= MIN <= MAX, got {text!r}")
    return found


def _outputs(text: str) -> list[int]:
    """What goes where, per local rank: one number for all, or ``0:3,1:1``."""
    if ":" not in text:
        return [int(text)]
    pairs: dict[int, int] = {}
    for part in text.split(","):
        local, _, what = part.partition(":")
        pairs[int(local)] = int(what)
    return [pairs.get(local, 0) for local in range(max(pairs) + 1)]


def _store(host: str, port: int, here: bool, alone: bool, timeout: float) -> TCPStore:
    """The store of all agents; the first on the machine where they meet keeps it."""
    wait = timedelta(seconds=timeout)
    if here or alone:
        try:
            return TCPStore(host, port, is_master=True, timeout=wait)
        except DistNetworkError as error:
            if alone:
                raise SystemExit(f"taeda.distributed.run: {error}") from None
            # Another agent on this machine was first.
    return TCPStore(host, port, timeout=wait)


def _is_here(host: str) -> bool:
    names = {"localhost", "127.0.0.1", "::1", socket.gethostname(), socket.getfqdn()}
    if host in names:
        return True
    try:
        with socket.socket() as probe:
            probe.bind((socket.gethostbyname(host), 0))  # an address of this machine alone
            return True
    except OSError:
        return False


def _settings(given: argparse.Namespace) -> tuple[Settings, TCPStore]:
    least_nodes, most_nodes = (1, 1) if given.standalone else _range(given.nnodes)
    least, processes = _range(given.nproc_per_node)
    conf = dict(part.split("=", 1) for part in given.rdzv_conf.split(",") if part)
    meeting = float(conf.get("timeout") or conf.get("join_timeout") or 300)
    host, port = given.master_addr, given.master_port
    if given.rdzv_endpoint:
        name, _, number = given.rdzv_endpoint.rpartition(":")
        host, port = name or given.rdzv_endpoint, int(number) if name else 29400
    if given.standalone or (most_nodes == 1 and not given.rdzv_endpoint and port == 29500):
        # A single machine needs no port that others know.
        host, port = "127.0.0.1", 0
    here = given.node_rank == 0 if given.node_rank is not None else _is_here(host)
    store = _store(host, port, here, most_nodes == 1, meeting)
    command = [] if given.no_python else [sys.executable, "-u"]
    command += (["-m"] if given.module else []) + [given.program, *given.arguments]
    shown = given.local_ranks_filter
    return Settings(
        command=command,
        least_nodes=least_nodes,
        most_nodes=most_nodes,
        least_processes=least,
        processes=processes,
        node_rank=given.node_rank if least_nodes == most_nodes else None,
        master=host,
        port=store.port,
        max_restarts=given.max_restarts,
        interval=given.monitor_interval,
        meeting=meeting,
        last_call=float(conf.get("last_call_timeout", 3)),
        run_id=given.rdzv_id,
        role=given.role,
        folder=None if given.log_dir is None else Path(given.log_dir),
        redirects=_outputs(given.redirects),
        tee=_outputs(given.tee),
        shown=set(map(int, shown.split(","))) if shown else None,
    ), store


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the program that ``arguments`` (else the command line's) name.

    Raises:
        SystemExit: with code 1, if a process failed and was not started anew.
    """
    settings, store = _settings(_parser().parse_args(arguments))
    agent = Agent(settings, store)

    def stopped(number: int, frame: Any) -> None:
        raise SystemExit(128 + number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stopped)
    try:
        agent.run()
    except JobFailed as error:
        print(f"taeda.distributed.run: the job has failed: {error}", file=sys.stderr)
        raise SystemExit(1) from None
    finally:
        agent.stop()
        agent.linger()


if __name__ == "__main__":
    main()
