"""Events that processes share, meters, and what the library is compiled for."""

from __future__ import annotations

from tests.cuda.test_runtime import printed


def test_events_of_other_processes(libraries):
    """The stub knows them within one process."""
    code = """
import ctypes
e = cuda.Event(interprocess=True)
print(e.cuda_event, e.device, len(e.ipc_handle()), e.device)
other = cuda.Event.from_ipc_handle("cuda:0", e.ipc_handle())
s = cuda.Stream()
with cuda.stream(s): x = torch.ones(1000, device="cuda") * 2; e.record()
print(other.query(), other.cuda_event == e.cuda_event == e._as_parameter_.value)
other.synchronize(); print(e.query(), x.sum().item(), s._as_parameter_.value == s.cuda_stream)
del e; print(other.query(), cuda.Stream.priority_range())
def fails(f):
    try: f()
    except Exception as error: return type(error).__name__, str(error)[:60]
print(fails(cuda.Event().ipc_handle))
print(fails(lambda: cuda.Event.from_ipc_handle(0, b"short"))[0])
print(fails(cuda.Event(enable_timing=True, interprocess=True).record)[0])
"""
    assert printed(libraries, code) == [
        "0 None 64 cuda:0",
        "False True",
        "True 2000.0 True",
        "True (0, -5)",
        "('RuntimeError', 'cuda.Event.ipc_handle: the event needs interprocess=True')",
        "TypeError",
        "RuntimeError",
    ]


NVML = """
from types import SimpleNamespace as N
NVML_CLOCK_SM, NVML_TEMPERATURE_GPU = 1, 0
def nvmlInit(): print("init")
def nvmlDeviceGetHandleByIndex(i): return ("index", i)
def nvmlDeviceGetHandleByUUID(name): return ("uuid", name)
def nvmlDeviceGetClockInfo(h, what): return 1980 + what
def nvmlDeviceGetMemoryInfo(h): return N(used=123)
def nvmlDeviceGetUtilizationRates(h): return N(gpu=70, memory=30)
def nvmlDeviceGetPowerUsage(h): return 350000
def nvmlDeviceGetTemperature(h, what): return 40 + what
def nvmlDeviceGetComputeRunningProcesses(h):
    return [N(pid=7, usedGpuMemory=3 << 20), N(pid=8, usedGpuMemory=None)] if h == ("index", 1) else [N(pid=9, usedGpuMemory=0)] if h[0] == "uuid" else []
"""


def test_meters(libraries, tmp_path):
    """A stand-in for the package nvidia-ml-py."""
    (tmp_path / "pynvml.py").write_text(NVML)
    code = f"""
import sys
sys.modules["pynvml"] = None
try: cuda.temperature()
except ModuleNotFoundError as e: print(e)
del sys.modules["pynvml"]
sys.path.insert(0, {str(tmp_path)!r})
print(cuda.clock_rate(), cuda.device_memory_used(), cuda.memory_usage(1), cuda.power_draw("cuda:1"), cuda.temperature(), cuda.utilization())
print(cuda.list_gpu_processes(1))
print(cuda.list_gpu_processes())
import os
os.environ["CUDA_VISIBLE_DEVICES"] = "1,GPU-abc"
print(cuda.list_gpu_processes(0).splitlines()[1], cuda.list_gpu_processes(1).splitlines()[1])
"""
    assert printed(libraries, code) == [
        "cuda.temperature: the package nvidia-ml-py is needed: pip install nvidia-ml-py",
        "init",
        "1981 123 30 350000 40 70",
        "GPU:1",
        "process          7 uses        3.000 MB GPU memory",
        "process          8 uses        0.000 MB GPU memory",
        "GPU:0",
        "no processes are running",
        "process          7 uses        3.000 MB GPU memory process          9 uses        0.000 MB GPU memory",
    ]


def test_what_it_is_compiled_for(libraries):
    code = """
print(cuda.get_arch_list(), cuda.get_gencode_flags())
s = cuda.Stream(); print(s.__cuda_stream__() == (0, s.cuda_stream))
"""
    assert printed(libraries, code) == [
        "['sm_80', 'sm_90a', 'compute_80'] -gencode compute=compute_80,code=sm_80 -gencode "
        "compute=compute_90a,code=sm_90a -gencode compute=compute_80,code=compute_80",
        "True",
    ]
    assert printed(libraries, "print(cuda.get_arch_list())", STUB_DEVICES="0") == ["[]"]
