// Finding the first of many.
#pragma once

#include <cstdint>

#include "kernels/cuda/launch.h"

namespace taeda::cuda {

inline constexpr int64_t kNone = INT64_MAX;

// The first i < n for which is_behind(i) is true, as it is for all that follow; or n.
template <class F> __device__ int64_t first_behind(int64_t n, F is_behind) {
  int64_t low = 0, high = n;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (is_behind(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

// The first i < n for which wanted(i) is true, or kNone; the host waits for it.
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
