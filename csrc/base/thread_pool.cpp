#include "base/thread_pool.h"

#include <cxxabi.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <span>
#include <system_error>
#include <thread>
#include <vector>

#include "base/cpu_quota.h"

namespace taeda {
namespace {

constexpr int kMaxThreads = 1024;
constexpr std::chrono::microseconds kSpin{100};

thread_local bool t_in_region = false;

struct RegionGuard {
  bool before = t_in_region;
  RegionGuard() { t_in_region = true; }
  ~RegionGuard() { t_in_region = before; }
};

// A range of chunks. Its own thread takes them from the front, others from the back when they have
// finished theirs (work stealing). So in every call a thread works on the same part of the data,
// which its caches may still hold, and in order. Aligned against false sharing.
class alignas(64) ChunkRange {
 public:
  void set(int64_t begin, int64_t end) { ends_.store(pack(begin, end), std::memory_order_relaxed); }
  // The number of a chunk, or -1 if none is left.
  int64_t take_first() {
    return take([](int64_t& begin, int64_t&) { return begin++; });
  }
  int64_t take_last() {
    return take([](int64_t&, int64_t& end) { return --end; });
  }

 private:
  static uint64_t pack(int64_t begin, int64_t end) {
    return static_cast<uint64_t>(begin) << 32 | static_cast<uint64_t>(end);
  }
  template <class F> int64_t take(F&& one) {
    uint64_t now = ends_.load(std::memory_order_relaxed);
    for (;;) {
      auto begin = static_cast<int64_t>(now >> 32), end = static_cast<int64_t>(now & 0xffffffffu);
      if (begin >= end) return -1;
      const int64_t taken = one(begin, end);
      if (ends_.compare_exchange_weak(now, pack(begin, end), std::memory_order_relaxed))
        return taken;
    }
  }

  std::atomic<uint64_t> ends_{0};
};

struct Job {
  ChunkFunction function;
  void* context;
  int64_t n;
  int64_t chunk;
  bool in_order;
  std::span<ChunkRange> ranges{};  // one for each thread, or one for all
  std::mutex error_mutex{};
  std::exception_ptr error{};

  int64_t chunks() const { return (n + chunk - 1) / chunk; }
  void assign_ranges(std::span<ChunkRange> all_ranges) {
    ranges = in_order ? all_ranges.first(1) : all_ranges;
    const int64_t count = std::ssize(ranges), all = chunks();
    for (int64_t i = 0; i < count; ++i)
      ranges[static_cast<size_t>(i)].set(all * i / count, all * (i + 1) / count);
  }
  void run(int64_t number) {
    const int64_t begin = number * chunk;
    try {
      function(context, begin, n - begin < chunk ? n : begin + chunk);
    } catch (...) {
      for (ChunkRange& r : ranges) r.set(0, 0);
      std::lock_guard lock(error_mutex);
      if (!error) error = std::current_exception();
    }
  }
  void work(size_t thread) {
    RegionGuard guard;
    int64_t number;
    const size_t own = thread % ranges.size();
    while ((number = ranges[own].take_first()) >= 0) run(number);
    for (size_t i = 1; i < ranges.size(); ++i) {
      ChunkRange& other = ranges[(own + i) % ranges.size()];
      while ((number = other.take_last()) >= 0) run(number);
    }
  }
};

// Address space that is set aside until something else is to get it.
class Spare {
 public:
  Spare() : at_(mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {}
  Spare(const Spare&) = delete;
  Spare& operator=(const Spare&) = delete;
  ~Spare() { release(); }
  explicit operator bool() const { return at_ != MAP_FAILED; }
  void release() {
    if (*this) munmap(at_, kBytes);
    at_ = MAP_FAILED;
  }

 private:
  static constexpr size_t kBytes = 1 << 20;
  void* at_;
};

class Pool {
 public:
  // Runs the job on up to `threads` threads. Only one caller at a time.
  void run(Job& job, int threads) {
    const int64_t chunks = job.chunks();
    const auto team = static_cast<uint32_t>(chunks < threads ? chunks : threads);
    if (ranges_.size() < team) ranges_ = std::vector<ChunkRange>(team);
    while (workers_ + 1 < team && start_worker()) {
    }
    job.assign_ranges(std::span(ranges_).first(team));
    job_ = &job;
    gate_.store((team - 1) * kPlace, std::memory_order_release);
    epoch_.fetch_add(1);
    if (team == 2) epoch_.notify_one();
    else epoch_.notify_all();
    job.work(0);
    // From here on nobody joins; wait only for those that did.
    uint32_t inside = gate_.fetch_and(kInside, std::memory_order_acq_rel) & kInside;
    if (inside == 0 || spin([&] { return gate_.load(std::memory_order_acquire) == 0; })) return;
    while ((inside = gate_.load(std::memory_order_acquire)) != 0)
      gate_.wait(inside, std::memory_order_acquire);
  }

 private:
  // Of the gate: how many workers are inside, and times kPlace, how many more may come.
  static constexpr uint32_t kPlace = 1 << 16, kInside = kPlace - 1;

