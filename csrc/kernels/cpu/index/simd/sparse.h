// Inner loops of products with a matrix in compressed rows (CSR): row i has the elements
// [start[i], start[i + 1]), each with a column and a value. Nothing is checked here
// unless it says so.
#pragma once

#include <cstdint>

#include "kernels/cpu/simd/pick.h"

namespace taeda::cpu::simd {

// Whether rows that are read here and there are worth prefetching: long ones from the second cache,
// all from beyond it.
inline bool fetches_rows(int64_t rows, int64_t bytes) {
  return rows * bytes > (bytes < 256 ? caches().l2 : caches().l1);
}

template <class T> struct SparseLoops {
  // Row i of y (rows x width) = the sum of values[k] * row column[k] of x over row i's elements k.
  // Without `values` they are ones. x has `size` rows, which are worth prefetching where `fetch`.
  // False where a row ends before it begins or after the last one's end, or a column is outside;
  // start[0] and start[rows] are in order.
  bool (*product)(const int64_t* start, int64_t rows, const int64_t* column, const T* values,
                  const T* x, int64_t size, int64_t width, bool fetch, T* y);
  // The same of a vector x.
  bool (*times_vector)(const int64_t* start, int64_t rows, const int64_t* column, const T* values,
                       const T* x, int64_t size, T* y);
  // out[k] = the inner product of a's row i and row column[k] of b, for row i's elements k.
  void (*inner)(const int64_t* start, int64_t rows, const int64_t* column, const T* a, const T* b,
                int64_t width, T* out);
};

TAEDA_TABLES(ForFloats<SparseLoops>, sparse_kernels)

}  // namespace taeda::cpu::simd
