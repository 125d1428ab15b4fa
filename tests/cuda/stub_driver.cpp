// libcuda.so.1 for tests: devices whose memory is the host's, inaccessible but while work runs.
// Work waits in its stream until somebody waits for it, so that who forgets to finds old values.
//
// In the environment: STUB_DEVICES, how many (2); STUB_MEMORY, bytes of each (4 GiB); STUB_VERSION
// (13000); STUB_INIT, what cuInit returns (0); STUB_MULTIPROCESSORS, how many each has (4);
// STUB_CAPABILITY (90).
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

namespace {

enum {
  kSuccess = 0,
  kInvalid = 1,
  kOutOfMemory = 2,
  kNoDevice = 100,
  kNotReady = 600,
  kPeerAccessAlreadyEnabled = 704,
  kCaptureUnsupported = 900,
  kCaptureInvalidated = 901,
  kCapturedEvent = 907,
};
enum { kGlobal = 0, kThreadLocal = 1, kRelaxed = 2 };  // modes of captures, and of threads
thread_local int thread_mode = kGlobal;

constexpr size_t kPage = 4096, kArena = size_t{64} << 30;

size_t setting(const char* name, size_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

using Flag = std::shared_ptr<std::atomic<bool>>;  // read while work runs, which may take long
struct Event {
  bool recorded = false;
  Flag done = std::make_shared<std::atomic<bool>>(true);  // a new one for each place it marks
  struct Stream* stream = nullptr;
  bool captured = false;
};
using Work = std::deque<std::function<void()>>;
struct Stream {
  Work work;
  bool captures = false, invalidated = false;
  int mode = kGlobal;
  std::thread::id capturing_thread;
  Work captured;
};
struct Context {
  int device;
  Stream default_stream;
  size_t taken = 0;
  std::map<uintptr_t, size_t> blocks;
  std::set<Context*> peers;
};

class Machine {
 public:
  std::recursive_mutex mutex;
  std::vector<std::unique_ptr<Context>> contexts;
  std::vector<std::unique_ptr<Stream>> streams;
  std::map<uintptr_t, size_t> pinned;

  // Whether a call that might be unsafe is made while a stream is captured that it then breaks.
  bool breaks_capture() {
    bool broken = false;
    for (const auto& s : streams) {
      const bool here = s->capturing_thread == std::this_thread::get_id();
      const bool concerned =
          s->mode == kGlobal ? thread_mode == kGlobal || here : s->mode == kThreadLocal && here;
      if (!s->captures || thread_mode == kRelaxed || !concerned) continue;
      s->invalidated = broken = true;
    }
    return broken;
  }

  Machine() {
    base_ = static_cast<char*>(
        mmap(nullptr, kArena, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    for (size_t i = 0; i < setting("STUB_DEVICES", 2); ++i) {
      contexts.push_back(std::make_unique<Context>());
      contexts.back()->device = static_cast<int>(i);
    }
  }

  size_t memory() const { return setting("STUB_MEMORY", size_t{4} << 30); }

  int allocate(Context& c, uintptr_t* to, size_t n) {
    if (c.taken + n > memory() || used_ + n > kArena) return kOutOfMemory;
    auto& same = free_[n];
    if (!same.empty()) {
      *to = same.back();
      same.pop_back();
    } else {
      *to = reinterpret_cast<uintptr_t>(base_) + used_;
      used_ += (n + kPage - 1) / kPage * kPage;
      if (running_) protect(PROT_READ | PROT_WRITE);
    }
    c.taken += n;
    c.blocks[*to] = n;
    return kSuccess;
  }
  int deallocate(uintptr_t p) {
    for (auto& c : contexts) {
      const auto found = c->blocks.find(p);
      if (found == c->blocks.end()) continue;
      run_all();
      madvise(reinterpret_cast<void*>(p), found->second, MADV_DONTNEED);
      free_[found->second].push_back(p);
      c->taken -= found->second;
      c->blocks.erase(found);
      return kSuccess;
    }
    return kInvalid;
  }

  void push(Stream& s, std::function<void()> work) {
    if (s.captures) return s.captured.push_back(std::move(work));
    s.work.push_back(std::move(work));
    if (s.work.size() >= 256) run(s);
  }
  // Runs a stream's work, up to an event if there is a flag.
  void run(Stream& s, const Flag& until = nullptr) {
    if (s.work.empty()) return;
    if (running_++ == 0) protect(PROT_READ | PROT_WRITE);
    while (!s.work.empty() && !(until && *until)) {
      const auto work = std::move(s.work.front());
      s.work.pop_front();
      work();
    }
    if (--running_ == 0) protect(PROT_NONE);
  }
  void run_all() {
    for (auto& c : contexts) run(c->default_stream);
    for (auto& s : streams) run(*s);
  }

 private:
  void protect(int access) { mprotect(base_, used_, access); }

  char* base_;
  size_t used_ = 0;
  int running_ = 0;
  std::map<size_t, std::vector<uintptr_t>> free_;
};

Machine& machine() {
  static Machine& one = *new Machine;
  return one;
}
thread_local Context* current = nullptr;

Stream& stream_of(void* handle) {
  return handle ? *static_cast<Stream*>(handle) : current->default_stream;
}

}  // namespace

// What each function is and does, the driver's documentation says.
#define STUB(name, ...) extern "C" int name(__VA_ARGS__)
#define LOCKED            \
  Machine& m = machine(); \
  const std::lock_guard<std::recursive_mutex> lock(m.mutex);

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

STUB(cuMemGetInfo_v2, size_t* free, size_t* total) {
  LOCKED
  *total = m.memory();
  *free = *total - current->taken;
  return kSuccess;
}
STUB(cuMemAlloc_v2, uintptr_t* p, size_t n) {
  LOCKED
  if (m.breaks_capture()) return kCaptureUnsupported;
  return m.allocate(*current, p, n);
}
STUB(cuMemFree_v2, uintptr_t p) {
  LOCKED
  if (m.breaks_capture()) return kCaptureUnsupported;
  return m.deallocate(p);
}
STUB(cuMemHostAlloc, void** p, size_t n, unsigned) {
  LOCKED
  if (m.breaks_capture()) return kCaptureUnsupported;
  if (!current) return kInvalid;
  *p = std::aligned_alloc(kPage, (n + kPage - 1) / kPage * kPage);
  if (*p) m.pinned[reinterpret_cast<uintptr_t>(*p)] = n;
  return *p ? kSuccess : kOutOfMemory;
}
STUB(cuMemFreeHost, void* p) {
  LOCKED
  if (m.pinned.erase(reinterpret_cast<uintptr_t>(p)) == 0) return kInvalid;
  m.run_all();
  std::free(p);
  return kSuccess;
}
STUB(cuPointerGetAttribute, void* value, int what, uintptr_t p) {
  LOCKED
  const auto in = [p](const std::map<uintptr_t, size_t>& blocks) {
    const auto after = blocks.upper_bound(p);
    return after != blocks.begin() && p < std::prev(after)->first + std::prev(after)->second;
  };
  constexpr int memory_type = 2, ordinal = 9;
  constexpr unsigned host = 1, device = 2;
  if (what == memory_type && in(m.pinned)) {
    *static_cast<unsigned*>(value) = host;
    return kSuccess;
  }
  for (const auto& c : m.contexts) {
    if (!in(c->blocks)) continue;
    if (what == memory_type) *static_cast<unsigned*>(value) = device;
    else if (what == ordinal) *static_cast<int*>(value) = c->device;
    else return kInvalid;
    return kSuccess;
  }
  return kInvalid;
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

STUB(cuEventCreate, void** event, unsigned) {
  *event = new Event;
  return kSuccess;
}
STUB(cuEventDestroy_v2, void* event) {
  delete static_cast<Event*>(event);  // the stream's work has its flag
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
