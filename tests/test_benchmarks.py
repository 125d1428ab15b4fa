"""The arithmetic of the benchmark tool, its files and its processes; never its timings."""

from __future__ import annotations

import ctypes
import gzip
import importlib.util
import math
import mmap
import platform
import struct
import subprocess
import sys
from pathlib import Path

import pytest

import taeda
from benchmarks import __main__ as driver
from benchmarks import fashion, levels, limits, peak, plot, report, rounds
from benchmarks.cases import CASES
from benchmarks.cases.table import Case
from benchmarks.report import Limits, Row

ROOT = Path(__file__).resolve().parents[1]


def row(title="a case", group="memory", *, bytes=0.0, flops=0.0, **seconds):
    """A row with times given as taeda1=..., torch2=..."""
    times = {(name[:-1], int(name[-1])): value for name, value in seconds.items()}
    return Row(Case(group, title, lambda fw: None, bytes, flops), times)


# ---- ratios and means


def test_ratio_is_pytorchs_time_over_taedas():
    times = row(taeda1=2.0, torch1=6.0, taeda2=1.0).times
    assert report.ratio(times, 1) == 3.0
    assert report.ratio(times, 2) is None
    assert report.ratio({}, 1) is None


def test_speed_up_is_for_large_work_only():
    assert report.speed_up(row(taeda1=4.0, taeda2=2.5), 2) == 1.6
    assert report.speed_up(row(taeda1=4.0, taeda2=2.5), 1) is None
    assert report.speed_up(row(taeda1=4.0), 2) is None
    assert report.speed_up(row(taeda1=1e-4, taeda2=1e-4, torch1=9e-4), 2) is None
    assert report.speed_up(row(taeda1=1e-4, taeda2=1e-4, torch1=1e-3), 2) == 1.0
    assert report.speed_up(row(group="overhead", taeda1=4.0, taeda2=2.0), 2) is None


def test_share_is_what_the_slower_limit_allows():
    machine = Limits(bandwidth=100.0, rate=1000.0)
    assert report.share(row(bytes=50.0).case, 1.0, machine) == 0.5
    assert report.share(row(flops=500.0).case, 2.0, machine) == 0.25
    assert report.share(row(bytes=50.0, flops=800.0).case, 1.0, machine) == 0.8
    assert report.share(row(bytes=90.0, flops=800.0).case, 1.0, machine) == 0.9
    assert report.share(row().case, 1.0, machine) is None
    assert report.share(row(bytes=50.0).case, None, machine) is None
    assert report.share(row(flops=50.0).case, 1.0, Limits(100.0, 0.0)) is None


def test_geometric_mean():
    assert report.geometric_mean([2.0, 8.0]) == pytest.approx(4.0)
    assert report.geometric_mean([5.0]) == pytest.approx(5.0)
    assert math.isnan(report.geometric_mean([]))


def test_summary_names_the_lowest_row():
    line = report.summary([("a", 8.0), ("b", None), ("c", 2.0)])
    assert line == "geometric mean 4.00 over 2 rows, lowest 2.00 (c)"
    assert report.summary([("b", None)]) is None


def test_best_rate_counts_rows_of_that_number_of_threads():
    rows = [row(flops=10.0, taeda1=5.0, torch1=2.0, taeda2=1.0), row(taeda1=1.0)]
    assert report.best_rate(rows, 1) == 5.0
    assert report.best_rate(rows, 2) == 10.0
    assert report.best_rate([], 1) == 0.0


@pytest.mark.parametrize(
    "seconds, text",
    [(2.0, "2 s"), (0.0125, "12.5 ms"), (3.21e-6, "3.21 µs"), (1.5e-7, "150 ns")],
)
def test_seconds_text(seconds, text):
    assert report.seconds_text(seconds) == text


def test_group_lines_hold_both_thread_counts_and_shares():
    rows = [
        row("one", bytes=50.0, taeda1=1.0, torch1=2.0, taeda2=0.5, torch2=2.0),
        row("two", taeda1=1.0, torch1=8.0),
    ]
    lines = report.group_lines("memory", rows, {1: Limits(100.0, 0.0), 2: Limits(200.0, 0.0)})
    text = "\n".join(lines)
    assert "PyTorch / taeda, 1 thread: geometric mean 4.00 over 2 rows, lowest 2.00 (one)." in text
    assert "PyTorch / taeda, 2 threads: geometric mean 4.00 over 1 row, lowest 4.00 (one)." in text
    assert "taeda, 1 thread / 2, large rows: geometric mean 2.00 over 1 row" in text
    assert "| one | 1 s | 2 s | 2.00 | 500 ms | 2 s | 4.00 | 2.00 | 50% | 50% |" in text
    assert "| two | 1 s | 8 s | 8.00 | — | — | — | — | — | — |" in text
    widths = {line.count("|") for line in lines if line.startswith("|")}
    assert len(widths) == 1


