// Finding the first of many, which the host waits for.
#pragma once

#include <cstdint>

#include "kernels/cuda/launch.h"

namespace taeda::cuda {

inline constexpr int64_t kNone = INT64_MAX;

// The first i < n for which wanted(i) is true, or kNone.
template <class F> int64_t find_first(int64_t n, F wanted) {
  if (n == 0) return kNone;
  const Workspace memory(sizeof(int64_t));
  auto* first = memory.as<unsigned long long>();
  each(1, [=] __device__(int64_t) { *first = kNone; });
  each(n, [=] __device__(int64_t i) {
    if (wanted(i)) atomicMin(first, static_cast<unsigned long long>(i));
  });
  return static_cast<int64_t>(read_back(first));
}

}  // namespace taeda::cuda
