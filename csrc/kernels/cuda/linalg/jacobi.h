// Rotations that make an element between two columns zero, after Jacobi (1846), and the order in
// which all pairs of columns have their turn.
#pragma once

#include "kernels/cuda/linalg/block.h"
#include "kernels/functors/elementary.h"

namespace taeda::cuda {

inline constexpr int kMostSweeps = 30;

template <class R>
inline constexpr R kEpsilon = same_type<R, float> ? R(1.1920929e-7) : R(2.220446049250313e-16);

// Columns p and q become c p - s q and s p + c q, after q has been multiplied by `phase`.
template <class S> struct Rotation {
  using R = RealPartOf<S>;
  R c = 1, s = 0, t = 0;
  S phase{1};

  Rotation() = default;
  // Of a Hermitian matrix with the diagonal elements p and q and `between` at (p, q), whose
  // absolute value is `size`.
  __device__ Rotation(R p, R q, S between, R size) {
    const R zeta = (q - p) / (2 * size);
    t = (zeta < 0 ? R(-1) : R(1)) / (::fabs(zeta) + ::hypot(R(1), zeta));
    c = 1 / ::sqrt(1 + t * t);
    s = t * c;
    phase = conjugate(between / S(size));
  }
  __device__ void apply(S& p, S& q) const {
    const S x = p, y = phase * q;
    p = S(c) * x - S(s) * y;
    q = S(s) * x + S(c) * y;
  }
  // The same of rows.
  __device__ void apply_to_rows(S& p, S& q) const {
    const S x = p, y = conjugate(phase) * q;
    p = S(c) * x - S(s) * y;
    q = S(s) * x + S(c) * y;
  }
};

// Round robin: in n - 1 turns of n (even) all pairs meet, each number once in every turn.
struct ColumnPair {
  int64_t p, q;
};
__device__ inline ColumnPair pair_of(int64_t n, int64_t turn, int64_t k) {
  const int64_t around = n - 1;
  const int64_t a = k == 0 ? around : (turn + k) % around, b = (turn + around - k) % around;
  return a < b ? ColumnPair{a, b} : ColumnPair{b, a};
}

// Each matrix is divided by its largest element, `scale`: then squares do not overflow, and what is
// left has all its digits.
template <class S, class R>
__global__ void __launch_bounds__(kThreads) shrink(int64_t elements, S* a, R* scale) {
  a += blockIdx.x * elements;
  R own = 0;
  by_threads(elements, [&](int64_t i) {
    const R size = portable::abs(a[i]);
    own = size > own ? size : own;
  });
  const R most = group_all(own, [](R x, R y) { return x > y ? x : y; });
  const R divisor = most > 0 ? most : R(1);
  by_threads(elements, [&](int64_t i) { a[i] = divided(a[i], divisor); });
  if (threadIdx.x == 0) scale[blockIdx.x] = divisor;
}

// Matrices of more columns are shared by many blocks, with a launch for each turn.
inline constexpr int64_t kMostOfBlock = 32;

// turn(number) for all turns of n columns, until a sweep over all pairs leaves *rotates false, or
// the last; whether it did. The host waits after each sweep.
template <class Turn> bool sweep(int64_t n, int* rotates, Turn turn) {
  const int64_t even = n + n % 2;
  for (int k = 0; k < kMostSweeps; ++k) {
    write_codes(1, 0, rotates);
    for (int64_t t = 0; t < even - 1; ++t) turn(t);
    if (read_back(rotates) == 0) return true;
  }
  return false;
}

// The number of `values` that come before value i.
template <class R, class Before>
__device__ int64_t rank_of(int64_t n, const R* values, int64_t i, Before before) {
  int64_t rank = 0;
  for (int64_t j = 0; j < n; ++j)
    rank += before(values[j], values[i]) || (j < i && !before(values[i], values[j]));
  return rank;
}

}  // namespace taeda::cuda