def test_group_lines_of_small_work_have_no_speed_up():
    lines = report.group_lines(
        "overhead",
        [row(group="overhead", taeda1=1e-6, torch1=2e-6, taeda2=1e-6, torch2=2e-6)],
        {1: Limits(1.0, 1.0), 2: Limits(1.0, 1.0)},
    )
    assert lines[-2] == "| a case | 1 µs | 2 µs | 2.00 | 1 µs | 2 µs | 2.00 |"


def test_without_an_fma_figure_the_fastest_row_stands_for_it():
    rows = [row("product", "compute", flops=1e9, taeda1=1.0, torch1=0.5)]
    text = "\n".join(driver.timed_lines(rows, {1: Limits(1e9, 0.0)}))
    assert "the fastest row of this run" in text
    assert "| 1 thread | 1.0 GB/s | 2 GFLOP/s |" in text
    assert "| product | 1 s | 500 ms | 0.50 | 50% |" in text


def test_group_ratios_leave_out_what_was_not_measured():
    rows = [row(taeda1=1.0, torch1=2.0), row(taeda1=1.0), row(group="files", torch1=1.0)]
    assert driver.group_ratios(rows, [1, 2]) == {"memory": {1: [2.0]}}


# ---- lower instruction sets


def test_a_lower_level_has_its_own_tables_and_the_time_beside_the_first():
    base = [row("one", taeda1=1.0, torch1=2.0), row("two", taeda1=1.0)]
    rows = [row("one", taeda1=2.0, torch1=3.0, taeda2=1.0), row("two", taeda1=8.0)]
    text = "\n".join(driver.lower_lines("v3", rows, "v4", base))
    assert "## Held to v3 (AVX2)" in text
    assert "### Memory" in text
    assert "- PyTorch / taeda, 1 thread: geometric mean 1.50 over 1 row" in text
    assert "- v3 / v4, taeda's time, 1 thread: geometric mean 4.00, highest 8.00 (two)." in text
    assert "| one | 2 s | 3 s | 1.50 | 1 s | 2.00 |" in text
    assert "| two | 8 s | — | — | — | 8.00 |" in text


def test_a_level_for_taeda_alone_has_no_ratio():
    lines = report.level_lines("memory", [row(taeda1=3.0)], [row(taeda1=1.0)], "v2 / v4")
    assert "|  | taeda, 1 thread | v2 / v4 |" in lines
    assert "| a case | 3 s | 3.00 |" in lines


def test_processes_are_held_to_the_level():
    assert levels.environment("v3")["ATEN_CPU_CAPABILITY"] == "avx2"
    assert levels.environment(levels.OWN) == {}
    assert levels.wrong("v3", "AVX2") is None
    assert levels.wrong(levels.OWN, "AVX512") is None
    assert levels.wrong("v3", "AVX512") == "held to v3 (AVX2), it runs with AVX512"


# ---- declared work


