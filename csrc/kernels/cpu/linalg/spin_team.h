// Threads that stay together for a while: one leads, and hands out parts of its work far more often
// than a pool can.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>

#include "base/thread_pool.h"

namespace taeda::cpu {

// The leader takes a job's parts from the first on, helpers from the last on, so that who takes a
// part mostly has its data near. Nobody waits for a helper that has not begun.
class Team {
 public:
  // lead() on this thread. Others help meanwhile: background() returns whether it found something
  // to do, and is asked before the leader's jobs are looked at; once more until it finds nothing
  // when lead() has returned, on all threads.
  template <class F, class G> static void run(int64_t most, F&& lead, G&& background) {
    Team team;
    const int64_t threads = std::min<int64_t>(most, get_num_threads());
    parallel_for(threads, 1, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        if (t == 0) {
          const Over over{team};
          lead(team);
        } else {
          team.help(background);
        }
        while (background()) {
        }
      }
    });
  }

  // f(part) for all parts < `parts`, as the leader.
  template <class F> void share(int64_t parts, const F& f) {
    if (parts == 1) return f(int64_t{0});
    const auto call = [](const void* context, int64_t part) {
      (*static_cast<const F*>(context))(part);
    };
    call_.store(call, std::memory_order_relaxed);
    context_.store(std::addressof(f), std::memory_order_relaxed);
    done_.store(0, std::memory_order_relaxed);
    job_ += kJob;
    state_.store(job_ | static_cast<uint64_t>(parts) << kEnd, std::memory_order_release);
    int64_t mine = 0;
    for (int64_t part; (part = take(true)) >= 0; ++mine) f(part);
    for (int spins = 0; done_.load(std::memory_order_acquire) < parts - mine;) rest(spins);
  }

 private:
  using Call = void (*)(const void*, int64_t);
  static constexpr int kEnd = 16;  // state: a job's number, the end of its free parts, their first
  static constexpr uint64_t kJob = uint64_t{1} << 32, kParts = (1 << kEnd) - 1;

  struct Over {
    Team& team;
    ~Over() { team.over_.store(true, std::memory_order_release); }
  };
  struct Done {
    Team& team;
    ~Done() { team.done_.fetch_add(1, std::memory_order_release); }
  };

  // A part that nobody has taken, or -1.
  int64_t take(bool first) {
    uint64_t state = state_.load(std::memory_order_acquire);
    for (;;) {
      const uint64_t begin = state & kParts, end = state >> kEnd & kParts;
      if (begin == end) return -1;
      const uint64_t next = first ? state + 1 : state - (uint64_t{1} << kEnd);
      if (state_.compare_exchange_weak(state, next, std::memory_order_acq_rel))
        return static_cast<int64_t>(first ? begin : end - 1);
    }
  }

  template <class G> void help(G&& background) {
    for (int spins = 0; !over_.load(std::memory_order_acquire);) {
      if (background()) continue;
      const int64_t part = take(false);
      if (part < 0) {
        rest(spins);
        continue;
      }
      const Done done{*this};  // though it may fail
      call_.load(std::memory_order_relaxed)(context_.load(std::memory_order_relaxed), part);
      spins = 0;
    }
  }

  static void rest(int& spins) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
    if (++spins % 256 == 0) std::this_thread::yield();  // the core may be needed elsewhere
  }

  uint64_t job_ = 0;
  alignas(64) std::atomic<uint64_t> state_{0};
  std::atomic<Call> call_{nullptr};
  std::atomic<const void*> context_{nullptr};
  alignas(64) std::atomic<int64_t> done_{0};
  std::atomic<bool> over_{false};
};

}  // namespace taeda::cpu
