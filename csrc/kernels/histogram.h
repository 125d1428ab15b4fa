// Counting elements into bins.
#pragma once

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

template <class T> struct HistogramKernels {  // T: float, double
  // out[b] += how many of n numbers fall into the b-th of `bins` equal intervals of [low, high], by
  // (v - low) * bins / (high - low). Those outside do not count.
  KernelFn<void(const T* x, int64_t n, T low, T high, int64_t bins, int64_t* out)> even;
  // out[b] += how many of n numbers lie in [edges[b], edges[b + 1]), the last one with its end. The
  // edges are about equally far from each other.
  KernelFn<void(const T* x, int64_t n, const T* edges, int64_t bins, int64_t* out)> between;

  static const HistogramKernels cpu;
};

}  // namespace taeda
