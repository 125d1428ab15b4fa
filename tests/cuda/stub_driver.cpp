// libcuda.so.1 for tests: devices whose memory is the host's, inaccessible but while work runs.
// Work waits in its stream until somebody waits for it, so that who forgets to finds old values.
//
// In the environment: STUB_DEVICES, how many (2); STUB_MEMORY, bytes of each (4 GiB); STUB_VERSION
// (13000); STUB_INIT, what cuInit returns (0); STUB_MULTIPROCESSORS, how many each has (4);
// STUB_CAPABILITY (90).
#include <cstdio>
#include <cstring>

#include "stub_machine.h"

using namespace stub;

// For the stub of CUPTI: told of kernels and copies when they are started.
extern "C" {
void (*stub_watch)(const char* what, unsigned long bytes) = nullptr;
}
void tell(const char* what, size_t bytes = 0) {
  if (stub_watch) stub_watch(what, bytes);
}

STUB(cuInit, unsigned) { return static_cast<int>(setting("STUB_INIT", 0)); }
STUB(cuDriverGetVersion, int* v) {
  *v = static_cast<int>(setting("STUB_VERSION", 13000));
  return kSuccess;
}
STUB(cuGetErrorName, int result, const char** name) {
  *name = result == kOutOfMemory ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_OF_THE_STUB";
  return kSuccess;
}
STUB(cuGetErrorString, int result, const char** text) {
  *text = result == kOutOfMemory ? "out of memory" : "an error of the stub";
  return kSuccess;
}

STUB(cuDeviceGetCount, int* n) {
  *n = static_cast<int>(machine().contexts.size());
  return kSuccess;
}
STUB(cuDeviceGet, int* device, int i) {
  *device = i;
  return i < static_cast<int>(machine().contexts.size()) ? kSuccess : kInvalid;
}
STUB(cuDeviceGetName, char* name, int n, int device) {
  std::snprintf(name, static_cast<size_t>(n), "Stub %d", device);
  return kSuccess;
}
STUB(cuDeviceGetAttribute, int* value, int what, int) {
  static const int multiprocessors = static_cast<int>(setting("STUB_MULTIPROCESSORS", 4));
  static const int capability = static_cast<int>(setting("STUB_CAPABILITY", 90));
  static const std::map<int, int> known = {{10, 32},
                                           {16, multiprocessors},
                                           {18, 0},
                                           {38, 1 << 20},
                                           {39, 2048},
                                           {75, capability / 10},
                                           {76, capability % 10},
                                           {84, 0},
                                           {97, 232448}};
  const auto found = known.find(what);
  if (found == known.end()) return kInvalid;
  *value = found->second;
  return kSuccess;
}
STUB(cuDeviceTotalMem_v2, size_t* bytes, int) {
  *bytes = machine().memory();
  return kSuccess;
}
STUB(cuDeviceCanAccessPeer, int* can, int a, int b) {
  *can = a != b;
  return kSuccess;
}

STUB(cuCtxEnablePeerAccess, void* peer, unsigned) {
  LOCKED
  auto* other = static_cast<Context*>(peer);
  if (other == current) return kInvalid;
  return current->peers.insert(other).second ? kSuccess : kPeerAccessAlreadyEnabled;
}

STUB(cuDevicePrimaryCtxRetain, void** context, int device) {
  *context = machine().contexts[static_cast<size_t>(device)].get();
  return kSuccess;
}
STUB(cuCtxSetCurrent, void* context) {
  current = static_cast<Context*>(context);
  return kSuccess;
}
STUB(cuCtxSynchronize) {
  LOCKED
  m.run_all();
  return kSuccess;
}

STUB(cuMemcpyAsync, uintptr_t to, uintptr_t from, size_t n, void* stream) {
  LOCKED
  tell("copy", n);
  m.push(stream_of(stream),
         [=] { std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), n); });
  return kSuccess;
}
STUB(cuMemsetD8Async, uintptr_t to, unsigned char value, size_t n, void* stream) {
  LOCKED
  m.push(stream_of(stream), [=] { std::memset(reinterpret_cast<void*>(to), value, n); });
  return kSuccess;
}

STUB(cuStreamCreateWithPriority, void** stream, unsigned, int) {
  LOCKED
  m.streams.push_back(std::make_unique<Stream>());
  *stream = m.streams.back().get();
  return kSuccess;
}
STUB(cuStreamDestroy_v2, void* stream) {
  LOCKED
  m.run(*static_cast<Stream*>(stream));
  std::erase_if(m.streams, [&](const auto& s) { return s.get() == stream; });
  return kSuccess;
}
STUB(cuStreamSynchronize, void* stream) {
  LOCKED
  if (stream_of(stream).captures) return kCaptureUnsupported;
  m.run(stream_of(stream));
  return kSuccess;
}
STUB(cuStreamQuery, void* stream) {
  LOCKED
  return stream_of(stream).work.empty() ? kSuccess : kNotReady;
}
STUB(cuStreamWaitEvent, void* stream, void* event, unsigned) {
  LOCKED
  auto& e = *static_cast<Event*>(event);
  if (!*e.done)
    m.push(stream_of(stream), [&m, source = e.stream, done = e.done] {
      if (!*done) m.run(*source, done);
    });
  return kSuccess;
}
STUB(cuCtxGetStreamPriorityRange, int* least, int* most) {
  *least = 0;
  *most = -5;
  return kSuccess;
}
STUB(cuLaunchHostFunc, void* stream, void (*function)(void*), void* data) {
  LOCKED
  tell("kernel");
  m.push(stream_of(stream), [=] { function(data); });
  return kSuccess;
}

