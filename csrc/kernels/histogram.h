// Counting elements into bins.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "base/dtype.h"
#include "kernels/kernels.h"

namespace taeda {

struct CountKernels {
  // The least and the greatest of n > 0 whole numbers.
  KernelFn<std::pair<int64_t, int64_t>(const void* x, int64_t n, DType dtype)> range;
  // out[v] += how often v comes among n whole numbers, all of which lie in [0, bins).
  KernelFn<void(const void* x, int64_t n, DType dtype, int64_t bins, int64_t* out)> count;

  static const CountKernels cpu;
};

constexpr int64_t kMostBins = std::numeric_limits<int32_t>::max() - 1;

// `bins` is at most kMostBins: the bins of some elements, and the number after the last, are int32.
template <class T> struct HistogramKernels {  // T: float, double
  // out[b] += how many of n numbers fall into the b-th of `bins` equal intervals of [low, high], by
  // (v - low) * bins / (high - low). Those outside do not count.
  KernelFn<void(const T* x, int64_t n, T low, T high, int64_t bins, int64_t* out)> even;
  // out[b] += how many of n numbers lie in [edges[b], edges[b + 1]), the last one with its end. The
  // edges are about equally far from each other.
  KernelFn<void(const T* x, int64_t n, const T* edges, int64_t bins, int64_t* out)> between;

  static const HistogramKernels cpu;
};

// Where v of [low, high] falls; the last bin where a difference is beyond what T can hold.
template <class T, class I> constexpr I even_bin(T v, T low, T high, I bins) {
  const T at = (v - low) * static_cast<T>(bins) / (high - low);
  return at < static_cast<T>(bins) ? std::min(static_cast<I>(at), bins - 1) : bins - 1;
}

// Where v of [edges[0], edges[bins]] falls, scale: bins / (edges[bins] - edges[0]). A guess, and
// steps from there to where the edges say.
template <class T> constexpr int64_t bin_between(T v, const T* edges, int64_t bins, T scale) {
  const T guess = (v - edges[0]) * scale;
  int64_t b =
      guess > T(0) ? (guess < static_cast<T>(bins) ? static_cast<int64_t>(guess) : bins) : 0;
  b = std::min(b, bins - 1);
  while (b > 0 && v < edges[b]) --b;
  while (b + 1 < bins && v >= edges[b + 1]) ++b;
  return b;
}

}  // namespace taeda
