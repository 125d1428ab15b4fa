// libnccl.so.2 for tests: processes of one machine exchange bytes through a file that all map. An
// operation is work of the stub driver's stream: it runs when somebody waits for it, and then waits
// for the other processes.
//
// In the environment: STUB_NCCL_FAIL, a function that fails, such as ncclAllReduce; STUB_NCCL_LOG,
// a file to which each process (its rank is put behind the name) appends a line for each operation.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

extern "C" int cuLaunchHostFunc(void* stream, void (*function)(void*), void* data);

namespace {

enum Result { kWell = 0, kInternalError = 3, kInvalidUsage = 5 };
enum Operation { kSum, kProduct, kMaximum, kMinimum, kAverage };
constexpr size_t kChunk = 1 << 16;
constexpr int kMost = 8;  // processes

struct Id {
  char bytes[128];
};
struct Slot {  // what one process has for another
  std::atomic<uint32_t> full;
  uint32_t bytes;
  uint64_t total;  // of the message
  char data[kChunk];
};
struct Shared {
  std::atomic<int> arrived;
  Slot slots[kMost][kMost];  // by sender and receiver
};
struct Communicator {
  Shared* shared;
  int size, rank;
  std::atomic<bool> aborted{false};
  std::atomic<int> error{kWell};
};
struct Transfer {
  bool out;
  int peer;
  char* data;
  size_t total, done = 0;
};

thread_local std::string last_error;

bool fails(const char* function) {
  const char* wanted = std::getenv("STUB_NCCL_FAIL");
  if (!wanted || std::strcmp(wanted, function) != 0) return false;
  last_error = std::string(function) + " was told to fail";
  return true;
}
void log(const Communicator& c, const std::string& line) {
  if (const char* name = std::getenv("STUB_NCCL_LOG"))
    std::ofstream(name + std::to_string(c.rank), std::ios::app) << line << '\n';
}

bool step(Communicator& c, Transfer& t) {
  Slot& slot = t.out ? c.shared->slots[c.rank][t.peer] : c.shared->slots[t.peer][c.rank];
  if (slot.full.load(std::memory_order_acquire) == t.out) return false;
  if (t.out) {
    slot.total = t.total;
    slot.bytes = static_cast<uint32_t>(std::min(kChunk, t.total - t.done));
    std::memcpy(slot.data, t.data + t.done, slot.bytes);
  } else {
    if (slot.total != t.total) c.error = kInvalidUsage;
    std::memcpy(t.data + t.done, slot.data, std::min<size_t>(slot.bytes, t.total - t.done));
  }
  t.done += slot.bytes;
  slot.full.store(t.out, std::memory_order_release);
  return true;
}

// Messages between two processes arrive in the order in which they are listed.
void move_all(Communicator& c, const std::vector<Transfer>& transfers) {
  std::map<std::pair<bool, int>, std::deque<Transfer>> lines;
  for (const Transfer& t : transfers)
    if (t.total > 0) lines[{t.out, t.peer}].push_back(t);
  while (!lines.empty() && !c.aborted && c.error == kWell) {
    bool moved = false;
    for (auto at = lines.begin(); at != lines.end();) {
      auto& line = at->second;
      moved |= step(c, line.front());
      if (line.front().done >= line.front().total) line.pop_front();
      at = line.empty() ? lines.erase(at) : std::next(at);
    }
    if (!moved) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

size_t size_of(int type) {
  static constexpr size_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
  return sizes[type];
}

template <class T> void combine(char* to, const char* with, size_t n, int op) {
  auto* a = reinterpret_cast<T*>(to);
  const auto* b = reinterpret_cast<const T*>(with);
  for (size_t i = 0; i < n; ++i) {
    if (op == kProduct) a[i] *= b[i];
    else if (op == kMaximum) a[i] = std::max(a[i], b[i]);
    else if (op == kMinimum) a[i] = std::min(a[i], b[i]);
    else a[i] += b[i];
  }
}
template <class T> void divide(char* values, size_t n, int by) {
  for (size_t i = 0; i < n; ++i) reinterpret_cast<T*>(values)[i] /= static_cast<T>(by);
}
template <class F> void with_type(int type, F f) {
  switch (type) {
    case 0: return f(int8_t());
    case 1: return f(uint8_t());
    case 2: return f(int32_t());
    case 4: return f(int64_t());
    case 7: return f(float());
    case 8: return f(double());
    default: std::fprintf(stderr, "stub_nccl: no sums of type %d\n", type), std::abort();
  }
}

using Parts = std::vector<std::vector<char>>;

// What each process has for every other one, `share` bytes from `from` on for each, or all of it.
Parts all_to_all(Communicator& c, const char* from, size_t n, bool same) {
  Parts got(static_cast<size_t>(c.size), std::vector<char>(n));
  std::vector<Transfer> transfers;
  for (int p = 0; p < c.size; ++p) {
    const char* part = from + (same ? 0 : static_cast<size_t>(p) * n);
    auto& to = got[static_cast<size_t>(p)];
    if (p == c.rank) {
      std::memcpy(to.data(), part, n);
    } else {
      transfers.push_back({true, p, const_cast<char*>(part), n});
      transfers.push_back({false, p, to.data(), n});
    }
  }
  move_all(c, transfers);
  return got;
}

void fold(char* to, const Parts& parts, size_t count, int type, int op) {
  std::vector<char> sum = parts[0];
  with_type(type, [&]<class T>(T) {
    for (size_t p = 1; p < parts.size(); ++p) combine<T>(sum.data(), parts[p].data(), count, op);
    if (op == kAverage) divide<T>(sum.data(), count, static_cast<int>(parts.size()));
  });
  std::memcpy(to, sum.data(), sum.size());
}

// ---- operations wait in their group, and then in their stream ----
struct Call {
  Communicator* communicator = nullptr;
  void* stream = nullptr;
  std::function<void()> work{};       // or
  std::vector<Transfer> transfers{};  // those of a group move together
};
thread_local int depth = 0;
thread_local std::vector<Call> grouped;

int launch(Call call) {
  auto* held = new Call(std::move(call));
  return cuLaunchHostFunc(
      held->stream,
      [](void* data) {
        auto* c = static_cast<Call*>(data);
        if (!c->communicator->aborted) {
          if (c->work) c->work();
          else move_all(*c->communicator, c->transfers);
        }
        delete c;
      },
      held);
}

int begin(const char* function, Communicator* c, void* stream, size_t count, Call call) {
  if (fails(function)) return kInternalError;
  log(*c, std::string(depth ? "  " : "") + function + " " + std::to_string(count) +
              (stream ? "" : " on the default stream"));
  call.communicator = c;
  call.stream = stream;
  if (depth == 0) return launch(std::move(call));
  for (Call& other : grouped) {
    if (call.work || other.work || other.communicator != c || other.stream != stream) continue;
    other.transfers.insert(other.transfers.end(), call.transfers.begin(), call.transfers.end());
    return kWell;
  }
  grouped.push_back(std::move(call));
  return kWell;
}

const char* bytes(const void* p) { return static_cast<const char*>(p); }
char* bytes(void* p) { return static_cast<char*>(p); }

}  // namespace

#define STUB(name, ...) extern "C" int name(__VA_ARGS__)

STUB(ncclGetVersion, int* version) {
  *version = 22703;
  return kWell;
}
extern "C" const char* ncclGetErrorString(int result) {
  return result == kInvalidUsage ? "invalid usage" : "internal error";
}
extern "C" const char* ncclGetLastError(Communicator*) { return last_error.c_str(); }
STUB(ncclGetUniqueId, Id* id) {
  std::memset(id, 0, sizeof *id);
  std::random_device random;
  std::snprintf(id->bytes, sizeof id->bytes, "/dev/shm/stub_nccl_%08x%08x", random(), random());
  return kWell;
}
STUB(ncclCommInitRank, Communicator** made, int size, Id id, int rank) {
  if (fails("ncclCommInitRank")) return kInternalError;
  const int file = open(id.bytes, O_RDWR | O_CREAT, 0600);
  if (file < 0 || ftruncate(file, sizeof(Shared)) != 0) return kInternalError;
  void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  auto* c = new Communicator{static_cast<Shared*>(memory), size, rank};
  ++c->shared->arrived;
  while (c->shared->arrived < size) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  unlink(id.bytes);
  log(*c, "ncclCommInitRank " + std::to_string(size));
  *made = c;
  return kWell;
}
STUB(ncclCommDestroy, Communicator* c) {
  log(*c, "ncclCommDestroy");
  return kWell;
}
STUB(ncclCommAbort, Communicator* c) {
  log(*c, "ncclCommAbort");
  c->aborted = true;
  return kWell;
}
STUB(ncclCommGetAsyncError, Communicator* c, int* result) {
  *result = c->error;
  return kWell;
}
STUB(ncclGroupStart) {
  ++depth;
  return kWell;
}
STUB(ncclGroupEnd) {
  if (--depth > 0) return kWell;
  for (Call& call : std::exchange(grouped, {})) launch(std::move(call));
  return kWell;
}

STUB(ncclAllReduce, const void* from, void* to, size_t n, int type, int op, Communicator* c,
     void* stream) {
  return begin("ncclAllReduce", c, stream, n, {.work = [=] {
                 fold(bytes(to), all_to_all(*c, bytes(from), n * size_of(type), true), n, type, op);
               }});
}
STUB(ncclReduce, const void* from, void* to, size_t n, int type, int op, int root, Communicator* c,
     void* stream) {
  return begin("ncclReduce", c, stream, n, {.work = [=] {
                 const Parts parts = all_to_all(*c, bytes(from), n * size_of(type), true);
                 if (c->rank == root) fold(bytes(to), parts, n, type, op);
               }});
}
STUB(ncclReduceScatter, const void* from, void* to, size_t n, int type, int op, Communicator* c,
     void* stream) {
  return begin("ncclReduceScatter", c, stream, n, {.work = [=] {
                 fold(bytes(to), all_to_all(*c, bytes(from), n * size_of(type), false), n, type,
                      op);
               }});
}
STUB(ncclAllGather, const void* from, void* to, size_t n, int type, Communicator* c, void* stream) {
  return begin("ncclAllGather", c, stream, n, {.work = [=] {
                 const size_t each = n * size_of(type);
                 const Parts parts = all_to_all(*c, bytes(from), each, true);
                 for (size_t p = 0; p < parts.size(); ++p)
                   std::memcpy(bytes(to) + p * each, parts[p].data(), each);
               }});
}
STUB(ncclBroadcast, const void* from, void* to, size_t n, int type, int root, Communicator* c,
     void* stream) {
  return begin("ncclBroadcast", c, stream, n, {.work = [=] {
                 std::vector<Transfer> transfers;
                 const size_t all = n * size_of(type);
                 for (int p = 0; c->rank == root && p < c->size; ++p)
                   if (p != root)
                     transfers.push_back({true, p, const_cast<char*>(bytes(from)), all});
                 if (c->rank != root) transfers.push_back({false, root, bytes(to), all});
                 move_all(*c, transfers);
                 if (c->rank == root && to != from) std::memcpy(to, from, all);
               }});
}
STUB(ncclSend, const void* from, size_t n, int type, int peer, Communicator* c, void* stream) {
  return begin("ncclSend", c, stream, n,
               {.transfers = {{true, peer, const_cast<char*>(bytes(from)), n * size_of(type)}}});
}
STUB(ncclRecv, void* to, size_t n, int type, int peer, Communicator* c, void* stream) {
  return begin("ncclRecv", c, stream, n,
               {.transfers = {{false, peer, bytes(to), n * size_of(type)}}});
}
