// What runs on the devices, by CUPTI's records of activity, where nvidia-cuda-cupti is installed:
// what python/taeda/profiler/_device.py calls, by ctypes. Times are nanoseconds of the clock that
// operations are recorded by (ops/core/profile.cpp).
#include <cxxabi.h>
#include <pthread.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kernels/cuda/runtime/api.h"
#include "kernels/cuda/runtime/device.h"
#include "kernels/cuda/runtime/libraries.h"

namespace taeda::cuda {
namespace {

// ---- the library: what is used of cupti_activity.h (CUDA 13) ----
constexpr const char* kLibrary = "libcupti.so.13";

enum Kind : uint32_t { kCopy = 1, kFill = 2, kDriverCall = 4, kRuntimeCall = 5, kKernel = 10 };
constexpr Kind kKinds[] = {kCopy, kFill, kDriverCall, kRuntimeCall, kKernel};

struct Library {
  int (*register_buffers)(void (*request)(uint8_t**, size_t*, size_t*),
                          void (*complete)(void*, uint32_t, uint8_t*, size_t, size_t));
  int (*register_clock)(uint64_t (*)());
  int (*enable)(uint32_t kind), (*disable)(uint32_t kind);
  int (*flush)(uint32_t forced);
  int (*next)(uint8_t* buffer, size_t valid, uint8_t** record);
  int (*text)(int result, const char**);
};

const std::optional<Library>& found_library() {
  static const auto found = bind_library<Library>(kLibrary, [](Library& l, auto find) {
    find(l.register_buffers, "cuptiActivityRegisterCallbacks");
    find(l.register_clock, "cuptiActivityRegisterTimestampCallback");
    find(l.enable, "cuptiActivityEnable");
    find(l.disable, "cuptiActivityDisable");
    find(l.flush, "cuptiActivityFlushAll");
    find(l.next, "cuptiActivityGetNextRecord");
    find(l.text, "cuptiGetResultString");
  });
  return found;
}
const Library& library() {
  const auto& found = found_library();
  check(found.has_value(), "cuda: ", kLibrary,
        " is not installed, by which kernels are recorded: pip install nvidia-cuda-cupti");
  return *found;
}

void cupti_succeed(int result, const char* what) {
  if (result == 0) return;
  const char* text = nullptr;
  library().text(result, &text);
  fail("cuda: ", what, " by CUPTI: ", text ? text : "unknown error", " (", result, ")");
}

// A field at a place in a record.
template <class T> T field(const uint8_t* record, size_t at) {
  T value;
  std::memcpy(&value, record + at, sizeof value);
  return value;
}

// ---- the record ----

struct Work {
  std::string name;
  uint64_t begin, end;
  uint32_t device, stream, correlation;
  uint64_t bytes = 0;     // of copies and fills
  int32_t shape[6] = {};  // of kernels: grid and block
};
struct CallTime {
  uint64_t begin;
  uint32_t thread;
};
struct Trace {
  std::mutex mutex;
  std::vector<Work> work;
  std::map<uint32_t, CallTime> calls;  // what started the work, by correlation
  std::string text;                    // the last one, for who asks for it
};
Trace& trace() {
  static Trace& one = *new Trace;
  return one;
}

uint64_t now() {
  const auto time = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(time).count());
}

std::string demangled(const char* name) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(name, nullptr, nullptr, &status), std::free);
  return text ? text.get() : name;
}

const char* copy_name(uint8_t kind) {
  switch (kind) {
    case 1: return "Memcpy HtoD";
    case 2: return "Memcpy DtoH";
    case 8: return "Memcpy DtoD";
    case 10: return "Memcpy PtoP";
    default: return "Memcpy";
  }
}