def test_declared_work():
    assert CASES["mm_1024"].flops == 2 * 1024**3
    assert CASES["mm_double"].flops == 4 * 512**3
    assert CASES["bmm_64"].flops == 64 * 2 * 64**3
    assert CASES["conv_3x3"].flops == 2 * 8 * 64 * 56 * 56 * 64 * 9
    assert CASES["conv_3x3_backward"].flops == 3 * CASES["conv_3x3"].flops
    assert CASES["conv_depthwise"].flops == 2 * 8 * 128 * 56 * 56 * 9
    assert CASES["conv_stem"].flops == 2 * 4 * 64 * 112 * 112 * 3 * 49
    assert CASES["sdpa"].flops == 4 * 64 * 128 * 128 * 64
    assert CASES["sdpa_causal"].flops == 4 * 64 * (128 * 129 // 2) * 64
    assert CASES["add_16m"].bytes == 3 * 4 * 16_000_000
    assert CASES["sum_rows"].bytes == 4 * 4096**2


def test_every_memory_case_declares_its_bytes():
    assert [key for key, c in CASES.items() if c.group == "memory" and not c.bytes] == []


# ---- the machine's limits


def test_streaming_copy_copies_every_byte():
    blocks = 5
    size = blocks * limits.COPY_BLOCK
    source, target = mmap.mmap(-1, 4096), mmap.mmap(-1, 4096)
    source.write(bytes(i % 251 for i in range(4096)))
    pointers = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
    with limits.machine_code(limits.COPY_CODE, *pointers) as stream:
        if stream is None:
            pytest.skip("no machine code runs here")
        stream(limits.address(target), limits.address(source), blocks)
    assert target[:size] == source[:size]
    assert target[size:] == bytes(4096 - size)


@pytest.mark.parametrize("wide, length", [(False, 5), (True, 6)])
def test_fma_loop_jumps_to_its_start(wide, length):
    code = limits.fma_code(wide)
    body = limits.ACCUMULATORS * length + 3
    assert len(code) == 3 + body + 2 + 4
    assert code[3 + body] == 0x75
    assert code[3 + body + 1] - 256 == -(body + 2)


@pytest.mark.parametrize("threads", [1, 3])
def test_limits_are_positive(monkeypatch, threads):
    monkeypatch.setattr(limits, "COPY_BYTES", 1 << 16)
    monkeypatch.setattr(limits, "FMA_TURNS", 100)
    assert limits.copy_bandwidth(threads) > 0
    rate = limits.fma_rate(threads)
    assert rate is None or rate > 0


def test_limits_without_machine_code(monkeypatch):
    monkeypatch.setattr(limits, "COPY_BYTES", 1 << 16)
    monkeypatch.setattr(limits, "fma_lanes", lambda: 0)
    assert limits.fma_rate(1) is None
    assert limits.copy_bandwidth(2) > 0


# ---- rounds


class Played:
    """A worker that answers from a list."""

    def __init__(self, name, threads, *answers):
        self.name = name
        self.threads = threads
        self.level = ""
        self.answers = list(answers)

    def measure(self, case):
        answer = self.answers.pop(0)
        return {"error": answer} if isinstance(answer, str) else {"seconds": answer}


def test_figures_are_medians_over_the_rounds(monkeypatch, capsys):
    monkeypatch.setattr(limits, "copy_bandwidth", lambda threads: 10.0 * threads)
    monkeypatch.setattr(limits, "fma_rate", lambda threads: None)
    workers = [
        Played("taeda", 1, 3.0, 1.0, 2.0),
        Played("torch", 1, 5.0, 4.0, 9.0),
        Played("taeda", 2, 6.0, 2.0, 4.0),
        Played("torch", 2, "no"),  # and is not asked again
    ]
    results, found = rounds.measure_cases(workers, ["add"], 3)
    assert results == {"": {"add": {("taeda", 1): 2.0, ("torch", 1): 5.0, ("taeda", 2): 4.0}}}
    assert found == {1: Limits(10.0, 0.0), 2: Limits(20.0, 0.0)}
    assert capsys.readouterr().err.count("torch: 8x8 add: no") == 1


def test_every_other_round_runs_backwards(monkeypatch):
    monkeypatch.setattr(limits, "copy_bandwidth", lambda threads: 1.0)
    monkeypatch.setattr(limits, "fma_rate", lambda threads: 1.0)
    asked = []
    workers = [Played(name, 1, 1.0, 1.0) for name in ("taeda", "torch")]
    for worker in workers:
        worker.measure = lambda case, name=worker.name: asked.append(name) or {"seconds": 1.0}
    rounds.measure_cases(workers, ["add"], 2)
    assert asked == ["taeda", "torch", "torch", "taeda"]


# ---- processes of their own


def test_peak_memory_of_a_training_step():
    found = peak.measure("taeda", "small_perceptron_step")
    assert 0 < found["imported"] <= found["peak"] < 1 << 30


def test_peak_memory_says_why_there_is_none():
    assert "no_such_case" in peak.measure("taeda", "no_such_case")["error"]


def test_peak_memory_is_not_the_parents():
    ballast = bytearray(600 << 20)  # more than a build with sanitizers takes, too
    assert peak.measure("taeda", "small_perceptron_step")["peak"] < len(ballast)


def run_module(*arguments):
    command = [sys.executable, "-m", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT)


def test_the_tool_measures_one_case():
    options = ["--cases", "add", "--frameworks", "taeda", "--rounds", "1", "--threads", "1"]
    done = run_module("benchmarks", *options)
    assert done.returncode == 0, done.stderr
    assert "## The machine's limits" in done.stdout
    assert "| 8x8 add | " in done.stdout


@pytest.mark.skipif(platform.machine() != "x86_64", reason="has one instruction set")
def test_the_tool_measures_several_instruction_sets():
    options = ["--cases", "add", "--frameworks", "taeda", "--rounds", "1", "--threads", "1"]
    done = run_module("benchmarks", *options, "--cpu", "v2", "v2")
    assert done.returncode == 0, done.stderr
    assert "Instruction set: v2 (SSE4.2)." in done.stdout


def test_the_tool_refuses_no_rounds():
    done = run_module("benchmarks", "--rounds", "0")
    assert done.returncode == 2
    assert "at least 1" in done.stderr


# ---- Fashion-MNIST


def write_idx(path, shape, content, kind=8):
    head = bytes([0, 0, kind, len(shape)]) + struct.pack(f">{len(shape)}I", *shape)
    with gzip.open(path, "wb") as file:
        file.write(head + bytes(content))


def test_read_idx(tmp_path):
    write_idx(tmp_path / "a.gz", (2, 3), range(6))
    shape, content = fashion.read_idx(tmp_path / "a.gz")
    assert shape == (2, 3)
    assert content == bytearray(range(6))
    write_idx(tmp_path / "none.gz", (0, 28, 28), b"")
    assert fashion.read_idx(tmp_path / "none.gz") == ((0, 28, 28), bytearray())


@pytest.mark.parametrize(
    "shape, content, kind, message",
    [
        ((6,), range(5), 8, "5 bytes of data, not 6"),
        ((6,), range(7), 8, "7 bytes of data, not 6"),
        ((6,), range(6), 13, "not an idx file of unsigned bytes"),
    ],
)
def test_read_idx_refuses_other_files(tmp_path, shape, content, kind, message):
    write_idx(tmp_path / "a.gz", shape, content, kind)
    with pytest.raises(ValueError, match=message):
        fashion.read_idx(tmp_path / "a.gz")


@pytest.mark.parametrize("content, message", [(b"", "not an idx"), (b"\0\0\x08\x02\0", "header")])
def test_read_idx_refuses_cut_files(tmp_path, content, message):
    with gzip.open(tmp_path / "a.gz", "wb") as file:
        file.write(content)
    with pytest.raises(ValueError, match=message):
        fashion.read_idx(tmp_path / "a.gz")


def write_images(folder, count=200):
    """Two classes that anyone can tell apart: dark images are 0 and bright ones 1."""
    for images, labels in fashion.FILES.values():
        classes = [i % 2 for i in range(count)]
        pixels = b"".join(bytes([20 + 200 * c]) * 784 for c in classes)
        write_idx(folder / images, (count, 28, 28), pixels)
        write_idx(folder / labels, (count,), classes)


def test_fashion_data_become_tensors(tmp_path):
    write_images(tmp_path, 4)
    x, y = fashion.load(taeda, "train", tmp_path)
    assert x.shape == (4, 1, 28, 28)
    assert x.dtype == taeda.float32
    assert y.tolist() == [0, 1, 0, 1]
    assert y.dtype == taeda.int64
    assert x[1, 0, 0, 0].item() == pytest.approx((220 / 255 - 0.286) / 0.353)


def test_fashion_network_has_the_stated_size():
    assert sum(p.numel() for p in fashion.network(taeda).parameters()) == 207_018


def test_fashion_training_stops_at_its_target(tmp_path):
    write_images(tmp_path)
    sets = [fashion.load(taeda, part, tmp_path) for part in ("train", "t10k")]
    found = fashion.train(taeda, *sets, most_epochs=12)
    assert found["accuracy"] >= 0.9
    assert found["seconds"] > 0
    assert 1 <= found["epochs"] <= 12
    assert "after 1 epochs" in fashion.train(taeda, *sets, most_epochs=1, target=1.1)["error"]


def test_fashion_is_skipped_with_a_reason(tmp_path, monkeypatch):
    assert "install Debian's package dataset-fashion-mnist" in fashion.why_absent(tmp_path)
    write_images(tmp_path, 2)
    assert fashion.why_absent(tmp_path) is None
    monkeypatch.setattr(fashion, "why_absent", lambda: "no files")
    assert "Skipped: no files." in driver.fashion_lines(["taeda"], [1])


# ---- the plot


def test_plot_is_small_and_the_same_each_time(tmp_path):
    pytest.importorskip("matplotlib")
    ratios = {g: {1: [0.5, 2.0, 8.0] * 15, 2: [1.0, 3.0] * 20} for g in driver.TIMED_GROUPS}
    ratios["files"] = {2: [4.0]}
    plot.write(tmp_path / "a.svg", ratios)
    plot.write(tmp_path / "b.svg", ratios)
    text = (tmp_path / "a.svg").read_text()
    assert text == (tmp_path / "b.svg").read_text()
    assert len(text) < 100_000
    for word in [*driver.TIMED_GROUPS, "1 thread", "2 threads"]:
        assert f">{word}</text>" in text


def test_without_matplotlib_there_is_no_plot(tmp_path, monkeypatch, capsys):
    old = tmp_path / "performance.svg"
    old.write_text("another run")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert driver.write_plot(tmp_path / "performance.md", {"memory": {1: [2.0]}}) == []
    assert "matplotlib is not installed" in capsys.readouterr().err
    assert not old.exists()
