// Parts of a parallel loop that come one after another.
#pragma once

#include <atomic>
#include <cstdint>

namespace taeda::cpu {

// The items of one parallel_in_turn go through a short part of their work in order, between enter()
// and leave(). Threads take items in ascending order, so that whoever is waited for is at work; who
// waits for long sleeps.
class Turns {
 public:
  class Turn {
   public:
    Turn(Turns& turns, int64_t item) : turns_(turns), item_(item) {}
    ~Turn() {  // an item that fails before its turn lets the others pass
      if (over_) return;
      enter();
      leave();
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

    void enter() const {
      for (int i = 0; i < kSpins; ++i) {  // to sleep and wake takes longer than most turns
        if (turns_.next_.load(std::memory_order_acquire) == item_) return;
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
      }
      for (int64_t now; (now = turns_.next_.load(std::memory_order_acquire)) != item_;)
        turns_.next_.wait(now, std::memory_order_acquire);
    }
    void leave() {
      over_ = true;
      turns_.next_.store(item_ + 1, std::memory_order_release);
      turns_.next_.notify_all();
    }

   private:
    Turns& turns_;
    const int64_t item_;
    bool over_ = false;
  };

 private:
  static constexpr int kSpins = 1000;
  std::atomic<int64_t> next_{0};
};

}  // namespace taeda::cpu
