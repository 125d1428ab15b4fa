// Parts of a parallel loop that come one after another.
#pragma once

#include <atomic>
#include <cstdint>

namespace taeda::cpu {

// The items of one parallel_for pass through a short part of their work in order: each calls
// wait(item), then pass(), and must do so whatever happens. Threads take items in ascending order,
// so that whoever is waited for is at work; who waits for long sleeps.
class Turns {
 public:
  void wait(int64_t item) const {
    for (int64_t now; (now = next_.load(std::memory_order_acquire)) != item;)
      next_.wait(now, std::memory_order_acquire);
  }
  void pass() {
    next_.fetch_add(1, std::memory_order_release);
    next_.notify_all();
  }

 private:
  std::atomic<int64_t> next_{0};
};

}  // namespace taeda::cpu
