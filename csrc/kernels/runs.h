// Runs of equal neighbours: what unique and mode find in sorted numbers.
#pragma once

#include <cstdint>

#include "base/dtype.h"
#include "kernels/kernels.h"

namespace taeda {

// Elements equal to the one before them form a run with it. NaN equals nothing.
struct RunKernels {
  // The first element of each run of n > 0, into memory for n. Returns the number of runs.
  KernelFn<int64_t(DType dtype, const void* x, int64_t n, void* first)> take_first;
  KernelFn<int64_t(DType dtype, const void* x, int64_t n)> count;
  // Of `runs` > 0 runs the first elements, the lengths and, unless null, run_of[order[i]], or
  // run_of[i] without an order: in which of them x[i] is.
  KernelFn<void(DType dtype, const void* x, int64_t n, int64_t runs, const int64_t* order,
                void* first, int64_t* lengths, int64_t* run_of)>
      split;
  // Of n rows of m, sorted first where `sort`, runs of equal rows: the first one of each and its
  // length, in memory for n, and the run of each row. Returns the number of runs.
  KernelFn<int64_t(DType dtype, const void* x, int64_t n, int64_t m, bool sort, int64_t* first,
                   int64_t* lengths, int64_t* run_of)>
      of_rows;
  // For each sorted row of n numbers, the first of the most frequent values and `order` of its last
  // occurrence.
  KernelFn<void(DType dtype, const void* sorted, const int64_t* order, void* values,
                int64_t* indices, int64_t rows, int64_t n)>
      modes;

  static const RunKernels cpu;
};

namespace plain::runs {

// The last occurrence of the first of the most frequent of n sorted numbers.
template <class T> constexpr int64_t last_of_mode(const T* sorted, int64_t n) {
  int64_t best = 0, best_length = 0;
  for (int64_t begin = 0, end = 0; begin < n; begin = end) {
    for (end = begin + 1; end < n && sorted[end] == sorted[begin];) ++end;
    if (end - begin > best_length) {
      best_length = end - begin;
      best = end - 1;
    }
  }
  return best;
}

}  // namespace plain::runs

}  // namespace taeda
