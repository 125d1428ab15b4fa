"""What one process of `benchmarks.distributed` does; rank 0 prints what it has measured."""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any


def all_reduce(framework: str, sizes: list[int]) -> dict[str, float]:
    """Seconds of all_reduce by bytes."""
    if framework == "plain":
        import numpy
        from mpi4py import MPI

        world = MPI.COMM_WORLD
        found = {}
        for size in sizes:
            x, y = numpy.ones(size // 4, numpy.float32), numpy.empty(size // 4, numpy.float32)
            # A fixed number of calls: processes must agree on it.
            for _ in range(3):
                world.Allreduce(x, y)
            times = []
            for _ in range(count_for(size)):
                first = time.perf_counter()
                world.Allreduce(x, y)
                times.append(time.perf_counter() - first)
            found[str(size)] = statistics.median(times)
        return found if world.Get_rank() == 0 else {}
    torch, dist = started(framework)
    found = {}
    for size in sizes:
        x = torch.ones(size // 4)
        for _ in range(3):
            dist.all_reduce(x)
            x.fill_(1)
        times = []
        for _ in range(count_for(size)):
            first = time.perf_counter()
            dist.all_reduce(x)
            times.append(time.perf_counter() - first)
        found[str(size)] = statistics.median(times)
    return found


def count_for(size: int) -> int:
    """How often to measure a size."""
    return max(5, min(100, (1 << 26) // size))


def started(framework: str) -> tuple[Any, Any]:
    """The framework and its module of groups, with a group made."""
    if framework == "taeda":
        import taeda as torch
    else:
        import torch
    import importlib

    dist = importlib.import_module(f"{torch.__name__}.distributed")
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    return torch, dist


def ddp(framework: str) -> dict[str, float]:
    """Seconds of a training step with and without `DistributedDataParallel`."""
    torch, dist = started(framework)
    nn = torch.nn

    def layers() -> Any:
        torch.manual_seed(0)
        made: list[Any] = []
        for _ in range(6):
            made += [nn.Linear(1024, 1024), nn.ReLU()]
        return nn.Sequential(*made)

    found = {}
    x = torch.randn(64, 1024)
    hidden = []
    for name in ("alone", "ddp"):
        model = layers()
        if name == "ddp":
            model = nn.parallel.DistributedDataParallel(model, bucket_cap_mb=4)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
        times = []
        for step in range(15):
            dist.barrier()
            first = time.perf_counter()
            loss = model(x).square().mean()
            optimizer.zero_grad()
            begun = time.time()
            loss.backward()
            ended = time.time()
            optimizer.step()
            if step >= 5:
                times.append(time.perf_counter() - first)
                if name == "ddp" and framework == "taeda":
                    hidden.append(_hidden(begun, ended))
        found[name] = statistics.median(times)
    if hidden:
        found["hidden"] = statistics.median(hidden)
        folder = os.environ.get("TAEDA_TRACE")
        if folder:
            from taeda.distributed import flight_recorder

            flight_recorder.chrome_trace(
                Path(folder) / f"rank{dist.get_rank()}.json", dist.get_rank()
            )
    return found


def _hidden(begun: float, ended: float) -> float:
    """The part of the time of all_reduce calls of a backward that passes before its own end."""
    from taeda.distributed import flight_recorder

    records = [
        r for r in flight_recorder.records() if r["started"] >= begun and r["ended"] <= ended
    ]
    waits = [r for r in records if r["name"] == "wait for gradients"]
    calls = [r for r in records if r["name"] == "all_reduce"]
    if not waits or not calls:
        return 0.0
    computed = waits[-1]["started"]  # then the last gradient was there
    total = sum(r["ended"] - r["started"] for r in calls)
    during = sum(max(0.0, min(r["ended"], computed) - r["started"]) for r in calls)
    return during / total


def memory() -> dict[str, float]:
    """Megabytes of a process at its peak, over those before the model, and by the formula."""
    torch, dist = started("taeda")
    from taeda import nn
    from taeda.distributed.fsdp import fully_shard

    width, depth = 1024, 16
    x = torch.randn(8, width)
    before = _resident("VmRSS")
    layers = [fully_shard(nn.Linear(width, width, bias=False)) for _ in range(depth)]
    model = fully_shard(nn.Sequential(*layers))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    for _ in range(3):
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
    unit, size = 4 * width * width / 1e6, dist.get_world_size()
    total = depth * unit
    activations = (depth + 1) * 2 * x.nbytes / 1e6
    share = 4 * total / size
    formula = share + (5 * unit if size > 1 else 0) + activations
    return {"peak": _resident("VmHWM") - before, "formula": formula}


def _resident(name: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    line = next(line for line in lines if line.startswith(name))
    return int(line.split()[1]) / 1e3


def main() -> None:
    """Do the task that the command line names."""
    framework, task, options = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
    if task == "all_reduce":
        found = all_reduce(framework, **options)
    else:
        found = ddp(framework) if task == "ddp" else memory()
    if framework == "plain":
        if found:
            print(json.dumps(found))
        return
    if os.environ["RANK"] == "0":
        print(json.dumps(found), flush=True)
    import importlib

    dist = importlib.import_module(f"{framework}.distributed")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
