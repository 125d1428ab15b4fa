// What an allocator has done, for pictures of a program's memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

#include "kernels/cuda/runtime/driver.h"

namespace taeda::cuda {

// What programs choose to be noted of all devices.
struct HistorySettings {
  bool trace = false;  // every action, the last `most` of them
  size_t most = SIZE_MAX;
  // Who calls: a number for the stack of the calling thread. Null: nobody asks.
  int64_t (*allocating)() = nullptr;
  int64_t (*freeing)() = nullptr;
};
constexpr int64_t kNoStack = -1;

class History {
 public:
  void choose(const HistorySettings& settings, bool clear);
  void note(const char* action, const void* at, size_t size, StreamHandle stream,
            int64_t stack = kNoStack) {
    if (settings_.trace) [[unlikely]]
      add(action, at, size, stream, stack);
  }
  std::string json() const;

 private:
  struct Entry {
    const char* action;
    const void* at;
    size_t size;
    StreamHandle stream;
    int64_t stack, time;
  };
  void add(const char* action, const void* at, size_t size, StreamHandle stream, int64_t stack);

  HistorySettings settings_;
  std::deque<Entry> entries_;
};

// The calling thread's stack, where it is asked for. Not to be called with a lock.
int64_t stack_of_allocation();
int64_t stack_of_free();
void choose_stacks(const HistorySettings& settings);

}  // namespace taeda::cuda
