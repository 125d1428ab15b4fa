#include "kernels/cuda/runtime/sync_debug.h"

#include <atomic>

#include "base/error.h"

namespace taeda::cuda {
namespace {

std::atomic<SyncDebug> mode = SyncDebug::Off;
std::atomic<void (*)()> warning = nullptr;

}  // namespace

void set_sync_debug(SyncDebug wanted, void (*warn)()) {
  warning = warn;
  mode = wanted;
}

void report_wait() {
  const SyncDebug now = mode.load(std::memory_order_relaxed);
  if (now == SyncDebug::Off) [[likely]]
    return;
  check(now != SyncDebug::Error, "called a synchronizing CUDA operation");
  if (auto* warn = warning.load()) warn();
}

}  // namespace taeda::cuda
