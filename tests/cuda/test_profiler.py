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
