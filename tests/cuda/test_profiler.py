"""The profiler's record of what devices do, on a stub of CUPTI."""

from __future__ import annotations

import json
import shutil

from tests.cuda.test_runtime import error, printed


def with_cupti(libraries) -> dict[str, str]:
    return {"LD_LIBRARY_PATH": f"{libraries}:{libraries / 'cupti'}"}


def test_kernels_are_recorded_with_their_operations(libraries, tmp_path):
    code = f"""
from taeda.profiler import ProfilerActivity, profile, record_function, supported_activities
print(len(supported_activities()))
x = torch.ones(4, device="cuda"); host = torch.ones(4)
with profile() as p:
    with record_function("step"):
        y = x.exp() + 1
    y.copy_(host)
    z = host + 1
events = p.events()
exp = next(e for e in events if e.name == "aten::exp"); step = next(e for e in events if e.name == "step")
print(exp.self_cuda_time_total, exp.device_time_total, step.self_device_time_total, step.device_time_total, len(exp.kernels))
kernels = [e for e in events if e.on_device]
print([e.name for e in kernels], [e.self_device_time_total for e in kernels], kernels[0].cpu_time_total)
print(kernels[0].kernels[0].shape, kernels[-1].kernels[0].bytes, exp.start <= kernels[0].start)
averages = p.key_averages()
print([a.count for a in averages if a.on_device], averages.self_cuda_time_total)
table = averages.table(sort_by="cuda_time_total")
print("Self CUDA" in table, "kernel(float)" in table, "Self CUDA time total: 2.500us" in table)
p.export_chrome_trace({str(tmp_path / "trace.json")!r})
with profile(activities=[ProfilerActivity.CPU]) as q: x.exp()
print(any(e.on_device for e in q.events()), "CUDA" in q.key_averages().table())
with profile() as r: x.exp()
print(sum(e.on_device for e in r.events()))
"""
    assert printed(libraries, code, **with_cupti(libraries)) == [
        "2",
        "1.0 1.0 0 2.0 1",
        "['kernel(float)', 'kernel(float)', 'Memcpy HtoD'] [1.0, 1.0, 0.5] 0.0",
        "[1, 2, 3, 4, 5, 6] 16 True",
        "[2, 1] 2.5",
        "True True True",
        "False False",
        "1",
    ]
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    kinds = [e["cat"] for e in events]
    assert kinds.count("kernel") == 2 and kinds.count("gpu_memcpy") == 1
    kernel = next(e for e in events if e["cat"] == "kernel")
    assert kernel["args"]["grid"] == [1, 2, 3] and kernel["tid"] == 7 and kernel["dur"] == 1.0


def test_without_cupti(libraries, tmp_path):
    # A library of the same name, without its functions, hides one that may be installed.
    shutil.copy(libraries / "libcuda.so.1", tmp_path / "libcupti.so.13")
    hidden = {"LD_LIBRARY_PATH": f"{libraries}:{tmp_path}"}
    code = """
from taeda.profiler import profile, supported_activities
print(len(supported_activities()))
with profile() as p: torch.ones(2, device="cuda").exp()
print(any(e.on_device for e in p.events()))
"""
    assert printed(libraries, code, **hidden) == ["1", "False"]
    code = "from taeda.profiler import *; profile(activities=[ProfilerActivity.CUDA]).start()"
    assert "pip install nvidia-cuda-cupti" in error(libraries, code, **hidden)
    assert "no CUDA device" in error(libraries, code, STUB_DEVICES="0")


NVTX = """
def push_range(message): print("push", message)
def pop_range(): print("pop")
def start_range(message): return ("range", message)
def end_range(begun): print("end", begun)
def mark(message): print("mark", message)
"""


def test_profilers(libraries, tmp_path):
    """The stub says what the driver is told; a stand-in for the package nvtx what it is told."""
    (tmp_path / "nvtx.py").write_text(NVTX)
    code = f"""
import sys
with cuda.profiler.profile(): print("work", flush=True)
nvtx = cuda.nvtx
sys.modules["nvtx"] = None
try: nvtx.mark("a")
except RuntimeError as e: print(e)
del sys.modules["nvtx"]
sys.path.insert(0, {str(tmp_path)!r})
print(nvtx.range_push("a"), nvtx.range_push("b"), nvtx.range_pop(), nvtx.range_pop())
with nvtx.range("step {{}}", 3): nvtx.mark("here")
first = nvtx.range_start("long"); nvtx.range_end(first)
try: nvtx.range_end(first)
except RuntimeError as e: print(e)
"""
    assert printed(libraries, code) == [
        "profiler starts",
        "work",
        "profiler stops",
        "cuda.nvtx.mark: the package nvtx is needed: pip install nvtx",
        "push a",
        "push b",
        "pop",
        "pop",
        "0 1 1 0",
        "push step 3",
        "mark here",
        "pop",
        "end ('range', 'long')",
        "cuda.nvtx.range_end: no range has the number 1",
    ]


def test_operations_are_marked(libraries, tmp_path):
    (tmp_path / "nvtx.py").write_text(NVTX)
    code = f"""
import sys
emit, P = torch.autograd.profiler.emit_nvtx, torch.profiler
x = torch.ones(2, 3, device="cuda", requires_grad=True)
try: emit().__enter__()
except RuntimeError as e: print(e)
sys.path.insert(0, {str(tmp_path)!r})
with emit(record_shapes=True):
    with P.record_function("mine"): y = x.mul(x[0])
print("---")
with emit() as e:
    try: x.mul(torch.ones(5, device="cuda"))
    except RuntimeError: print("failed")
    try: e.__enter__()
    except RuntimeError as error: print(error)
    try: P.profile(activities=[P.ProfilerActivity.CPU]).start()
    except RuntimeError as error: print(error)
x.exp(); print("---")
with emit(): y.backward(torch.ones_like(y))
with emit(enabled=False): x.exp()
with P.profile(activities=[P.ProfilerActivity.CPU]) as prof:
    with P.record_function("again"): x.exp()
print([event.name for event in prof.events()])
"""
    lines = printed(libraries, code)
    assert lines[0] == "cuda.nvtx.range_push: the package nvtx is needed: pip install nvtx"
    ends = [i for i, line in enumerate(lines) if line == "---"]
    first, second, third = lines[1 : ends[0]], lines[ends[0] + 1 : ends[1]], lines[ends[1] + 1 :]
    assert first[0] == "push mine, sizes = []" and first[-1] == "pop"
    assert "push aten::mul, sizes = [[2, 3], [3]]" in first
    assert "push aten::mul" in second and "failed" in second
    assert "emit_nvtx: it is entered already" in second
    assert "profile(): a profiler is running in this thread already" in second
    assert any(line.startswith("push aten::") for line in third)
    for part in (first, second, third):
        depths = [line.startswith("push ") - (line == "pop") for line in part]
        assert sum(depths) == 0 and all(sum(depths[: i + 1]) >= 0 for i in range(len(depths)))
    assert lines[-1] == "['again', 'aten::exp']"
