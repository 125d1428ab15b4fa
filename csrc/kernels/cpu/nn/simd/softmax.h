// Inner loops of softmax, log_softmax and cross entropy. Blocks of terms are summed in T, the
// blocks in double.
#pragma once

#include "kernels/cpu/simd/pick.h"

namespace taeda::cpu::simd {

constexpr int64_t kSoftmaxColumns = 256;  // the most columns of one call

template <class T> struct SoftmaxLoops {
  // `streamed`: y is written by non-temporal stores; each row of it begins at a cache line.
  using Rows = void (*)(int64_t rows, int64_t size, const T* x, T* y, bool streamed);
  using Columns = void (*)(int64_t size, int64_t step, int64_t width, const T* x, T* y);
  using RowsBackward = void (*)(int64_t rows, int64_t size, const T* g, const T* y, T* gx,
                                bool streamed);
  using ColumnsBackward = void (*)(int64_t size, int64_t step, int64_t width, const T* g,
                                   const T* y, T* gx);
  // Over contiguous rows, one after the other, and down `width` neighbouring columns of a matrix
  // whose rows are `step` apart.
  struct Pair {
    Rows rows;
    Columns columns;
    RowsBackward rows_backward;
    ColumnsBackward columns_backward;
  };
  Pair softmax, log_softmax;
  // stats[2 r], stats[2 r + 1]: the largest m of row r, and the sum of exp(x - m).
  void (*entropy_stats)(int64_t rows, int64_t size, const T* x, double* stats);
  // y = scale * softmax(x) of one row with these stats. Here y may begin anywhere.
  void (*scaled_softmax)(const T* x, int64_t size, const double* stats, double scale, T* y,
                         bool streamed);
};

TAEDA_TABLES(ForFloats<SoftmaxLoops>, softmax_kernels)

}  // namespace taeda::cpu::simd
