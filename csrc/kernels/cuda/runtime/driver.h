// The driver's library, libcuda.so.1, loaded when a device is first asked for. Its functions and
// numbers are declared here, so that neither building the runtime nor running it needs the toolkit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/error.h"

struct CUctx_st;
struct CUevent_st;
struct CUgraph_st;
struct CUgraphExec_st;
struct CUstream_st;

namespace taeda::cuda {

using ContextHandle = CUctx_st*;
using EventHandle = CUevent_st*;
using GraphHandle = CUgraph_st*;
using RunnableGraph = CUgraphExec_st*;
using StreamHandle = CUstream_st*;  // null: the default stream
using DevicePointer = unsigned long long;
using MemoryHandle = unsigned long long;  // physical memory, which is mapped to addresses

// Results that are told apart; the driver has a text for all of them.
enum Result : int {
  kSuccess = 0,
  kOutOfMemory = 2,
  kNoDevice = 100,
  kNotReady = 600,
  kPeerAccessAlreadyEnabled = 704,
};

// In which threads what no graph can record is an error while one is recorded.
enum CaptureMode : int { kAllThreads = 0, kThisThread = 1, kNoThread = 2 };

enum Attribute : int {
  kWarpSize = 10,
  kMultiprocessors = 16,
  kIntegrated = 18,
  kL2CacheSize = 38,
  kMostThreadsPerMultiprocessor = 39,
  kCapabilityMajor = 75,
  kCapabilityMinor = 76,
  kMultiGpuBoard = 84,
  kMostSharedMemoryPerBlock = 97,
};

enum PointerAttribute : int { kMemoryType = 2, kDeviceOrdinal = 9 };
inline constexpr unsigned kHostMemory = 1;  // of kMemoryType

// CUmemLocation, CUmemAllocationProp and CUmemAccessDesc.
struct MemoryLocation {
  int type, id;
};
struct MemoryProperties {
  int type, handle_types = 0;
  MemoryLocation location;
  void* of_windows = nullptr;
  uint8_t compression = 0, rdma = 0;
  uint16_t usage = 0;
  uint8_t reserved[4] = {};
};
struct MemoryAccess {
  MemoryLocation location;
  int flags;
};

struct SharedEvent {  // CUipcEventHandle: an event's name in other processes
  char name[64];
};

// The oldest version whose driver runs what this library is compiled with: 13.0.
inline constexpr int kLeastVersion = 13000;

struct Driver {
  template <class... A> using Function = int (*)(A...);

  Function<unsigned> init;
  Function<int*> version;
  Function<int, const char**> error_name, error_text;

  Function<int*> device_count;
  Function<int*, int> device_get;
  Function<char*, int, int> device_name;
  Function<int*, int, int> device_attribute;  // value, Attribute, device
  Function<size_t*, int> device_memory;
  Function<int*, int, int> can_access_peer;
  Function<ContextHandle, unsigned> enable_peer_access;  // of the current context to this one's

  Function<ContextHandle*, int> retain_context;
  Function<ContextHandle> set_context;
  Function<> synchronize_context;

  Function<size_t*, size_t*> memory_info;  // free, total
  Function<DevicePointer*, size_t> allocate;
  Function<DevicePointer> deallocate;
  Function<void**, size_t, unsigned> allocate_host;
  Function<void*> deallocate_host;
  Function<void*, size_t, unsigned> register_host;
  Function<void*> unregister_host;
  Function<void*, int, DevicePointer> pointer_attribute;  // value, PointerAttribute, address

  // Size, alignment, wanted address, flags.
  Function<DevicePointer*, size_t, size_t, DevicePointer, unsigned long long> reserve_addresses;
  Function<DevicePointer, size_t> free_addresses, unmap;
  Function<MemoryHandle*, size_t, const MemoryProperties*, unsigned long long> create_memory;
  Function<MemoryHandle> release_memory;
  // Address, size, offset in the memory, memory, flags.
  Function<DevicePointer, size_t, size_t, MemoryHandle, unsigned long long> map;
  Function<DevicePointer, size_t, const MemoryAccess*, size_t> set_access;

  Function<DevicePointer, DevicePointer, size_t, StreamHandle> copy;  // to, from: any memory
  Function<DevicePointer, unsigned char, size_t, StreamHandle> fill_bytes;

  Function<StreamHandle*, unsigned, int> make_stream;  // flags, priority
  Function<StreamHandle> destroy_stream, synchronize_stream, query_stream;
  Function<StreamHandle, EventHandle, unsigned> wait_event;
  Function<int*, int*> priorities;  // the least urgent, the most urgent
  Function<StreamHandle, void (*)(void*), void*> call_host;

  Function<EventHandle*, unsigned> make_event;
  Function<EventHandle> destroy_event, synchronize_event, query_event;
  Function<EventHandle, StreamHandle> record_event;
  Function<SharedEvent*, EventHandle> share_event;
  Function<EventHandle*, SharedEvent> open_event;
  Function<float*, EventHandle, EventHandle> elapsed;

  Function<StreamHandle, int> begin_capture;  // mode
  Function<StreamHandle, GraphHandle*> end_capture;
  Function<StreamHandle, int*> is_capturing;
  Function<int*> exchange_capture_mode;  // this thread's; CaptureMode
  Function<RunnableGraph*, GraphHandle, unsigned long long> instantiate;
  Function<RunnableGraph, StreamHandle> launch_graph;
  Function<GraphHandle> destroy_graph;
  Function<RunnableGraph> destroy_runnable;

  Function<> start_profiler, stop_profiler;
};

// The driver, initialised. Error where there is none, it is too old or finds no device, or where
// the process was forked from one that used it.
const Driver& driver();
// Why driver() would fail; empty where it would not.
std::string why_no_driver();

// Error with the driver's text unless `result` is kSuccess; `what` was tried.
[[noreturn]] void driver_failed(int result, const char* what);
inline void succeed(int result, const char* what) {
  if (result != kSuccess) [[unlikely]]
    driver_failed(result, what);
}

}  // namespace taeda::cuda
