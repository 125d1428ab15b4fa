// Sums of rows by index, and the gradient of the table that they come from.
#pragma once

#include <cstdint>

#include "kernels/kernels.h"

namespace taeda {

template <class T> struct EmbeddingKernels {  // T: float, double
  // Row i of out (bags x width) is the sum of the `size` rows of the table at index[i * size] and
  // after. False where an index is outside [0, rows); then some rows of out are not written.
  KernelFn<bool(int64_t bags, int64_t size, int64_t rows, int64_t width, const T* table,
                const int64_t* index, T* out)>
      sum_rows;
  // out (rows x width) = 0, then out[index[i]] += g[i] for each of the `count` rows of g whose
  // index is not `skip`. Every index lies in [0, rows). Rows are added in the order in which they
  // come, whatever the number of threads.
  KernelFn<void(int64_t count, int64_t rows, int64_t width, const T* g, const int64_t* index,
                int64_t skip, T* out)>
      add_rows;
  // Scales the rows at `index` of a table (rows, width) whose p-norm is above `most` down to it.
  KernelFn<void(int64_t count, int64_t rows, int64_t width, const int64_t* index, double most,
                double p, T* table)>
      shorten_rows;

  static const EmbeddingKernels cpu;
};

}  // namespace taeda
