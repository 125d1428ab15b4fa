// Distances between all pairs of rows of two matrices, and cross products.
#pragma once

#include <cstdint>

#include "kernels/kernels.h"

namespace taeda {

// Vectors of three coordinates: an array of them in which a, b and the result have own strides, and
// own distances of the coordinates.
struct CrossShape {
  int64_t dims;  // 1 at least
  int64_t sizes[64], strides[3][64];
  int64_t apart[3];
};

template <class T> struct DistanceKernels {  // T: float, double
  // out (batches, m, n) = the p-norm of each row of a (batches, m, k) less each row of b (batches,
  // n, k); p >= 0, also 0 (how many differ) and infinity.
  KernelFn<void(const T* a, const T* b, T* out, int64_t batches, int64_t m, int64_t n, int64_t k,
                double p)>
      pairs;
  // The same for p = 2 by |a|^2 + |b|^2 - 2ab with a matrix product; pairs that are so near to one
  // another that this would lose digits are taken by their differences.
  KernelFn<void(const T* a, const T* b, T* out, int64_t batches, int64_t m, int64_t n, int64_t k)>
      pairs_by_product;
  // The p-norms of each row of a (n, k) less each later row, those of row 0 first: n (n - 1) / 2.
  KernelFn<void(const T* a, T* out, int64_t n, int64_t k, double p)> own_pairs;
  // square (n, n): zeros in its diagonal, pair (i, j) of such a list at [i, j] and [j, i].
  KernelFn<void(const T* pairs, T* square, int64_t n)> square_of_pairs;
  // pairs: square[i, j] + square[j, i] for i < j, in the same order.
  KernelFn<void(const T* square, T* pairs, int64_t n)> pairs_of_square;
  // gx (batches, m, k): for each row of a, the sum over the rows of b of g (batches, m, n) times
  // the sign of a - b.
  KernelFn<void(const T* g, const T* a, const T* b, T* gx, int64_t batches, int64_t m, int64_t n,
                int64_t k)>
      sum_signs;

  // out = a x b.
  KernelFn<void(const CrossShape& s, const T* a, const T* b, T* out)> cross;

  static const DistanceKernels cpu;
};

}  // namespace taeda
