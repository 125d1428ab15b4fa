// Distances between all pairs of rows of two matrices.
#pragma once

#include <cstdint>

namespace taeda::cpu {

// out (batches, m, n) = the p-norm of each row of a (batches, m, k) less each row of b (batches, n,
// k). T: float or double; p >= 0, also 0 (how many differ) and infinity.
template <class T>
void pair_distances(const T* a, const T* b, T* out, int64_t batches, int64_t m, int64_t n,
                    int64_t k, double p);

// The same for p = 2 by |a|^2 + |b|^2 - 2ab with a matrix product; pairs that are so near to one
// another that this would lose digits are taken by their differences.
template <class T>
void pair_distances_by_product(const T* a, const T* b, T* out, int64_t batches, int64_t m,
                               int64_t n, int64_t k);

}  // namespace taeda::cpu
