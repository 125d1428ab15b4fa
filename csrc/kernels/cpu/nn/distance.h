// Distances between all pairs of rows of two matrices.
#pragma once

#include <cstdint>

#include "base/dims.h"

namespace taeda::cpu {

// Vectors of three coordinates, `apart` elements from one another.
template <class T> struct Vectors {
  T* data;
  DimsRef strides;
  int64_t apart;
};

template <class T> struct Distances {
  // out (batches, m, n) = the p-norm of each row of a (batches, m, k) less each row of b (batches,
  // n, k). T: float or double; p >= 0, also 0 (how many differ) and infinity.
  static void pair_distances(const T* a, const T* b, T* out, int64_t batches, int64_t m, int64_t n,
                             int64_t k, double p);

  // The same for p = 2 by |a|^2 + |b|^2 - 2ab with a matrix product; pairs that are so near to one
  // another that this would lose digits are taken by their differences.
  static void pair_distances_by_product(const T* a, const T* b, T* out, int64_t batches, int64_t m,
                                        int64_t n, int64_t k);

  // The p-norms of each row of a (n, k) less each later row, those of row 0 first: n (n - 1) / 2.
  static void own_distances(const T* a, T* out, int64_t n, int64_t k, double p);

  // gx (batches, m, k): for each row of a, the sum over the rows of b of g (batches, m, n) times
  // the sign of a - b.
  static void sum_distance_gradient(const T* g, const T* a, const T* b, T* gx, int64_t batches,
                                    int64_t m, int64_t n, int64_t k);

  // out = a x b, for an array of such vectors.
  static void cross(DimsRef sizes, const Vectors<const T>& a, const Vectors<const T>& b,
                    const Vectors<T>& out);
};

}  // namespace taeda::cpu
