// Mean and squared distances from it, of numbers that come in batches.
#pragma once

#include "kernels/cuda/common/vector.h"

namespace taeda::cuda {

// Of `count` numbers: their mean, and the sum of squared distances from it.
struct Moments {
  double count, mean, m2;
};
// As Chan et al. 1979.
__device__ inline Moments merged(Moments a, Moments b) {
  const double count = a.count + b.count;
  if (count == 0) return a;
  const double apart = b.mean - a.mean, part = b.count / count;
  return {count, a.mean + apart * part, a.m2 + b.m2 + apart * apart * a.count * part};
}

// At most some dozens of numbers, whose distances from the first one add up in T: what cancels out
// in the end is at most as many times what the first is away from the mean.
template <class T> struct MomentBatch {
  T first = 0, sum = 0, squares = 0;

  MomentBatch() = default;
  __device__ explicit MomentBatch(T first) : first(first) {}
  __device__ __forceinline__ void add(T v) {
    const T apart = v - first;
    sum += apart;
    squares += apart * apart;
  }
  __device__ Moments moments(int count) const {
    const double part = static_cast<double>(sum) / count;
    return {static_cast<double>(count), first + part, squares - part * sum};
  }
};

}  // namespace taeda::cuda
