// What python/taeda/cuda calls, by ctypes: devices, memory, streams and events. Every function
// returns 0, or what kind of error taeda_cuda_error() has the text of.
#include "kernels/cuda/runtime/api.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "kernels/cuda/conv/cudnn.h"
#include "kernels/cuda/gemm/cublas.h"
#include "kernels/cuda/random/recorded.h"
#include "kernels/cuda/runtime/allocator.h"
#include "kernels/cuda/runtime/device.h"
#include "kernels/cuda/runtime/libraries.h"
#include "kernels/cuda/runtime/pinned.h"
#include "kernels/cuda/runtime/sync_debug.h"

namespace taeda::cuda {

std::string& last_error() {
  thread_local std::string text;
  return text;
}

size_t copy_text(const std::string& text, char* to, size_t room) {
  if (room > 0) {
    const size_t n = std::min(room - 1, text.size());
    std::memcpy(to, text.data(), n);
    to[n] = 0;
  }
  return text.size();
}

}  // namespace taeda::cuda

using namespace taeda::cuda;
using taeda::check;

#pragma GCC visibility push(default)
extern "C" {

const char* taeda_cuda_error() { return last_error().c_str(); }

// Why there is no device, as text of at most `room` bytes; its length, 0 where there are devices.
size_t taeda_cuda_why_not(char* text, size_t room) {
  return copy_text(why_no_driver(), text, room);
}

// Architectures, such as "sm_90 compute_80".
const char* taeda_cuda_compiled_for() { return TAEDA_CUDA_COMPILED_FOR; }

// ---- libraries ----
void taeda_cuda_library_folders(const char* folders) { set_library_folders(folders); }
void taeda_cuda_allow_tf32(int allowed) { allow_tf32(allowed); }
void taeda_cuda_allow_conv_tf32(int allowed) { allow_conv_tf32(allowed); }
void taeda_cuda_use_cudnn(int used) { use_cudnn(used); }
size_t taeda_cuda_cudnn_version() { return cudnn_version(); }  // 0 where it is not installed

// ---- devices ----
int taeda_cuda_device_count() { return device_count(); }
int taeda_cuda_current_device() { return current_device(); }
int taeda_cuda_set_device(int index) {
  return guarded([=] { set_current_device(index); });
}
int taeda_cuda_synchronize(int index) {
  return guarded([=] { synchronize_device(index); });
}
// `mode`: 0 nothing, 1 calls `warn`, 2 an error, whenever the host waits without being asked to.
void taeda_cuda_set_sync_debug_mode(int mode, void (*warn)()) {
  set_sync_debug(SyncDebug{mode}, warn);
}
// The python/taeda/cuda/_runtime.py class Properties.
struct TaedaCudaProperties {
  char name[256];
  uint64_t total_memory;
  int major, minor, multiprocessors, threads_per_multiprocessor, warp_size, l2_cache_size,
      shared_memory_per_block, is_integrated, is_multi_gpu_board;
};
int taeda_cuda_properties(int index, TaedaCudaProperties* p) {
  return guarded([=] {
    const DeviceState& state = use_device(index);
    const Driver& d = driver();
    size_t bytes = 0;
    succeed(d.device_name(p->name, sizeof p->name, state.handle), "asking for a device's name");
    succeed(d.device_memory(&bytes, state.handle), "asking for a device's memory");
    p->total_memory = bytes;
    const std::pair<int*, Attribute> wanted[] = {
        {&p->major, kCapabilityMajor},
        {&p->minor, kCapabilityMinor},
        {&p->multiprocessors, kMultiprocessors},
        {&p->threads_per_multiprocessor, kMostThreadsPerMultiprocessor},
        {&p->warp_size, kWarpSize},
        {&p->l2_cache_size, kL2CacheSize},
        {&p->shared_memory_per_block, kMostSharedMemoryPerBlock},
        {&p->is_integrated, kIntegrated},
        {&p->is_multi_gpu_board, kMultiGpuBoard}};
    for (const auto& [to, what] : wanted)
      succeed(d.device_attribute(to, what, state.handle), "asking for a device's attribute");
  });
}
// What NVIDIA's profilers record where they were told to wait for that.
int taeda_cuda_profile(int index, int on) {
  return guarded([=] {
    use_device(index);
    const Driver& d = driver();
    succeed(on ? d.start_profiler() : d.stop_profiler(), "telling profilers what to record");
  });
}
int taeda_cuda_can_access_peer(int index, int peer, int* can) {
  return guarded([=] {
    succeed(driver().can_access_peer(can, device(index).handle, device(peer).handle),
            "asking about peer access");
  });
}

// ---- memory ----
int taeda_cuda_memory_info(int index, uint64_t* free, uint64_t* total) {
  return guarded([=] {
    use_device(index);
    size_t f = 0, t = 0;
    succeed(driver().memory_info(&f, &t), "asking for free memory");
    *free = f;
    *total = t;
  });
}
// Of allocated, reserved and requested bytes, blocks and segments: now, at most, in all, freed.
// Then retries and failures.
int taeda_cuda_memory_stats(int index, int64_t* numbers) {
  return guarded([=] {
    const MemoryStats s = device(index).allocator.stats();
    int64_t* to = numbers;
    for (const MemoryNumber& n : {s.allocated, s.reserved, s.requested, s.blocks, s.segments})
      for (const int64_t v : {n.now, n.peak, n.in_all, n.freed}) *to++ = v;
    *to++ = s.retries;
    *to = s.failures;
  });
}
int taeda_cuda_reset_memory_stats(int index, int peaks) {
  return guarded([=] {
    Allocator& a = device(index).allocator;
    peaks ? a.reset_peaks() : a.reset_totals();
  });
}
int taeda_cuda_empty_cache(int index) {
  return guarded([=] { use_device(index).allocator.empty_cache(); });
}
int taeda_cuda_limit_memory(int index, uint64_t bytes) {
  return guarded([=] { device(index).allocator.set_limit(bytes); });
}
int taeda_cuda_memory_snapshot(int index, char* text, size_t room, size_t* length) {
  return guarded([=] { *length = copy_text(device(index).allocator.snapshot(), text, room); });
}
// What all allocators note; see HistorySettings. The functions are called without a lock.
int taeda_cuda_record_history(int trace, uint64_t most, int clear, int64_t (*allocating)(),
                              int64_t (*freeing)()) {
  return guarded(
      [=] { set_allocator_history({trace != 0, most, allocating, freeing}, clear != 0); });
}
int taeda_cuda_memory_trace(int index, char* text, size_t room, size_t* length) {
  return guarded([=] { *length = copy_text(device(index).allocator.trace(), text, room); });
}
// Memory without a tensor, which taeda_cuda_free gives back to the allocator.
int taeda_cuda_allocate(int index, size_t nbytes, StreamHandle stream, void** memory) {
  return guarded([=] { *memory = use_device(index).allocator.allocate(nbytes, stream); });
}
int taeda_cuda_free(int index, void* memory) {
  return guarded([=] { device(index).allocator.deallocate(memory); });
}
// What all allocators do; `divisions` has a number for each entry of the setting.
int taeda_cuda_set_allocator(int expandable, uint64_t max_split, double collect_above,
                             const uint32_t* divisions) {
  return guarded([=] {
    AllocatorSettings s{
        .expandable = expandable != 0, .max_split = max_split, .collect_above = collect_above};
    std::copy_n(divisions, s.divisions.size(), s.divisions.begin());
    set_allocator_settings(s);
  });
}
// `stream` is one of the device `stream_index`.
int taeda_cuda_record_stream(int index, void* memory, int stream_index, StreamHandle stream) {
  return guarded([=] { device(index).allocator.record_stream(memory, stream_index, stream); });
}

// ---- pools of memory ----
int taeda_cuda_hold_pool(int index, PoolId pool) {
  return guarded([=] { device(index).allocator.hold(pool); });
}
int taeda_cuda_let_pool_go(int index, PoolId pool) {
  return guarded([=] { device(index).allocator.let_go(pool); });
}
int taeda_cuda_pool_holders(int index, PoolId pool, int* holders) {
  return guarded([=] { *holders = device(index).allocator.holders(pool); });
}
int taeda_cuda_pool_options(int index, PoolId pool, int last_resort, int no_split) {
  return guarded(
      [=] { device(index).allocator.set_options(pool, {last_resort != 0, no_split != 0}); });
}
int taeda_cuda_empty_pool(int index, PoolId pool) {
  return guarded([=] { use_device(index).allocator.empty_pool(pool); });
}
// Where this thread's memory comes from, from now on; and where it came from before.
int taeda_cuda_set_pool(int index, PoolId pool, PoolId* before) {
  return guarded([=] {
    *before = current_pool(index);
    set_current_pool(index, pool);
  });
}

int taeda_cuda_device_of(void* memory, int* index) {
  return guarded([=] {
    device_count();
    unsigned type = 0;
    const auto at = reinterpret_cast<DevicePointer>(memory);
    const Driver& d = driver();
    check(d.pointer_attribute(&type, kMemoryType, at) == kSuccess && type != kHostMemory,
          "cuda: there is no memory of a device at ", memory);
    succeed(d.pointer_attribute(index, kDeviceOrdinal, at), "asking about memory");
  });
}

// ---- pinned memory of the host ----
// As taeda_cuda_memory_stats, of allocated and reserved bytes, blocks and segments.
int taeda_cuda_pinned_stats(int64_t* numbers) {
  return guarded([=] {
    const PinnedCache::Stats s = pinned_cache().stats();
    int64_t* to = numbers;
    for (const MemoryNumber& n : {s.allocated, s.reserved, s.blocks, s.segments})
      for (const int64_t v : {n.now, n.peak, n.in_all, n.freed}) *to++ = v;
  });
}
int taeda_cuda_reset_pinned_stats(int peaks) {
  return guarded([=] { peaks ? pinned_cache().reset_peaks() : pinned_cache().reset_totals(); });
}
int taeda_cuda_empty_pinned() {
  return guarded([] { pinned_cache().empty(); });
}

// ---- what cuda.cudart() has: the driver's results, whose numbers are the runtime library's ----
int taeda_cuda_error_text(int error, char* text, size_t room) {
  return guarded([=] {
    const char* found = nullptr;
    driver().error_text(error, &found);
    copy_text(found ? found : "unrecognized error code", text, room);
  });
}
int taeda_cuda_register_host(int index, void* memory, size_t nbytes, unsigned flags, int* result) {
  return guarded([=] {
    use_device(index);
    *result = driver().register_host(memory, nbytes, flags);
  });
}
int taeda_cuda_unregister_host(int index, void* memory, int* result) {
  return guarded([=] {
    use_device(index);
    *result = driver().unregister_host(memory);
  });
}
int taeda_cuda_profile_result(int index, int on, int* result) {
  return guarded([=] {
    use_device(index);
    *result = on ? driver().start_profiler() : driver().stop_profiler();
  });
}
int taeda_cuda_create_stream(int index, StreamHandle* stream, int* result) {
  return guarded([=] {
    use_device(index);
    *result = driver().make_stream(stream, 0, 0);
  });
}
int taeda_cuda_remove_stream(int index, StreamHandle stream, int* result) {
  return guarded([=] {
    use_device(index);
    *result = driver().destroy_stream(stream);
  });
}

// ---- streams ----
int taeda_cuda_make_stream(int index, int priority, StreamHandle* stream) {
  return guarded([=] {
    use_device(index);
    constexpr unsigned apart_from_default = 1;
    succeed(driver().make_stream(stream, apart_from_default, priority), "making a stream");
  });
}
int taeda_cuda_priorities(int index, int* least, int* most) {
  return guarded([=] {
    use_device(index);
    succeed(driver().priorities(least, most), "asking for streams' priorities");
  });
}
int taeda_cuda_current_stream(int index, StreamHandle* stream) {
  return guarded([=] {
    device(index);
    *stream = current_stream(index);
  });
}
int taeda_cuda_set_stream(int index, StreamHandle stream) {
  return guarded([=] { set_current_stream(index, stream); });
}
int taeda_cuda_synchronize_stream(int index, StreamHandle stream) {
  return guarded([=] { synchronize_stream(index, stream); });
}
int taeda_cuda_query_stream(int index, StreamHandle stream, int* done) {
  return guarded([=] {
    use_device(index);
    const int result = driver().query_stream(stream);
    if (result != kNotReady) succeed(result, "asking about a stream");
    *done = result == kSuccess;
  });
}

// ---- events ----
int taeda_cuda_make_event(int index, int timing, int blocking, int shared, EventHandle* event) {
  return guarded([=] {
    use_device(index);
    const unsigned flags = (blocking ? 1u : 0u) | (timing ? 0u : 2u) | (shared ? 4u : 0u);
    succeed(driver().make_event(event, flags), "making an event");
  });
}
int taeda_cuda_destroy_event(int index, EventHandle event) {
  return guarded([=] {
    use_device(index);
    succeed(driver().destroy_event(event), "destroying an event");
  });
}
int taeda_cuda_record_event(int index, EventHandle event, StreamHandle stream) {
  return guarded([=] {
    use_device(index);
    succeed(driver().record_event(event, stream), "recording an event");
  });
}
int taeda_cuda_share_event(int index, EventHandle event, SharedEvent* name) {
  return guarded([=] {
    use_device(index);
    succeed(driver().share_event(name, event), "sharing an event");
  });
}
int taeda_cuda_open_event(int index, const SharedEvent* name, EventHandle* event) {
  return guarded([=] {
    use_device(index);
    succeed(driver().open_event(event, *name), "opening another process's event");
  });
}
int taeda_cuda_wait_event(int index, StreamHandle stream, EventHandle event) {
  return guarded([=] {
    use_device(index);
    succeed(driver().wait_event(stream, event, 0), "letting a stream wait");
  });
}
int taeda_cuda_synchronize_event(int index, EventHandle event) {
  return guarded([=] {
    use_device(index);
    succeed(driver().synchronize_event(event), "waiting for an event");
  });
}
int taeda_cuda_query_event(int index, EventHandle event, int* done) {
  return guarded([=] {
    use_device(index);
    const int result = driver().query_event(event);
    if (result != kNotReady) succeed(result, "asking about an event");
    *done = result == kSuccess;
  });
}
int taeda_cuda_elapsed(int index, EventHandle from, EventHandle to, float* milliseconds) {
  return guarded([=] {
    use_device(index);
    succeed(driver().elapsed(milliseconds, from, to), "timing events");
  });
}

// ---- graphs ----
// What is recorded keeps the memory of `pool` until the graph is destroyed.
int taeda_cuda_begin_capture(int index, StreamHandle stream, PoolId pool, int mode) {
  return guarded([=] {
    Allocator& allocator = use_device(index).allocator;
    succeed(driver().begin_capture(stream, mode), "beginning a graph");
    allocator.begin_private(stream, pool);
    allocator.hold(pool);
  });
}
int taeda_cuda_end_capture(int index, StreamHandle stream, PoolId pool, RunnableGraph* runnable) {
  return guarded([=] {
    Allocator& allocator = use_device(index).allocator;
    const Driver& d = driver();
    allocator.end_private(stream);
    GraphHandle graph = nullptr;
    int result = d.end_capture(stream, &graph);
    if (result == kSuccess) result = d.instantiate(runnable, graph, 0);
    if (graph) d.destroy_graph(graph);
    if (result != kSuccess) allocator.let_go(pool);
    succeed(result, "ending a graph, during which something was done that none can record");
  });
}
int taeda_cuda_launch_graph(int index, RunnableGraph graph, StreamHandle stream) {
  return guarded([=] {
    use_device(index);
    succeed(driver().launch_graph(graph, stream), "running a graph");
  });
}
int taeda_cuda_destroy_graph(int index, RunnableGraph graph, PoolId pool) {
  return guarded([=] {
    DeviceState& state = use_device(index);
    succeed(driver().destroy_runnable(graph), "destroying a graph");
    state.allocator.let_go(pool);
  });
}
// Of a graph that is recorded from here on: `engine` is that of a generator, `place` two numbers in
// the device's memory.
int taeda_cuda_begin_draws(int index, const taeda::Engine* engine, const uint64_t* place) {
  return guarded([=] { begin_recorded_draws(index, engine, place); });
}
int taeda_cuda_end_draws(int index, const taeda::Engine* engine, uint64_t* drawn) {
  return guarded([=] { *drawn = end_recorded_draws(index, engine); });
}
int taeda_cuda_write_place(int index, uint64_t* place, uint64_t seed, uint64_t offset) {
  return guarded([=] {
    use_device(index);
    write_place(place, seed, offset);
  });
}
int taeda_cuda_is_capturing(int index, StreamHandle stream, int* capturing) {
  return guarded([=] {
    use_device(index);
    *capturing = is_capturing(stream);
  });
}

}  // extern "C"
#pragma GCC visibility pop
