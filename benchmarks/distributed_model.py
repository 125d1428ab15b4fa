"""A cost model of all_reduce, fitted to measurements, and what it says of many processes.

A message of n bytes takes a + n / b seconds (Hockney 1994). A ring of p processes sends 2 (p - 1)
messages of n / p bytes, one after another; a binomial tree 2 log2 p of n bytes; slices that all
exchange with all take 2 rounds, whose latency is that of p - 1 messages. Machines of m processes
combine within, then the first of each among machines, then within again.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy

__all__ = ["fitted", "simulated"]

# What is assumed of a cluster, not measured.
NETWORK_LATENCY = 20e-6
NETWORK_BYTES = 12.5e9  # a second: 100 Gbit/s
PROCESSES = 8  # on a machine
BUCKET = 25 << 20
BUCKETS = 40  # a model of 1 GB of gradients
BACKWARD = 2.0  # seconds


def fitted(figures: dict[str, dict[str, float]]) -> tuple[float, float]:
    """Latency and bytes per second of messages between processes on this machine.

    Args:
        figures: by the number of processes, seconds of all_reduce by bytes.
    """
    rows, times = [], []
    for ranks, by_size in figures.items():
        p = int(ranks)
        for size, seconds in by_size.items():
            n = int(size)
            # Small tensors are sent whole in one round, others as slices in two.
            whole = n <= 1 << 14
            messages = (p - 1) * (1 if whole else 2)
            moved = (p - 1) * n if whole else 2 * (p - 1) * n / p
            weight = 1 / seconds  # relative errors count
            rows.append([messages * weight, moved * weight])
            times.append(seconds * weight)
    latency, inverse = numpy.linalg.lstsq(numpy.array(rows), numpy.array(times), rcond=None)[0]
    return float(max(latency, 1e-7)), float(1 / max(inverse, 1e-13))


def ring(p: int, n: float, a: float, b: float) -> float:
    """Seconds of a ring."""
    return 2 * (p - 1) * (a + n / p / b)


def tree(p: int, n: float, a: float, b: float) -> float:
    """Seconds of two binomial trees."""
    return 2 * math.ceil(math.log2(p)) * (a + n / b) if p > 1 else 0.0


def machines(p: int, n: float, a: float, b: float, inner: tuple[float, float]) -> float:
    """Seconds in two levels: within machines, and by the better of ring and tree among them."""
    m = min(PROCESSES, p)
    within = 2 * (m - 1) * (inner[0] + n / m / inner[1])
    count = max(1, p // m)
    among = min(ring(count, n, a, b), tree(count, n, a, b)) if count > 1 else 0.0
    return within + among


def step(all_reduce: Callable[[int], float], p: int) -> float:
    """Seconds of a backward pass whose buckets are sent one after another as they come."""
    free = 0.0
    for bucket in range(BUCKETS):
        ready = BACKWARD * (bucket + 1) / BUCKETS
        free = max(free, ready) + all_reduce(p)
    return free


def simulated(figures: dict[str, dict[str, float]], table: Callable[..., list[str]]) -> list[str]:
    """Lines of the page: the fit, and predictions up to 10,000 processes."""
    inner = fitted(figures)
    lines = [
        f"Fitted to the sockets above: {inner[0] * 1e6:.0f} µs and {inner[1] / 1e9:.2f} GB/s for a "
        "message between processes of this machine. Assumed, not measured: "
        f"{NETWORK_LATENCY * 1e6:.0f} µs and {NETWORK_BYTES / 1e9:g} GB/s between machines, "
        f"{PROCESSES} processes on each, {BUCKETS} buckets of 25 MiB, {BACKWARD:g} s of backward. "
        "The last column is backward alone over a simulated backward whose buckets are sent in "
        "two levels while it goes on. Within machines the fit counts, of processes that share these "
        "cores; machines with a core for each are faster. The two levels are a plan: groups of processes send in one "
        "level today, by rings and trees beyond 16 processes.",
        "",
    ]
    rows = []
    for p in (2, 8, 64, 512, 1000, 4096, 10_000):
        flat = NETWORK_LATENCY, NETWORK_BYTES / PROCESSES

        def levels(count: int) -> float:
            return machines(count, BUCKET, NETWORK_LATENCY, NETWORK_BYTES, inner)

        rows.append(
            [f"{p:,}", f"{ring(p, BUCKET, *flat) * 1e3:.1f} ms",
             f"{tree(p, BUCKET, *flat) * 1e3:.1f} ms", f"{levels(p) * 1e3:.1f} ms",
             f"{100 * BACKWARD / step(levels, p):.0f} %"]
        )  # fmt: skip
    head = ["processes", "a bucket by a ring", "by trees", "in two levels", "efficiency"]
    return lines + table(head, rows)
