"""The functions of CUDA's runtime library that programs call by way of `cuda.cudart()`."""

from __future__ import annotations

from tests.cuda.test_runtime import error, printed


def test_memory_of_others_is_pinned(libraries):
    code = """
rt = cudart = cuda.cudart()
x = torch.ones(1024)
print(rt.cudaMemGetInfo(0) == cuda.mem_get_info(0), x.is_pinned())
done = rt.cudaHostRegister(x.data_ptr(), x.nbytes, 0)
print(done == rt.cudaError.success, int(done), done.value, x.is_pinned(), cuda.check_error(done))
cuda.set_sync_debug_mode("error")
y = x.to("cuda", non_blocking=True); x.fill_(2)
cuda.set_sync_debug_mode(0); print(y[3].item())
again = rt.cudaHostRegister(x.data_ptr(), x.nbytes, 0)
try: cuda.check_error(again)
except cuda.CudaError as e: print(int(again), isinstance(e, RuntimeError), e)
print(int(rt.cudaHostUnregister(x.data_ptr())), x.is_pinned(), int(rt.cudaHostUnregister(x.data_ptr())))
print(rt.cudaGetErrorString(rt.cudaError(2)), cuda.cudaStatus.SUCCESS, cuda.cudaStatus.ERROR_NOT_READY)
"""
    assert printed(libraries, code) == [
        "True False",
        "True 0 0 True None",
        "2.0",
        "712 True an error of the stub (712)",
        "0 False 713",
        "out of memory 0 34",
    ]


def test_streams_and_profilers(libraries):
    code = """
import ctypes
rt, handle = cuda.cudart(), ctypes.c_void_p()
print(int(rt.cudaStreamCreate(ctypes.addressof(handle))), bool(handle.value))
with cuda.stream(cuda.ExternalStream(handle.value)): x = torch.ones(2, device="cuda") * 3
cuda.synchronize(); print(x.tolist(), int(rt.cudaStreamDestroy(handle.value)))
cuda.check_error(rt.cudaProfilerStart()); cuda.check_error(rt.cudaProfilerStop())
"""
    expected = ["0 True", "[3.0, 3.0] 0", "profiler starts", "profiler stops"]
    assert sorted(printed(libraries, code)) == sorted(expected)


def test_without_a_device(libraries):
    assert "finds no GPU" in error(libraries, "cuda.cudart()", STUB_DEVICES="0")
    code = "cuda.check_error(0)"
    assert error(libraries, code, TAEDA_CUDA_LIBRARY="").startswith("AssertionError: cuda.cudart")
