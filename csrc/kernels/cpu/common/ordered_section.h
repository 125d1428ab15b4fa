// A section of a parallel loop that its items run through one after another.
#pragma once

#include <atomic>
#include <cstdint>

namespace taeda::cpu {

// The items of a parallel_ordered loop run a short part of their work in order, between enter() and
// leave() of their ticket. Threads take items in ascending order, so the one that others wait for
// is running. Long waits sleep.
class OrderedSection {
 public:
  class Ticket {
   public:
    Ticket(OrderedSection& section, int64_t item) : section_(section), item_(item) {}
    ~Ticket() {  // an item that fails before it has entered lets the others pass
      if (over_) return;
      enter();
      leave();
    }
    Ticket(const Ticket&) = delete;
    Ticket& operator=(const Ticket&) = delete;

    void enter() const {
      for (int i = 0; i < kSpins; ++i) {  // shorter than sleeping and waking
        if (section_.next_.load(std::memory_order_acquire) == item_) return;
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
      }
      for (int64_t now; (now = section_.next_.load(std::memory_order_acquire)) != item_;)
        section_.next_.wait(now, std::memory_order_acquire);
    }
    void leave() {
      over_ = true;
      section_.next_.store(item_ + 1, std::memory_order_release);
      section_.next_.notify_all();
    }

   private:
    OrderedSection& section_;
    const int64_t item_;
    bool over_ = false;
  };

 private:
  static constexpr int kSpins = 1000;
  std::atomic<int64_t> next_{0};
};

}  // namespace taeda::cpu
