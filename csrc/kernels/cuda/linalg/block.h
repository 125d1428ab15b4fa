// What a block of threads does with one matrix of a batch.
#pragma once

#include "kernels/cuda/common/group.h"
#include "kernels/cuda/linalg/matrices.h"

namespace taeda::cuda {

// Blocks of as many threads as have something to do, and one block for each matrix.
inline unsigned threads_for(int64_t work, unsigned most = kThreads) {
  unsigned threads = 32;
  while (threads < most && threads < work) threads *= 2;
  return threads;
}
inline constexpr unsigned kManyThreads = 1024;  // of blocks that have a tall matrix
inline unsigned grid_of(int64_t batch) {
  if (batch >= kMostElements) missing_kernel();
  return static_cast<unsigned>(batch);
}

// f(i) for all i < n, which the threads of a block share.
template <class F> __device__ void by_threads(int64_t n, F f) {
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x) f(i);
}

template <class S> __device__ RealPartOf<S> largest_part(S v) {
  if constexpr (is_complex<S>) return ::fmax(::fabs(v.re), ::fabs(v.im));
  else return ::fabs(v);
}
// Part by part: the quotient of complex numbers takes the divisor's inverse, which may overflow.
template <class S> __device__ S divided(S v, RealPartOf<S> by) {
  if constexpr (is_complex<S>) return S(v.re / by, v.im / by);
  else return v / by;
}
template <class S> __device__ RealPartOf<S> squared(S v) { return real_part(conjugate(v) * v); }

// The norm of the elements from `first` on, times `factor`, for all threads of the block. Squares
// do not overflow.
template <class S>
__device__ RealPartOf<S> norm_of(const S* x, int64_t first, int64_t n, RealPartOf<S> factor = 1) {
  using R = RealPartOf<S>;
  R own = 0;
  for (int64_t i = first + threadIdx.x; i < n; i += blockDim.x)
    own = ::fmax(own, largest_part(S(factor) * x[i]));
  const R most = group_all(own, [](R a, R b) { return a > b ? a : b; });
  const R scale = most > 0 ? most : R(1);
  R squares = 0;
  for (int64_t i = first + threadIdx.x; i < n; i += blockDim.x)
    squares += squared(divided(S(factor) * x[i], scale));
  return scale * ::sqrt(group_sum(squares));
}

}  // namespace taeda::cuda
