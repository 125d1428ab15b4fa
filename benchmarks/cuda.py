"""Measure taeda beside PyTorch on a CUDA device.

Each framework runs in a process of its own, one after the other. A time is the median, over loops
of calls, of the time by call of a loop that ends in `cuda.synchronize()`; of group `host`, that of
a loop which is not waited for: the time until a call returns.

    python -m benchmarks.cuda                   # a table on the terminal
    python -m benchmarks.cuda --write H100 "PyTorch 2.11"    # and docs/performance-gpu.md
    python -m benchmarks.cuda --groups host --frameworks taeda
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import json
import math
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.cuda_models import gpt, resnet18

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "performance-gpu.md"
LOOPS = 7
LOOP_SECONDS = 0.02
MOST_SECONDS = 2.0  # a case whose first call takes longer is measured by one more call
MIB = 1 << 20


@dataclass
class Case:
    """`make(torch)` returns what is timed; `work` is in bytes or, of group compute, operations."""

    group: str
    title: str
    make: Callable[[Any], Callable[[], object]]
    work: float = 0


def seconds(torch: Any, call: Callable[[], object], waits: bool) -> float:
    """The median time of a call."""
    for _ in range(2):
        start = time.perf_counter()
        call()
        torch.cuda.synchronize()
        once = time.perf_counter() - start
        if once > MOST_SECONDS:
            return once
    calls = 200 if not waits else max(1, min(1000, int(LOOP_SECONDS / once)))
    found = []
    for _ in range(LOOPS):
        start = time.perf_counter()
        for _ in range(calls):
            call()
        if waits:
            torch.cuda.synchronize()
        found.append((time.perf_counter() - start) / calls)
        torch.cuda.synchronize()
    return statistics.median(found)


def randn(torch: Any, shape: tuple[int, ...], dtype: str) -> Any:
    """Random numbers, repeated where there are many."""
    n = math.prod(shape)
    few = torch.randn(min(n, MIB)).to("cuda").to(getattr(torch, dtype))
    return few.repeat(-(-n // few.numel()))[:n].reshape(shape)


def training(torch: Any, model: Any, lr: float, loss: Callable[[], Any]) -> Callable[[], object]:
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)

    def step() -> None:
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()

    return step


def cases() -> list[Case]:
    found: list[Case] = []

    def add(
        group: str, title: str, make: Callable[[Any], Callable[[], object]], work: float = 0
    ) -> None:
        found.append(Case(group, title, make, work))

    def on(shapes: list[tuple[int, ...]], dtype: str, call: Callable[..., object]):
        def make(torch: Any) -> Callable[[], object]:
            given = [randn(torch, s, dtype) for s in shapes]
            return lambda: call(torch, *given)

        return make

    def with_gradients(shapes: list[tuple[int, ...]], dtype: str, call: Callable[..., Any]):
        """The value and all gradients."""

        def make(torch: Any) -> Callable[[], object]:
            given = [randn(torch, s, dtype).requires_grad_() for s in shapes]
            upstream = torch.ones_like(call(torch, *given).detach())
            return lambda: torch.autograd.grad(call(torch, *given), given, upstream)

        return make

    small = [(8, 8), (8, 8)]
    add("host", "8x8 a + b", on(small, "float32", lambda t, a, b: a + b))
    add("host", "8x8 a * 2", on(small, "float32", lambda t, a, b: a * 2))
    add("host", "8x8 a @ b", on(small, "float32", lambda t, a, b: a @ b))
    add("host", "8x8 relu", on(small, "float32", lambda t, a, b: a.relu()))
    add("host", "8x8 a.sum()", on(small, "float32", lambda t, a, b: a.sum()))
    add("host", "8x8 softmax", on(small, "float32", lambda t, a, b: a.softmax(1)))
    add(
        "host",
        "8x8 (a * b).relu().sum() and gradients",
        with_gradients(small, "float32", lambda t, a, b: (a * b).relu().sum()),
    )

    n = 64 * MIB
    add("memory", "64M a + b", on([(n,), (n,)], "float32", lambda t, a, b: a + b), 12 * n)
    add("memory", "64M a + b, bfloat16", on([(n,), (n,)], "bfloat16", lambda t, a, b: a + b), 6 * n)
    add("memory", "64M a.exp()", on([(n,)], "float32", lambda t, a: a.exp()), 8 * n)
    add(
        "memory",
        "64M gelu, bfloat16",
        on([(n,)], "bfloat16", lambda t, a: t.nn.functional.gelu(a)),
        4 * n,
    )
    add("memory", "64M clone", on([(n,)], "float32", lambda t, a: a.clone()), 8 * n)
    add(
        "memory", "64M float32 to bfloat16", on([(n,)], "float32", lambda t, a: a.bfloat16()), 6 * n
    )
    rows = (8192, 8192)
    add(
        "memory",
        "8192x8192 transposed copy",
        on([rows], "float32", lambda t, a: a.t().contiguous()),
        8 * n,
    )
    add("memory", "8192x8192 a + row", on([rows, (8192,)], "float32", lambda t, a, b: a + b), 8 * n)
    add("memory", "64M sum", on([(n,)], "float32", lambda t, a: a.sum()), 4 * n)
    add("memory", "8192x8192 sum(0)", on([rows], "float32", lambda t, a: a.sum(0)), 4 * n)
    add("memory", "8192x8192 sum(1)", on([rows], "float32", lambda t, a: a.sum(1)), 4 * n)
    add("memory", "8192x8192 var(1)", on([rows], "float32", lambda t, a: a.var(1)), 4 * n)
    add("memory", "8192x8192 argmax(1)", on([rows], "float32", lambda t, a: a.argmax(1)), 4 * n)
    add("memory", "8192x8192 softmax(1)", on([rows], "float32", lambda t, a: a.softmax(1)), 8 * n)
    add(
        "memory",
        "8192x8192 softmax(1), bfloat16",
        on([rows], "bfloat16", lambda t, a: a.softmax(1)),
        4 * n,
    )
    add("memory", "8192x8192 cumsum(1)", on([rows], "float32", lambda t, a: a.cumsum(1)), 8 * n)
    add(
        "memory",
        "65536x1024 layer_norm",
        on(
            [(65536, 1024), (1024,), (1024,)],
            "float32",
            lambda t, x, w, b: t.nn.functional.layer_norm(x, (1024,), w, b),
        ),
        8 * n,
    )
    add(
        "memory",
        "65536x1024 layer_norm, bfloat16, and gradients",
        with_gradients(
            [(65536, 1024), (1024,), (1024,)],
            "bfloat16",
            lambda t, x, w, b: t.nn.functional.layer_norm(x, (1024,), w, b),
        ),
        10 * n,
    )
    add(
        "memory",
        "64x64x128x128 batch_norm, training",
        on(
            [(64, 64, 128, 128), (64,), (64,)],
            "float32",
            lambda t, x, w, b: t.nn.functional.batch_norm(x, None, None, w, b, True),
        ),
        12 * n,
    )

    def cross_entropy(torch: Any) -> Callable[[], object]:
        x = randn(torch, (8192, 32768), "float32").requires_grad_()
        y = torch.randint(0, 32768, (8192,)).to("cuda")
        f = torch.nn.functional.cross_entropy
        return lambda: torch.autograd.grad(f(x, y), x)

    add("memory", "8192x32768 cross_entropy and its gradient", cross_entropy, 16 * 8192 * 32768)

    def embedding(torch: Any) -> Callable[[], object]:
        w = randn(torch, (50304, 1024), "float32")
        i = torch.randint(0, 50304, (65536,)).to("cuda")
        return lambda: torch.nn.functional.embedding(i, w)

    add("memory", "65536 rows of embedding 50304x1024", embedding, 8 * n)

    def embedding_gradient(torch: Any) -> Callable[[], object]:
        w = randn(torch, (50304, 768), "float32").requires_grad_()
        i = torch.randint(0, 50304, (16384,)).to("cuda")
        up = randn(torch, (16384, 768), "float32")
        return lambda: torch.autograd.grad(torch.nn.functional.embedding(i, w), w, up)

    add(
        "memory",
        "16384 rows of embedding 50304x768 and gradient",
        embedding_gradient,
        4 * 768 * (50304 + 3 * 16384),
    )
    half = (4096, 8192)
    add(
        "memory",
        "cat of two 4096x8192",
        on([half, half], "float32", lambda t, a, b: t.cat([a, b])),
        8 * n,
    )

    def adam(torch: Any) -> Callable[[], object]:
        p = [randn(torch, (MIB,), "float32").requires_grad_() for _ in range(64)]
        for v in p:
            v.grad = randn(torch, (MIB,), "float32")
        return torch.optim.AdamW(p, fused=True).step

    add("memory", "AdamW(fused=True) of 64 x 1M", adam, 28 * n)

    def dropout(torch: Any) -> Callable[[], object]:
        x = randn(torch, (n,), "float32")
        return lambda: torch.nn.functional.dropout(x, 0.1)

    add("memory", "64M dropout", dropout, 8 * n)
    add("memory", "64M rand", lambda t: lambda: t.rand(n, device="cuda"), 4 * n)
    add("memory", "64M randn", lambda t: lambda: t.randn(n, device="cuda"), 4 * n)
    add("memory", "16M randperm", lambda t: lambda: t.randperm(n // 4, device="cuda"), 2 * n)

    def product(m: int, k: int, p: int, dtype: str, title: str) -> None:
        add("compute", title, on([(m, k), (k, p)], dtype, lambda t, a, b: a @ b), 2.0 * m * k * p)

    product(4096, 4096, 4096, "float32", "4096 matrix product, float32")
    product(4096, 4096, 4096, "float64", "4096 matrix product, float64")
    product(8192, 8192, 8192, "bfloat16", "8192 matrix product, bfloat16")
    product(8192, 8192, 8192, "float16", "8192 matrix product, float16")
    product(512, 512, 512, "float32", "512 matrix product, float32")
    product(1, 4096, 4096, "bfloat16", "1x4096 by 4096x4096, bfloat16")
    add(
        "compute",
        "64 products of 512, bfloat16",
        on([(64, 512, 512), (64, 512, 512)], "bfloat16", lambda t, a, b: a @ b),
        2.0 * 64 * 512**3,
    )
    add(
        "compute",
        "linear 16384x768 to 3072 and gradients, bfloat16",
        with_gradients(
            [(16384, 768), (3072, 768), (3072,)],
            "bfloat16",
            lambda t, x, w, b: t.nn.functional.linear(x, w, b),
        ),
        6.0 * 16384 * 768 * 3072,
    )

    def attention(dtype: str, gradients: bool, causal: bool, title: str) -> None:
        b, h, s, d = 8, 16, 2048, 64
        make = with_gradients if gradients else on

        def call(t: Any, q: Any, k: Any, v: Any) -> Any:
            return t.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

        work = 4.0 * b * h * s * s * d * (3.5 if gradients else 1) / (2 if causal else 1)
        add("compute", title, make([(b, h, s, d)] * 3, dtype, call), work)

    attention("bfloat16", False, True, "causal attention 8x16x2048x64, bfloat16")
    attention("bfloat16", True, True, "the same and gradients")
    attention("float32", False, False, "attention 8x16x2048x64, float32")

    def conv(
        dtype: str, gradients: bool, n: int, c: int, side: int, k: int, size: int, title: str
    ) -> None:
        make = with_gradients if gradients else on

        def call(t: Any, x: Any, w: Any) -> Any:
            return t.nn.functional.conv2d(x, w, padding=size // 2)

        work = 2.0 * n * c * side * side * k * size * size * (3 if gradients else 1)
        add("compute", title, make([(n, c, side, side), (k, c, size, size)], dtype, call), work)

    conv("float32", False, 32, 64, 56, 64, 3, "conv 3x3, 32x64x56x56 to 64, float32")
    conv("bfloat16", False, 32, 256, 28, 256, 3, "conv 3x3, 32x256x28x28 to 256, bfloat16")
    conv("float32", True, 32, 64, 56, 64, 3, "conv 3x3, 32x64x56x56 to 64, and gradients, float32")
    conv("float32", False, 32, 256, 28, 64, 1, "conv 1x1, 32x256x28x28 to 64, float32")

    def mlp(torch: Any) -> Callable[[], object]:
        nn = torch.nn
        model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)).to("cuda")
        x, y = randn(torch, (32, 64), "float32"), torch.randint(0, 10, (32,)).to("cuda")
        return training(torch, model, 1e-3, lambda: nn.functional.cross_entropy(model(x), y))

    add("training", "MLP 64-64-10, batch 32", mlp)

    def transformer(torch: Any) -> Callable[[], object]:
        model = gpt(torch, layers=12, width=768, heads=12).to("cuda", torch.bfloat16)
        x = torch.randint(0, 50304, (8, 1024)).to("cuda")
        f = torch.nn.functional.cross_entropy
        return training(torch, model, 1e-4, lambda: f(model(x).flatten(0, 1).float(), x.flatten()))

    add("training", "GPT-2 124M, 8x1024 tokens, bfloat16", transformer)

    def resnet(torch: Any) -> Callable[[], object]:
        model = resnet18(torch).to("cuda")
        x, y = randn(torch, (32, 3, 224, 224), "float32"), torch.randint(0, 1000, (32,)).to("cuda")
        return training(torch, model, 1e-3, lambda: torch.nn.functional.cross_entropy(model(x), y))

    add("training", "ResNet-18, 32x3x224x224, float32", resnet)
    return found


def work(framework: str, groups: list[str], only: str) -> None:
    """Print a line of JSON for each case."""
    torch = importlib.import_module(framework)
    if framework == "taeda":
        torch.set_fallback("cpu")
    torch.manual_seed(0)
    torch.zeros(1, device="cuda")
    for case in cases():
        if case.group not in groups or only not in case.title:
            continue
        answer: dict[str, Any] = {"title": case.title}
        try:
            if case.group == "training":
                torch.cuda.reset_peak_memory_stats()
            answer["seconds"] = seconds(torch, case.make(torch), case.group != "host")
            if case.group == "training":
                answer["peak"] = torch.cuda.max_memory_allocated()
        except Exception as error:
            answer["error"] = f"{type(error).__name__}: {error}"[:300]
        print(json.dumps(answer), flush=True)
        torch.cuda.empty_cache()


def measure(framework: str, options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    command = [sys.executable, "-m", "benchmarks.cuda", "--work", framework]
    command += ["--groups", *options.groups, "--only", options.only]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return read_lines(done.stdout.splitlines())


def time_text(answer: dict[str, Any]) -> str:
    if "seconds" not in answer:
        return answer.get("error", "").split(":")[0] or "-"
    t = answer["seconds"]
    return f"{t * 1e6:.2f} µs" if t < 1e-3 else f"{t * 1e3:.2f} ms"


def table(groups: list[str], found: dict[str, dict[str, dict[str, Any]]]) -> list[str]:
    lines = []
    for group in groups:
        rate = {"memory": "GB/s", "compute": "TFLOP/s", "training": "peak memory"}.get(group, "")
        head = ["PyTorch", "taeda", "PyTorch / taeda", *filter(None, [rate])]
        lines += [f"## {group}", "", f"| | {' | '.join(head)} |", "|---|" + "--:|" * len(head)]
        ratios = []
        for case in cases():
            ours, theirs = (found.get(f, {}).get(case.title) for f in ("taeda", "torch"))
            if case.group != group or not (ours or theirs):
                continue
            ours, theirs = ours or {}, theirs or {}
            ratio = own = ""
            if "seconds" in ours and "seconds" in theirs:
                ratios.append(theirs["seconds"] / ours["seconds"])
                ratio = f"{ratios[-1]:.2f}"
            if case.work and "seconds" in ours:
                own = f"{case.work / ours['seconds'] / (1e9 if group == 'memory' else 1e12):.0f}"
            if "peak" in ours and "peak" in theirs:
                own = f"{theirs['peak'] / MIB:.0f} and {ours['peak'] / MIB:.0f} MiB"
            row = [case.title, time_text(theirs), time_text(ours), ratio, *[own] * bool(rate)]
            lines.append(f"| {' | '.join(row)} |")
        if ratios:
            lines += ["", f"Geometric mean: {statistics.geometric_mean(ratios):.2f}", ""]
    return lines


def read_lines(lines: Iterable[str]) -> dict[str, dict[str, Any]]:
    return {answer.pop("title"): answer for answer in map(json.loads, lines)}


def intro(device: str, commit: str, versions: str) -> list[str]:
    return [
        "# Performance on a GPU",
        "",
        "Written by `python -m benchmarks.cuda --write`. A time is the median, over loops of calls, of a call's time in a loop that",
        "ends in `cuda.synchronize()`; of group host, of a loop that is not waited for. A ratio is PyTorch's time over taeda's: above 1",
        "taeda is faster. Bytes are those that must be read and written at least.",
        "",
        f"{device}; {versions}; commit {commit}, {datetime.date.today()}.",
        "",
    ]


def main() -> None:
    groups = ["host", "memory", "compute", "training"]
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--groups", nargs="+", choices=groups, default=groups)
    parser.add_argument("--only", default="", help="cases with this in their title")
    parser.add_argument("--frameworks", nargs="+", default=["torch", "taeda"])
    parser.add_argument("--load", help="a folder with torch.jsonl and taeda.jsonl of --work")
    parser.add_argument("--write", nargs=2, metavar=("DEVICE", "VERSIONS"), help="and the page")
    parser.add_argument("--work", help="measure one framework: lines of JSON")
    options = parser.parse_args()
    if options.work:
        return work(options.work, options.groups, options.only)
    if options.load:
        found = {
            name: read_lines(Path(options.load, f"{name}.jsonl").read_text().splitlines())
            for name in options.frameworks
        }
    else:
        found = {framework: measure(framework, options) for framework in options.frameworks}
    for framework, answers in found.items():
        for title, answer in answers.items():
            if "error" in answer:
                print(f"{framework}: {title}: {answer['error']}", file=sys.stderr)
    lines = table(options.groups, found)
    print("\n".join(lines))
    if options.write:
        commit = subprocess.check_output(["git", "rev-parse", "--short", "HEAD"], text=True).strip()
        device, versions = options.write
        PAGE.write_text("\n".join(intro(device, commit, versions) + lines).rstrip() + "\n")
    return None


if __name__ == "__main__":
    main()
