#include "kernels/cuda/runtime/driver.h"

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>

namespace taeda::cuda {
namespace {

constexpr const char* kLibrary = "libcuda.so.1";

std::atomic<bool> used = false, forked = false;

// A driver that could be loaded, or why not.
struct Loaded {
  Driver functions{};
  std::string why_not;

  Loaded() {
    void* library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      why_not = str("there is no NVIDIA driver (", dlerror(), ")");
      return;
    }
    find_all(library);
    if (why_not.empty()) start();
  }

 private:
  template <class F> void find(void* library, F& to, const char* name) {
    to = reinterpret_cast<F>(dlsym(library, name));
    if (!to && why_not.empty()) why_not = str("the NVIDIA driver is too old: it has no ", name);
  }

  void find_all(void* library) {
    Driver& d = functions;
    const auto get = [&](auto& to, const char* name) { find(library, to, name); };
    get(d.init, "cuInit");
    get(d.version, "cuDriverGetVersion");
    get(d.error_name, "cuGetErrorName");
    get(d.error_text, "cuGetErrorString");
    get(d.device_count, "cuDeviceGetCount");
    get(d.device_get, "cuDeviceGet");
    get(d.device_name, "cuDeviceGetName");
    get(d.device_attribute, "cuDeviceGetAttribute");
    get(d.device_memory, "cuDeviceTotalMem_v2");
    get(d.can_access_peer, "cuDeviceCanAccessPeer");
    get(d.enable_peer_access, "cuCtxEnablePeerAccess");
    get(d.retain_context, "cuDevicePrimaryCtxRetain");
    get(d.set_context, "cuCtxSetCurrent");
    get(d.synchronize_context, "cuCtxSynchronize");
    get(d.memory_info, "cuMemGetInfo_v2");
    get(d.allocate, "cuMemAlloc_v2");
    get(d.deallocate, "cuMemFree_v2");
    get(d.allocate_host, "cuMemHostAlloc");
    get(d.deallocate_host, "cuMemFreeHost");
    get(d.register_host, "cuMemHostRegister_v2");
    get(d.unregister_host, "cuMemHostUnregister");
    get(d.pointer_attribute, "cuPointerGetAttribute");
    get(d.reserve_addresses, "cuMemAddressReserve");
    get(d.free_addresses, "cuMemAddressFree");
    get(d.create_memory, "cuMemCreate");
    get(d.release_memory, "cuMemRelease");
    get(d.map, "cuMemMap");
    get(d.unmap, "cuMemUnmap");
    get(d.set_access, "cuMemSetAccess");
    get(d.copy, "cuMemcpyAsync");
    get(d.fill_bytes, "cuMemsetD8Async");
    get(d.make_stream, "cuStreamCreateWithPriority");
    get(d.destroy_stream, "cuStreamDestroy_v2");
    get(d.synchronize_stream, "cuStreamSynchronize");
    get(d.query_stream, "cuStreamQuery");
    get(d.wait_event, "cuStreamWaitEvent");
    get(d.priorities, "cuCtxGetStreamPriorityRange");
    get(d.call_host, "cuLaunchHostFunc");
    get(d.make_event, "cuEventCreate");
    get(d.destroy_event, "cuEventDestroy_v2");
    get(d.synchronize_event, "cuEventSynchronize");
    get(d.query_event, "cuEventQuery");
    get(d.record_event, "cuEventRecord");
    get(d.share_event, "cuIpcGetEventHandle");
    get(d.open_event, "cuIpcOpenEventHandle");
    get(d.elapsed, "cuEventElapsedTime_v2");
    get(d.begin_capture, "cuStreamBeginCapture_v2");
    get(d.end_capture, "cuStreamEndCapture");
    get(d.is_capturing, "cuStreamIsCapturing");
    get(d.exchange_capture_mode, "cuThreadExchangeStreamCaptureMode");
    get(d.instantiate, "cuGraphInstantiateWithFlags");
    get(d.launch_graph, "cuGraphLaunch");
    get(d.destroy_graph, "cuGraphDestroy");
    get(d.destroy_runnable, "cuGraphExecDestroy");
    get(d.start_profiler, "cuProfilerStart");
    get(d.stop_profiler, "cuProfilerStop");
  }

  void start() {
    int version = 0, count = 0;
    if (functions.version(&version) == kSuccess && version < kLeastVersion) {
      why_not = str("the NVIDIA driver is for CUDA ", version / 1000, ".", version % 1000 / 10,
                    ", but ", kLeastVersion / 1000, ".", kLeastVersion % 1000 / 10,
                    " or newer is needed: please update it");
      return;
    }
    int result = functions.init(0);
    if (result == kSuccess) result = functions.device_count(&count);
    if (result == kNoDevice || (result == kSuccess && count == 0)) {
      why_not = "the NVIDIA driver finds no GPU";
    } else if (result != kSuccess) {
      const char* text = nullptr;
      functions.error_text(result, &text);
      why_not = str("the NVIDIA driver cannot be started: ", text ? text : "no reason given", " (",
                    result, ")");
    } else {
      used = true;
      pthread_atfork(nullptr, nullptr, [] { forked = true; });
    }
  }
};

const Loaded& loaded() {
  static const Loaded& one = *new Loaded;  // memory is given back later than static objects die
  return one;
}

}  // namespace

std::string why_no_driver() {
  if (forked) {
    return "this process was forked from one that had used CUDA, which does not survive that; "
           "start processes with the method 'spawn'";
  }
  return loaded().why_not;
}

const Driver& driver() {
  if (forked || !loaded().why_not.empty()) [[unlikely]]
    fail("cuda: ", why_no_driver());
  return loaded().functions;
}

void driver_failed(int result, const char* what) {
  const Driver& d = loaded().functions;
  const char *name = nullptr, *text = nullptr;
  d.error_name(result, &name);
  d.error_text(result, &text);
  fail("cuda: ", what, ": ", text ? text : "unknown error", " (", name ? name : "", " ", result,
       "). Errors of kernels are found by later calls; CUDA_LAUNCH_BLOCKING=1 finds them at once");
}

}  // namespace taeda::cuda
