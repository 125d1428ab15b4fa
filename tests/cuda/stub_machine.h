// The machine of the stub of the driver: devices, streams and memory.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

namespace stub {

enum {
  kSuccess = 0,
  kInvalid = 1,
  kOutOfMemory = 2,
  kNoDevice = 100,
  kNotReady = 600,
  kPeerAccessAlreadyEnabled = 704,
  kRegistered = 712,
  kNotRegistered = 713,
  kCaptureUnsupported = 900,
  kCaptureInvalidated = 901,
  kCapturedEvent = 907,
};
enum { kGlobal = 0, kThreadLocal = 1, kRelaxed = 2 };  // modes of captures, and of threads
inline thread_local int thread_mode = kGlobal;

constexpr size_t kPage = 4096, kArena = size_t{64} << 30;

inline size_t setting(const char* name, size_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

using Flag = std::shared_ptr<std::atomic<bool>>;  // read while work runs, which may take long
struct Event {
  bool recorded = false;
  Flag done = std::make_shared<std::atomic<bool>>(true);  // a new one for each place it marks
  struct Stream* stream = nullptr;
  bool captured = false;
  unsigned flags = 0;
  int holders = 1;
};
using Work = std::deque<std::function<void()>>;
struct Stream {
  Work work;
  bool captures = false, invalidated = false;
  int mode = kGlobal;
  std::thread::id capturing_thread;
  Work captured;
};
// Memory without an address, and where it is mapped.
struct Physical {
  struct Context* context;
  size_t size;
};
struct Mapping {
  std::shared_ptr<Physical> memory;
  std::set<int> readers;  // devices
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
  std::map<uintptr_t, size_t> ranges;  // reserved addresses
  std::map<uintptr_t, Mapping> mappings;
  std::map<uint64_t, std::shared_ptr<Physical>> handles;
  uint64_t next_handle = 1;

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

  std::shared_ptr<Physical> make_physical(Context& c, size_t n) {
    if (c.taken + n > memory()) return nullptr;
    c.taken += n;
    return {new Physical{&c, n}, [](Physical* p) {
              p->context->taken -= p->size;
              delete p;
            }};
  }
  bool overlaps(uintptr_t p, size_t n) const {
    const auto after = mappings.lower_bound(p + n);
    return after != mappings.begin() &&
           std::prev(after)->first + std::prev(after)->second.memory->size > p;
  }
  // Whether mappings cover all of it.
  bool allow(uintptr_t p, size_t n, int device) {
    for (const uintptr_t end = p + n; p < end;) {
      const auto found = mappings.find(p);
      if (found == mappings.end()) return false;
      found->second.readers.insert(device);
      if (running_) access(*found, PROT_READ | PROT_WRITE);
      p += found->second.memory->size;
    }
    return true;
  }
  void unmap(std::map<uintptr_t, Mapping>::iterator m) {
    run_all();
    access(*m, PROT_NONE);
    madvise(reinterpret_cast<void*>(m->first), m->second.memory->size, MADV_DONTNEED);
    mappings.erase(m);
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
  void protect(int how) {
    mprotect(base_, used_, how);
    for (const auto& m : mappings) access(m, how);
  }
  // What no device may read stays inaccessible.
  static void access(const std::pair<const uintptr_t, Mapping>& m, int how) {
    if (m.second.readers.empty()) return;
    mprotect(reinterpret_cast<void*>(m.first), m.second.memory->size, how);
  }

  char* base_;
  size_t used_ = 0;
  int running_ = 0;
  std::map<size_t, std::vector<uintptr_t>> free_;
};

inline Machine& machine() {
  static Machine& one = *new Machine;
  return one;
}
inline thread_local Context* current = nullptr;

inline Stream& stream_of(void* handle) {
  return handle ? *static_cast<Stream*>(handle) : current->default_stream;
}

}  // namespace stub

// What each function is and does, the driver's documentation says.
#define STUB(name, ...) extern "C" int name(__VA_ARGS__)
#define LOCKED            \
  Machine& m = machine(); \
  const std::lock_guard<std::recursive_mutex> lock(m.mutex);
