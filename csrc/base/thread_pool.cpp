#include "base/thread_pool.h"

#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>

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

// Threads take several chunks at once while many are left, since memory is read and written fastest
// in long stretches, and fewer towards the end, so that none has to wait long for another.
constexpr int64_t kShare = 8;  // of a thread's part of what is left, one such part at a time

struct Job {
  ChunkFunction function;
  void* context;
  int64_t n;
  int64_t chunk;
  int64_t shares;                // the parts that what is left is thought to have
  std::atomic<int64_t> next{0};  // the first item that nobody has taken
  std::atomic<bool> failed{false};
  std::mutex error_mutex{};
  std::exception_ptr error{};

  bool take(int64_t& begin, int64_t& end) {
    begin = next.load(std::memory_order_relaxed);
    do {
      if (begin >= n) return false;
      const int64_t many = (n - begin) / chunk / shares;
      const int64_t items = many > 1 ? many * chunk : chunk;
      end = n - begin < items ? n : begin + items;
    } while (!next.compare_exchange_weak(begin, end, std::memory_order_relaxed));
    return true;
  }
  void work() {
    RegionGuard guard;
    int64_t begin, end;
    while (take(begin, end)) {
      for (; begin < end && !failed.load(std::memory_order_relaxed); begin += chunk) {
        try {
          function(context, begin, end - begin < chunk ? end : begin + chunk);
        } catch (...) {
          failed.store(true, std::memory_order_relaxed);
          std::lock_guard lock(error_mutex);
          if (!error) error = std::current_exception();
        }
      }
    }
  }
};

class Pool {
 public:
  // Runs the job on up to `threads` threads. Only one caller at a time.
  void run(Job& job, int threads) {
    const int64_t chunks = (job.n + job.chunk - 1) / job.chunk;
    const int helpers = static_cast<int>(chunks < threads ? chunks : threads) - 1;
    {
      std::lock_guard lock(mutex_);
      while (workers_ < helpers && start_worker()) {
      }
      job_ = &job;
      places_ = helpers;
      epoch_.fetch_add(1, std::memory_order_release);
    }
    if (helpers == 1) {
      work_.notify_one();
    } else {
      work_.notify_all();
    }
    job.work();
    std::unique_lock lock(mutex_);
    job_ = nullptr;  // from here on nobody joins; wait only for those that did
    if (active_ == 0) return;
    lock.unlock();
    spin([&] { return active_ == 0; });
    lock.lock();
    done_.wait(lock, [&] { return active_ == 0; });
  }

 private:
  bool start_worker() {
    try {
      std::thread([this] { loop(); }).detach();
    } catch (const std::system_error&) {
      return false;  // no more threads to be had: the ones there are do the work
    }
    ++workers_;
    return true;
  }

  void loop() {
    uint64_t seen = 0;
    std::unique_lock lock(mutex_);
    for (;;) {
      while (epoch_.load(std::memory_order_relaxed) == seen || job_ == nullptr || places_ == 0) {
        seen = epoch_.load(std::memory_order_relaxed);
        lock.unlock();
        const bool soon = spin([&] { return epoch_.load(std::memory_order_relaxed) != seen; });
        lock.lock();
        if (!soon) work_.wait(lock, [&] { return epoch_.load(std::memory_order_relaxed) != seen; });
      }
      seen = epoch_.load(std::memory_order_relaxed);
      Job* job = job_;
      --places_;
      ++active_;
      lock.unlock();
      job->work();
      lock.lock();
      if (--active_ == 0) done_.notify_one();
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

  std::mutex mutex_;
  std::condition_variable work_, done_;
  std::atomic<uint64_t> epoch_{0};
  Job* job_ = nullptr;
  int workers_ = 0;
  int places_ = 0;              // workers that may still join the job
  std::atomic<int> active_{0};  // workers in the job
};

int default_threads() {
  if (const char* text = std::getenv("TAEDA_NUM_THREADS")) {
    const int count = std::atoi(text);
    if (count >= 1) return count < kMaxThreads ? count : kMaxThreads;
  }
  cpu_set_t cpus;
  if (sched_getaffinity(0, sizeof cpus, &cpus) == 0) {
    const int count = CPU_COUNT(&cpus);
    if (count >= 1) return count;
  }
  const int count = static_cast<int>(std::thread::hardware_concurrency());
  return count >= 1 ? count : 1;
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

void run_chunks(int64_t n, int64_t grain, ChunkFunction function, void* context) {
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
  Job job{function, context, n, chunk, kShare * threads};
  pool().run(job, threads);
  if (job.error) std::rethrow_exception(job.error);
}

}  // namespace taeda
