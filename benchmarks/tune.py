"""Measures the ways to convolve and to multiply matrices, and fits the rates by which one is chosen.

    python -m benchmarks.tune [--save FILE] [--load FILE] [--seconds 0.02]

Times every algorithm that can compute each of SHAPES, in all three passes, and each of PRODUCTS, on
one thread. Each algorithm states how much work of each kind that is for it (`ConvWork` in
csrc/kernels/cpu/conv/algorithm.h, `GemmWork` in csrc/kernels/cpu/gemm/tuning.h); the fit finds the
nanoseconds for a unit of each kind that explain the times best. Prints them as the tables of
csrc/kernels/cpu/conv/tuning.cpp and csrc/kernels/cpu/gemm/tuning.h, and how much longer the choices
that follow from them take than the best ones.

TAEDA_CPU=v2|v3|v4 measures another instruction set than the machine's best.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import time
from pathlib import Path

import numpy as np

import taeda
from taeda import _C

PASSES = ["forward", "grad_input", "grad_weight"]
ALGORITHMS = ["im2col", "nhwc", "winograd", "depthwise"]


def shape(batch, inputs, outputs, size, kernel, stride=1, padding=0, dilation=1, groups=1):
    n = len(size)
    every = [v if isinstance(v, tuple) else (v,) * n for v in (kernel, stride, padding, dilation)]
    return batch, inputs, outputs, size, *every, groups


def shapes_of_a_batch(n):
    """Layers of ResNet, MobileNet, ConvNeXt, ResNeXt, DeepLab, ViT and of 1d and 3d networks."""
    large = 224 if n == 1 else 112
    return [
        shape(n, 3, 64, (large, large), 7, 2, 3),
        shape(n, 64, 64, (56, 56), 3, 1, 1),
        shape(n, 128, 128, (28, 28), 3, 1, 1),
        shape(n, 256, 256, (14, 14), 3, 1, 1),
        shape(n, 512, 512, (7, 7), 3, 1, 1),
        shape(n, 64, 128, (56, 56), 3, 2, 1),
        shape(n, 256, 512, (14, 14), 3, 2, 1),
        shape(n, 256, 64, (28, 28), 1),
        shape(n, 64, 128, (56, 56), 1, 2),
        shape(n, 512, 2048, (7, 7), 1),
        shape(n, 128, 128, (56, 56), 3, 1, 1, groups=128),
        shape(n, 144, 144, (28, 28), 3, 2, 1, groups=144),
        shape(n, 576, 576, (14, 14), 3, 1, 1, groups=576),
        shape(n, 960, 960, (7, 7), 3, 1, 1, groups=960),
        shape(n, 96, 96, (56, 56), 7, 1, 3, groups=96),
        shape(n, 768, 768, (7, 7), 7, 1, 3, groups=768),
        shape(n, 32, 64, (28, 28), 3, 1, 1, groups=32),
        shape(n, 256, 256, (14, 14), 3, 1, 1, groups=32),
        shape(n, 128, 128, (28, 28), 3, 1, 1, groups=4),
        shape(n, 128, 128, (28, 28), 3, 1, 2, 2),
        shape(n, 256, 64, (33, 33), 3, 1, 12, 12),
        shape(n, 3, 96, (112, 112), 4, 4),
        shape(n, 3, 384, (64, 64), 16, 16),
        shape(n, 16, 32, (8, 16, 16), 3, 1, 1),
        shape(n, 32, 64, (8, 16, 16), 3, 2, 1),
        shape(n, 64, 64, (256,), 5, 1, 2),
        shape(n, 1, 32, (2048,), 9, 1, 4),
        shape(n, 64, 64, (1024,), 3, 1, 8, 8),
        shape(n, 3, 32, (112, 112), 3, 2, 1),
        shape(n, 64, 64, (28, 28), (1, 3), 1, (0, 1)),
        shape(n, 32, 64, (14, 14), 5, 1, 2),
    ]


SHAPES = [
    *shapes_of_a_batch(1),
    *shapes_of_a_batch(8),
    # VGG
    shape(1, 3, 64, (224, 224), 3, 1, 1),
    shape(1, 64, 64, (112, 112), 3, 1, 1),
    # LeNet and small networks for MNIST and CIFAR
    shape(32, 1, 6, (28, 28), 5, 1, 2),
    shape(32, 6, 16, (14, 14), 5),
    shape(32, 1, 32, (28, 28), 3, 1, 1),
    shape(32, 16, 32, (14, 14), 3, 1, 1),
    shape(1, 1, 32, (28, 28), 3, 1, 1),
    shape(32, 3, 32, (32, 32), 3, 1, 1),
    shape(32, 64, 64, (16, 16), 3, 1, 1),
    shape(32, 128, 128, (8, 8), 3, 1, 1),
    shape(32, 256, 256, (4, 4), 3, 1, 1),
    shape(32, 64, 128, (8, 8), 3, 2, 1),
    shape(64, 8, 16, (5, 5), 3, 1, 1),
    shape(32, 512, 512, (2, 2), 3, 1, 1),
    shape(32, 64, 256, (8, 8), 1),
    shape(32, 64, 128, (8, 8), 1, 2),
    # DQN
    *(shape(n, 4, 32, (84, 84), 8, 4) for n in (1, 32)),
    *(shape(n, 32, 64, (20, 20), 4, 2) for n in (1, 32)),
    *(shape(n, 64, 64, (9, 9), 3) for n in (1, 32)),
    # Whose gradients are DCGAN's, a U-Net's and a super-resolution network's convolutions
    shape(8, 3, 64, (64, 64), 4, 2, 1),
    shape(8, 64, 128, (32, 32), 4, 2, 1),
    shape(8, 256, 512, (8, 8), 4, 2, 1),
    shape(2, 64, 128, (56, 56), 2, 2),
    shape(1, 64, 3, (112, 112), 3, 1, 1),
    # Others
    shape(1, 2, 64, (28, 28), 7, 1, 3),
    shape(4, 3, 64, (112, 112), 11, 4, 2),
    shape(32, 32, 32, (8, 8), 3, 1, 1, groups=32),
    shape(8, 96, 96, (14, 14), 5, 2, 2, groups=96),
    shape(4, 256, 256, (200,), 31, 1, 15, groups=256),
    shape(2, 32, 32, (8, 14, 14), 3, 1, 1, groups=32),
]

# m, n, k, and whether each side is stored by columns.
PRODUCTS = [
    (m, n, k, a_transposed, b_transposed)
    for m, n, k in [
        *((size, size, size) for size in (16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)),
        *((m, n, 512) for m in (2, 4, 8, 16, 64) for n in (64, 512, 1024)),
        *((m, n, k) for m in (1, 3, 8, 32, 64) for n, k in ((10, 84), (120, 400), (256, 784))),
        *((m, n, 16) for m in (8, 64, 256) for n in (16, 100, 1024)),
        (1, 1024, 1024),
        (1024, 1, 1024),
        (4, 2048, 512),
        (512, 8, 512),
        (32, 4, 2048),
    ]
    for a_transposed in (False, True)
    for b_transposed in (False, True)
]


def shortest(f, seconds):
    """The shortest time of a call in nanoseconds."""
    f()
    start = time.perf_counter()
    f()
    calls = max(1, int(0.001 / max(time.perf_counter() - start, 1e-7)))
    times = []
    end = time.perf_counter() + seconds
    while len(times) < 4 or time.perf_counter() < end:
        start = time.perf_counter()
        for _ in range(calls):
            f()
        times.append((time.perf_counter() - start) / calls)
    return min(times) * 1e9


def measure(seconds):
    """For each shape and pass: {algorithm: (nanoseconds, work)}."""
    taeda.set_num_threads(1)
    rows = []
    for batch, inputs, outputs, size, kernel, stride, padding, dilation, groups in SHAPES:
        x = taeda.randn(batch, inputs, *size)
        w = taeda.randn(outputs, inputs // groups, *kernel)
        options = stride, padding, dilation, groups
        y = _C.ops._conv(x, w, None, *options)
        g = taeda.randn(*y.shape)
        runs = [
            lambda: _C.ops._conv(x, w, None, *options),  # noqa: B023
            lambda: _C.ops._conv_input(g, w, size, *options),  # noqa: B023
            lambda: _C.ops._conv_weight(x, g, kernel, *options),  # noqa: B023
        ]
        dimensions = list(zip(size, kernel, y.shape[2:], stride, padding, dilation, strict=True))
        for which, run in enumerate(runs):
            row = {}
            for name, _, *work in _C._conv_candidates(
                which, batch, groups, inputs, outputs, dimensions
            ):
                _C._force_conv(name)
                row[name] = (shortest(run, seconds), work)
            _C._force_conv("")
            rows.append((which, f"{batch}x{inputs}x{size}-{outputs} k{kernel} s{stride}", row))
    return rows


def measure_products(seconds):
    """For each product: {algorithm: (nanoseconds, work)}, without what any call takes."""
    taeda.set_num_threads(1)
    one = taeda.randn(1, 1)
    call = shortest(lambda: one @ one, seconds)
    rows = []
    for m, n, k, a_transposed, b_transposed in PRODUCTS:
        a = taeda.randn(k, m).mT if a_transposed else taeda.randn(m, k)
        b = taeda.randn(n, k).mT if b_transposed else taeda.randn(k, n)
        row = {}
        for name, _, work in _C._gemm_candidates(m, n, k, a_transposed, b_transposed):
            _C._force_gemm(name)
            row[name] = (shortest(lambda: a @ b, seconds) - call, list(work))  # noqa: B023
        _C._force_gemm("")
        layout = " a'" * a_transposed + " b'" * b_transposed
        if min(time for time, _ in row.values()) > call:  # or the difference tells little
            rows.append((0, f"{m}x{n}x{k}{layout}", row))
    return rows


def nonnegative_fit(work, times, weights):
    """The rates, none negative, with the least weighted squared relative error."""
    a = np.asarray(work) / np.asarray(times)[:, None] * np.asarray(weights)[:, None]
    b = np.asarray(weights)
    kinds = a.shape[1]
    best, least = np.zeros(kinds), math.inf
    for chosen in itertools.chain.from_iterable(
        itertools.combinations(range(kinds), n) for n in range(1, kinds + 1)
    ):
        columns = list(chosen)
        rates, *_ = np.linalg.lstsq(a[:, columns], b, rcond=None)
        error = float(np.sum((a[:, columns] @ rates - b) ** 2))
        if (rates >= 0).all() and error < least:
            best, least = np.zeros(kinds), error
            best[columns] = rates
    return best


def robust_fit(data):
    """The rates for (nanoseconds, work, the fastest of that shape). What is far from the fastest
    counts for little, and so does what the rates explain badly.
    """
    times, fastest = np.asarray([d[0] for d in data]), np.asarray([d[2] for d in data])
    work = np.asarray([d[1] for d in data], float)
    weights = (fastest / times) ** 0.5
    for _ in range(5):
        found = nonnegative_fit(work, times, weights)
        estimates = np.maximum(work @ found, 1e-9)
        weights = (fastest / times) ** 0.5 / (1 + np.abs(np.log(estimates / times)))
    return found


def fit(rows):
    """rates[algorithm][pass]."""
    rates = {}
    for name in ALGORITHMS:
        for which in range(len(PASSES)):
            data = [
                (*row[name], min(time for time, _ in row.values()))
                for other, _, row in rows
                if other == which and name in row
            ]
            rates[name, which] = robust_fit(data) if data else np.zeros(4)
    return rates


def fit_products(rows):
    """The rates of all kinds of work; the algorithms share some of them."""
    return robust_fit(
        [
            (*timed, min(time for time, _ in row.values()))
            for _, _, row in rows
            for timed in row.values()
        ]
    )


def report(rows, rate_of, titles):
    worse = {which: [] for which in range(len(titles))}
    for which, title, row in rows:
        cost = {name: float(np.dot(rate_of(name, which), work)) for name, (_, work) in row.items()}
        chosen, best = min(cost, key=cost.get), min(row, key=lambda name: row[name][0])
        ratio = row[chosen][0] / row[best][0]
        worse[which].append(math.log(ratio))
        if ratio > 1.15:
            print(
                f"// {titles[which]} {title}: {chosen} {row[chosen][0] / 1e3:.3g} us, "
                f"{best} {row[best][0] / 1e3:.3g}"
            )
    for which, logs in worse.items():
        print(f"// {titles[which]}: {math.exp(sum(logs) / len(logs)):.3f} of the shortest times")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--save", type=Path, help="write the measurements there")
    parser.add_argument("--load", type=Path, help="fit to measurements of before")
    parser.add_argument("--seconds", type=float, default=0.02, help="for each algorithm and shape")
    o = parser.parse_args()
    if o.load:
        convolutions, products = json.loads(o.load.read_text())
    else:
        convolutions, products = measure(o.seconds), measure_products(o.seconds)
    if o.save:
        o.save.write_text(json.dumps([convolutions, products]))
    rates = fit(convolutions)
    report(convolutions, lambda name, which: rates[name, which], PASSES)
    level = _C.cpu_level()
    print(f"constexpr ConvTuning k{level.capitalize()} = {{")
    for name in ALGORITHMS:
        passes = (", ".join(f"{r:.3g}" for r in rates[name, which]) for which in range(3))
        print(f"    .{name} = {{{', '.join(f'{{{numbers}}}' for numbers in passes)}}},")
    print("};")
    of_products = fit_products(products)
    report(products, lambda name, which: of_products, ["product"])
    print(f"    {{{', '.join(f'{r:.3g}' for r in of_products)}}},  // {level}")


if __name__ == "__main__":
    main()
