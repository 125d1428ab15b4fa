// Warnings of the core. csrc/python hands them to Python's `warnings`.
#pragma once

#include <atomic>
#include <string>

namespace taeda {

// Set by csrc/python. May throw: the user may have made warnings errors.
extern std::atomic<void (*)(const char* text)> warning_handler;
// Warnings that are given once in a process are given every time.
extern std::atomic<bool> warn_always;

inline void warn(const std::string& text) {
  if (auto* handler = warning_handler.load()) handler(text.c_str());
}

// A warning that is given once in a process.
class WarnOnce {
 public:
  constexpr explicit WarnOnce(const char* text) : text_(text) {}
  void operator()() {
    if (given_.load(std::memory_order_relaxed) && !warn_always.load(std::memory_order_relaxed))
      return;
    given_ = true;
    warn(text_);
  }

 private:
  const char* text_;
  std::atomic<bool> given_ = false;
};

}  // namespace taeda
