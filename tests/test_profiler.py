"""The profiler: what it records, how it adds up, and that it is gone when its block has ended."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

import taeda
from taeda.profiler import (
    ProfilerAction,
    ProfilerActivity,
    profile,
    record_function,
    schedule,
    supported_activities,
    tensorboard_trace_handler,
)


def names(prof: profile) -> list[str]:
    return [e.name for e in prof.events()]


def test_operations_ranges_and_backward() -> None:
    x = taeda.ones(3, 4, requires_grad=True)
    with profile(record_shapes=True) as prof:
        with record_function("forward"):
            y = (x @ x.t()).relu().sum()
        y.backward()
    y.exp()
    assert "aten::exp" not in names(prof)
    forward = prof.events()[0]
    assert forward.name == "forward" and forward.is_user_annotation
    matmul = next(e for e in prof.events() if e.name == "aten::matmul")
    assert matmul.cpu_parent is forward and matmul.input_shapes == [[3, 4], [4, 3]]
    assert names(prof).count("aten::mm") >= 2  # forward and backward
    assert all(0 <= e.self_cpu_time_total <= e.cpu_time_total for e in prof.events())
    inside = [e for e in prof.events() if e.cpu_parent is forward]
    assert all(forward.start <= e.start and e.end <= forward.end for e in inside)


def test_sums_and_table() -> None:
    x = taeda.ones(1000)
    with profile(record_shapes=True, profile_memory=True) as prof:
        for n in (10, 20, 20):
            kept = x[:n] * 2
    sums = {e.key: e for e in prof.key_averages()}
    assert sums["aten::mul"].count == 3
    total = sum(e.self_cpu_time_total for e in prof.events())
    assert prof.events().total_average().self_cpu_time_total == pytest.approx(total)
    shaped = prof.key_averages(group_by_input_shape=True)
    assert sorted(e.count for e in shaped if e.key == "aten::mul") == [1, 2]
    table = prof.key_averages().table(sort_by="cpu_time_total", row_limit=1)
    assert "Self CPU Mem" in table and "Self CPU time total" in table
    assert len(table.splitlines()) == 6
    with pytest.raises(AttributeError, match="sort_by"):
        prof.key_averages().table(sort_by="nothing")
    assert kept.numel() == 20


def test_memory() -> None:
    with profile(profile_memory=True) as prof:
        kept = taeda.zeros(1 << 18)
    made = next(e for e in prof.events() if e.name == "aten::zeros")
    assert made.cpu_memory_usage >= kept.nbytes


def test_errors_end_their_events() -> None:
    with profile() as prof:
        with pytest.raises(RuntimeError):
            taeda.ones(2) @ taeda.ones(3)
        taeda.ones(1).exp()
    exp = next(e for e in prof.events() if e.name == "aten::exp")
    assert exp.cpu_parent is None and all(e.end >= e.start > 0 for e in prof.events())


def test_schedule_hands_over_each_cycle() -> None:
    records = []
    plan = schedule(skip_first=1, wait=1, warmup=1, active=2, repeat=1)
    assert [plan(i) for i in range(6)] == [
        ProfilerAction.NONE,
        ProfilerAction.NONE,
        ProfilerAction.WARMUP,
        ProfilerAction.RECORD,
        ProfilerAction.RECORD_AND_SAVE,
        ProfilerAction.NONE,
    ]
    with profile(schedule=plan, on_trace_ready=lambda p: records.append(names(p))) as prof:
        for _ in range(8):
            taeda.ones(1).exp()
            prof.step()
    assert len(records) == 1 and records[0].count("aten::exp") == 2
    assert [n for n in records[0] if n.startswith("Profiler")] == [
        "ProfilerStep#3",
        "ProfilerStep#4",
    ]
    for wrong in ({"active": 0}, {"wait": -1}):
        with pytest.raises(AssertionError):
            schedule(**{"wait": 0, "warmup": 0, "active": 1, **wrong})


def test_chrome_trace(tmp_path: Path) -> None:
    with profile(record_shapes=True, on_trace_ready=tensorboard_trace_handler(str(tmp_path))) as p:
        taeda.ones(2, 3).exp()
    p.export_chrome_trace(str(tmp_path / "trace.json"))
    found = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    exp = next(e for e in found if e["name"] == "aten::exp")
    assert exp["ph"] == "X" and exp["dur"] > 0 and exp["args"] == {"Input Dims": [[2, 3]]}
    assert len(list(tmp_path.glob("*.pt.trace.json"))) == 1


def test_one_profiler_a_thread() -> None:
    with profile() as prof:
        with pytest.raises(RuntimeError, match="running in this thread"), profile():
            pass
        with pytest.raises(AssertionError, match="still running"):
            prof.events()
        other = threading.Thread(target=lambda: taeda.ones(1).exp())
        other.start()
        other.join()
    assert "aten::exp" not in names(prof)


def test_ranges_that_outlive_a_record() -> None:
    with profile():
        left = record_function("left")
        left.__enter__()
    with profile() as prof, record_function("own"):
        left.__exit__(None, None, None)
        taeda.ones(1).exp()
    exp = next(e for e in prof.events() if e.name == "aten::exp")
    assert exp.cpu_parent is not None and exp.cpu_parent.name == "own"


def test_arguments() -> None:
    assert supported_activities() == {ProfilerActivity.CPU}
    with pytest.raises(ValueError, match="CPU alone"):
        profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])
    with pytest.raises(TypeError):
        profile(with_stack=True)  # type: ignore[call-arg]

    @record_function("named")
    def double(x: taeda.Tensor) -> taeda.Tensor:
        return x + x

    with taeda.autograd.profiler.profile() as prof:
        double(taeda.ones(1))
    assert "named" in prof.table()
    with taeda.autograd.profiler.profile(enabled=False) as off:
        double(taeda.ones(1))
    assert not off.function_events