STUB(cuEventCreate, void** event, unsigned flags) {
  constexpr unsigned no_timing = 2, shared = 4;
  if ((flags & shared) && !(flags & no_timing)) return kInvalid;
  auto* made = new Event;
  made->flags = flags;
  *event = made;
  return kSuccess;
}
STUB(cuEventDestroy_v2, void* event) {
  auto* e = static_cast<Event*>(event);
  if (--e->holders == 0) delete e;  // the stream's work has its flag
  return kSuccess;
}
// Within one process.
struct SharedEvent {
  char name[64];
};
STUB(cuIpcGetEventHandle, SharedEvent* shared, void* event) {
  constexpr unsigned may_be_shared = 4;
  if (!(static_cast<Event*>(event)->flags & may_be_shared)) return kInvalid;
  *shared = {};
  std::memcpy(shared->name, &event, sizeof event);
  return kSuccess;
}
STUB(cuIpcOpenEventHandle, void** event, SharedEvent shared) {
  std::memcpy(event, shared.name, sizeof *event);
  ++static_cast<Event*>(*event)->holders;
  return kSuccess;
}
STUB(cuEventRecord, void* event, void* stream) {
  LOCKED
  auto* e = static_cast<Event*>(event);
  e->stream = &stream_of(stream);
  e->recorded = true;
  e->captured = e->stream->captures;
  e->done = std::make_shared<std::atomic<bool>>(e->stream->work.empty());
  if (!*e->done) m.push(*e->stream, [done = e->done] { *done = true; });
  return kSuccess;
}
STUB(cuEventSynchronize, void* event) {
  LOCKED
  auto* e = static_cast<Event*>(event);
  if (e->captured) return kCapturedEvent;
  if (!*e->done) m.run(*e->stream, e->done);
  return kSuccess;
}
STUB(cuEventQuery, void* event) {
  Machine& m = machine();
  const auto& e = *static_cast<Event*>(event);
  // Not waiting for work that runs, which may take long.
  const std::unique_lock<std::recursive_mutex> lock(m.mutex, std::try_to_lock);
  if (lock && m.breaks_capture()) return kCaptureUnsupported;
  if (e.captured) return kCapturedEvent;
  return *e.done ? kSuccess : kNotReady;
}
STUB(cuEventElapsedTime_v2, float* ms, void* a, void* b) {
  *ms = 0.5f;
  const bool both = static_cast<Event*>(a)->recorded && static_cast<Event*>(b)->recorded;
  return both ? kSuccess : kInvalid;
}

STUB(cuStreamBeginCapture_v2, void* stream, int mode) {
  LOCKED
  if (!stream) return kCaptureUnsupported;
  Stream& s = stream_of(stream);
  s.captures = true;
  s.invalidated = false;
  s.mode = mode;
  s.capturing_thread = std::this_thread::get_id();
  return kSuccess;
}
STUB(cuStreamEndCapture, void* stream, void** graph) {
  LOCKED
  Stream& s = stream_of(stream);
  s.captures = false;
  Work captured = std::exchange(s.captured, {});
  if (s.invalidated) return kCaptureInvalidated;
  *graph = new Work(std::move(captured));
  return kSuccess;
}
STUB(cuStreamIsCapturing, void* stream, int* capturing) {
  LOCKED
  *capturing = stream_of(stream).captures;
  return kSuccess;
}
STUB(cuThreadExchangeStreamCaptureMode, int* mode) {
  std::swap(thread_mode, *mode);
  return kSuccess;
}
STUB(cuGraphInstantiateWithFlags, void** runnable, void* graph, unsigned long long) {
  *runnable = new Work(*static_cast<Work*>(graph));
  return kSuccess;
}
STUB(cuGraphLaunch, void* runnable, void* stream) {
  LOCKED
  for (const auto& work : *static_cast<Work*>(runnable)) m.push(stream_of(stream), work);
  return kSuccess;
}
STUB(cuGraphDestroy, void* graph) {
  delete static_cast<Work*>(graph);
  return kSuccess;
}
STUB(cuGraphExecDestroy, void* runnable) {
  LOCKED
  m.run_all();
  delete static_cast<Work*>(runnable);
  return kSuccess;
}

STUB(cuProfilerStart) {
  std::puts("profiler starts");
  std::fflush(stdout);
  return kSuccess;
}
STUB(cuProfilerStop) {
  std::puts("profiler stops");
  std::fflush(stdout);
  return kSuccess;
}