  // A thread's first exception needs thread-local data, and the loader ends the process where there
  // is no memory for it. So it is taken here, from memory that is known to be there.
  bool start_worker() {
    enum { kStarted, kMayTake, kTaken };
    std::atomic<int> stage{kStarted};
    Spare spare;
    if (!spare) return false;  // as few threads as there are do the work
    try {
      const uint32_t seen = epoch_.load(std::memory_order_relaxed);
      std::thread([this, seen, &stage, number = size_t{workers_} + 1] {
        while (stage.load(std::memory_order_acquire) != kMayTake) std::this_thread::yield();
        [[maybe_unused]] void* volatile taken = abi::__cxa_get_globals();
        stage.store(kTaken, std::memory_order_release);
        loop(number, seen);
      }).detach();
    } catch (const std::system_error&) {
      return false;
    }
    spare.release();
    stage.store(kMayTake, std::memory_order_release);
    while (stage.load(std::memory_order_acquire) != kTaken) std::this_thread::yield();
    ++workers_;
    return true;
  }

  bool join() {
    uint32_t gate = gate_.load(std::memory_order_relaxed);
    while (gate >= kPlace) {
      if (gate_.compare_exchange_weak(gate, gate - kPlace + 1, std::memory_order_acquire,
                                      std::memory_order_relaxed))
        return true;
    }
    return false;
  }
  void leave() {
    if (gate_.fetch_sub(1) == 1) gate_.notify_one();
  }

  void loop(size_t number, uint32_t seen) {
    for (;;) {
      const auto is_new = [&] { return epoch_.load(std::memory_order_acquire) != seen; };
      if (!spin(is_new)) epoch_.wait(seen, std::memory_order_acquire);
      seen = epoch_.load(std::memory_order_acquire);
      if (!join()) continue;
      job_->work(number);
      leave();
    }
  }

  // Waits a little without sleeping, since to wake a thread takes longer than most jobs. The core
  // goes to whoever else wants it meanwhile. Returns whether it happened.
  template <class F> static bool spin(F&& happened) {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point end = Clock::now() + kSpin;
    do {
      for (int i = 0; i < 64; ++i) {
        if (happened()) return true;
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
      }
      std::this_thread::yield();
    } while (Clock::now() < end);
    return happened();
  }

  alignas(64) std::atomic<uint32_t> gate_{0};
  std::atomic<uint32_t> epoch_{0};  // a new one for each job
  Job* job_ = nullptr;              // read by those inside only
  alignas(64) std::vector<ChunkRange> ranges_;
  uint32_t workers_ = 0;
};

int default_threads() {
  if (const char* text = std::getenv("TAEDA_NUM_THREADS")) {
    const int count = std::atoi(text);
    if (count >= 1) return count < kMaxThreads ? count : kMaxThreads;
  }
  int count = static_cast<int>(std::thread::hardware_concurrency());
  cpu_set_t cpus;
  if (sched_getaffinity(0, sizeof cpus, &cpus) == 0) count = CPU_COUNT(&cpus);
  // More threads than the quota would all stand still once they have used it up together.
  const double quota = std::ceil(cpu_quota());
  if (quota >= 1 && quota < count) count = static_cast<int>(quota);
  return count < 1 ? 1 : count < kMaxThreads ? count : kMaxThreads;
}

std::atomic<int> g_threads{0};  // 0: not decided yet
std::atomic<bool> g_busy{false};
std::atomic<Pool*> g_pool{nullptr};

// The threads of a pool do not exist in a forked child, and its locks may be held by them: forget
// it there.
void after_fork_in_child() {
  g_pool.store(nullptr, std::memory_order_relaxed);
  g_busy.store(false, std::memory_order_relaxed);
  t_in_region = false;
}

// Never destroyed: workers may outlive static destructors.
Pool& pool() {
  Pool* p = g_pool.load(std::memory_order_acquire);
  if (p == nullptr) {  // g_busy is held, so nobody else is here
    static const int registered = pthread_atfork(nullptr, nullptr, after_fork_in_child);
    (void)registered;
    p = new Pool;
    g_pool.store(p, std::memory_order_release);
  }
  return *p;
}

void run_inline(int64_t n, int64_t chunk, ChunkFunction function, void* context) {
  for (int64_t begin = 0; begin < n; begin += chunk) {
    function(context, begin, n - begin < chunk ? n : begin + chunk);
  }
}

}  // namespace

int get_num_threads() {
  int count = g_threads.load(std::memory_order_relaxed);
  if (count == 0) {
    count = default_threads();
    g_threads.store(count, std::memory_order_relaxed);
  }
  return count;
}

void set_num_threads(int count) {
  count = count < 1 ? 1 : count > kMaxThreads ? kMaxThreads : count;
  g_threads.store(count, std::memory_order_relaxed);
}

bool in_parallel_region() { return t_in_region; }

void run_chunks(int64_t n, int64_t grain, ChunkFunction function, void* context, bool in_order) {
  const int64_t chunk = chunk_size(n, grain);
  const int threads = get_num_threads();
  // A second caller, while the pool is busy with another's work, does its own.
  if (t_in_region || n <= chunk || threads == 1 ||
      g_busy.exchange(true, std::memory_order_acquire)) {
    run_inline(n, chunk, function, context);
    return;
  }
  struct Release {
    ~Release() { g_busy.store(false, std::memory_order_release); }
  } release;
  Job job{function, context, n, chunk, in_order};
  pool().run(job, threads);
  if (job.error) std::rethrow_exception(job.error);
}

}  // namespace taeda