void take(Trace& t, const uint8_t* record) {
  switch (field<uint32_t>(record, 0)) {
    case kKernel: {
      const auto* name = field<const char*>(record, 104);
      Work w{demangled(name ? name : "kernel"), field<uint64_t>(record, 16),
             field<uint64_t>(record, 24),       field<uint32_t>(record, 40),
             field<uint32_t>(record, 48),       field<uint32_t>(record, 92)};
      std::memcpy(w.shape, record + 52, sizeof w.shape);
      t.work.push_back(std::move(w));
      break;
    }
    case kCopy:
    case kFill: {
      const bool copy = field<uint32_t>(record, 0) == kCopy;
      t.work.push_back({copy ? copy_name(record[4]) : "Memset", field<uint64_t>(record, 16),
                        field<uint64_t>(record, 24), field<uint32_t>(record, 32),
                        field<uint32_t>(record, 40), field<uint32_t>(record, 44),
                        field<uint64_t>(record, 8)});
      break;
    }
    case kDriverCall:
    case kRuntimeCall:  // of calls within one another, the first is the outer one
      t.calls.emplace(field<uint32_t>(record, 32),
                      CallTime{field<uint64_t>(record, 8), field<uint32_t>(record, 28)});
      break;
    default: break;
  }
}

constexpr size_t kBuffer = size_t{4} << 20;
void request_buffer(uint8_t** buffer, size_t* size, size_t* most) {
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(8, kBuffer));
  *size = *buffer ? kBuffer : 0;
  *most = 0;
}
void complete_buffer(void*, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  Trace& t = trace();
  {
    const std::lock_guard lock(t.mutex);
    uint8_t* record = nullptr;
    while (library().next(buffer, valid, &record) == 0) take(t, record);
  }
  std::free(buffer);
}

void start_trace() {
  static const bool registered = [] {
    const Library& l = library();
    cupti_succeed(l.register_clock(now), "setting the clock");
    cupti_succeed(l.register_buffers(request_buffer, complete_buffer), "giving memory");
    return true;
  }();
  static_cast<void>(registered);
  Trace& t = trace();
  {
    const std::lock_guard lock(t.mutex);
    t.work.clear();
    t.calls.clear();
  }
  for (const Kind kind : kKinds) cupti_succeed(library().enable(kind), "recording");
}

std::string quoted(const std::string& text) {
  std::string r = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') r += '\\';
    r += c;
  }
  return r + '"';
}

// [name, begin, end, device, stream, bytes, [grid and block], begin of the call, thread] of each.
std::string as_json(const Trace& t) {
  std::string all = "[";
  for (const Work& w : t.work) {
    const auto found = t.calls.find(w.correlation);
    const CallTime call = found == t.calls.end() ? CallTime{0, 0} : found->second;
    const auto& s = w.shape;
    all += str(all.size() > 1 ? ",[" : "[", quoted(w.name), ',', w.begin, ',', w.end, ',', w.device,
               ',', w.stream, ',', w.bytes, ",[", s[0], ',', s[1], ',', s[2], ',', s[3], ',', s[4],
               ',', s[5], "],", call.begin, ',', call.thread, ']');
  }
  return all + "]";
}

// All devices have been waited for before.
void stop_trace() {
  const Library& l = library();
  cupti_succeed(l.flush(1), "collecting what was recorded");
  for (const Kind kind : kKinds) l.disable(kind);
  Trace& t = trace();
  const std::lock_guard lock(t.mutex);
  t.text = as_json(t);
}

}  // namespace
}  // namespace taeda::cuda

using namespace taeda::cuda;

#pragma GCC visibility push(default)
extern "C" {

int taeda_cuda_has_trace() { return found_library().has_value(); }
int taeda_cuda_start_trace() { return guarded(start_trace); }
// Ends it; `length` is that of the text, as JSON, that taeda_cuda_trace() copies. `thread` is what
// this one is called there.
int taeda_cuda_stop_trace(size_t* length, uint32_t* thread) {
  return guarded([=] {
    stop_trace();
    *length = trace().text.size();
    *thread =
        static_cast<uint32_t>(reinterpret_cast<uintptr_t>(reinterpret_cast<void*>(pthread_self())));
  });
}
int taeda_cuda_trace(char* text, size_t room) {
  return guarded([=] { copy_text(trace().text, text, room); });
}

}  // extern "C"
#pragma GCC visibility pop
