#include "kernels/cuda/runtime/history.h"

#include <atomic>
#include <chrono>
#include <sstream>

namespace taeda::cuda {
namespace {

std::atomic<int64_t (*)()> allocating = nullptr, freeing = nullptr;

int64_t ask(const std::atomic<int64_t (*)()>& who) {
  auto* const stack = who.load(std::memory_order_relaxed);
  return stack ? stack() : kNoStack;
}

}  // namespace

int64_t stack_of_allocation() { return ask(allocating); }
int64_t stack_of_free() { return ask(freeing); }
void choose_stacks(const HistorySettings& settings) {
  allocating = settings.allocating;
  freeing = settings.freeing;
}

void History::choose(const HistorySettings& settings, bool clear) {
  settings_ = settings;
  if (clear) entries_.clear();
}

void History::add(const char* action, const void* at, size_t size, StreamHandle stream,
                  int64_t stack) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const int64_t time = std::chrono::duration_cast<std::chrono::microseconds>(now).count();
  entries_.push_back({action, at, size, stream, stack, time});
  while (entries_.size() > settings_.most) entries_.pop_front();
}

std::string History::json() const {
  std::ostringstream s;
  s << '[';
  const char* separator = "";
  for (const Entry& e : entries_) {
    s << separator << "{\"action\":\"" << e.action
      << "\",\"addr\":" << reinterpret_cast<uintptr_t>(e.at) << ",\"size\":" << e.size
      << ",\"stream\":" << reinterpret_cast<uintptr_t>(e.stream) << ",\"time_us\":" << e.time
      << ",\"frames\":" << e.stack << '}';
    separator = ",";
  }
  s << ']';
  return s.str();
}

}  // namespace taeda::cuda
