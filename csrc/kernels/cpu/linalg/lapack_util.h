// What the calls to LAPACK share: sizes, threads, work space.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "base/error.h"
#include "base/thread_pool.h"
#include "kernels/cpu/common/scratch.h"
#include "kernels/cpu/linalg/lapack.h"
#include "kernels/cpu/linalg/simd/matrices.h"
#include "kernels/cpu/linalg/simd/triangles.h"
#include "kernels/cpu/simd/pick.h"

extern "C" void scipy_openblas_set_num_threads(int count);

namespace taeda::cpu::lapack {

inline int narrow(double n) {
  check(n <= std::numeric_limits<int>::max(), "linalg: a matrix or its work space of ", n,
        " elements is more than LAPACK's 32-bit sizes can express");
  return static_cast<int>(n);
}
inline int narrow(int64_t n) { return narrow(static_cast<double>(n)); }
// A leading dimension: at least 1.
inline int leading(int64_t n) { return std::max(narrow(n), 1); }

// f(begin, end) over a batch, each matrix of which takes some `work` multiplications; it is cut at
// multiples of `together`.
template <class F> void each(int64_t batch, double work, F&& f, int64_t together = 1) {
  [[maybe_unused]] static const bool once = (scipy_openblas_set_num_threads(1), true);
  constexpr double grain = 1 << 16, call = 256;  // what a call costs beside the arithmetic
  const auto most = static_cast<int64_t>(grain / std::min(work + call, grain));
  parallel_for(batch, (most + together - 1) / together * together, std::forward<F>(f));
}

// What computes with small matrices of float or double, some at once.
template <class T> const simd::MatrixLoops<T>& small_loops() {
  using namespace simd;
  if constexpr (sizeof(T) == 4) return TAEDA_PICK(matrix_kernels).f32;
  else return TAEDA_PICK(matrix_kernels).f64;
}

// What computes with one matrix of moderate size.
template <class T> const simd::TriangleLoops<T>& triangle_loops() {
  using namespace simd;
  if constexpr (sizeof(T) == 4) return TAEDA_PICK(triangle_kernels).f32;
  else return TAEDA_PICK(triangle_kernels).f64;
}

// How many matrices are factored, or rotated, at once; 0 where LAPACK does it. Rotations take long
// where matrices are not that small, so they need many lanes.
template <class T> int64_t factored_at_once(int64_t rows, int64_t cols) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::max(rows, cols) <= simd::kSmallMatrix) return small_loops<T>().lanes;
  }
  return 0;
}
template <class T> int64_t rotated_at_once(int64_t rows, int64_t cols) {
  const int64_t lanes = factored_at_once<T>(rows, cols);
  return std::max(rows, cols) <= std::max<int64_t>(8, 2 * lanes) ? lanes : 0;
}

// together(first, count) over the matrices from `begin` to `end`, `most` at once; alone(matrix) for
// each where it returns false, and where fewer than `few` are left.
template <class F, class G>
void each_together(int64_t begin, int64_t end, int64_t most, int64_t few, F&& together, G&& alone) {
  for (int64_t i = begin; i < end; i += most) {
    const int64_t count = std::min(most, end - i);
    if (count >= few && together(i, count)) continue;
    for (int64_t j = i; j < i + count; ++j) alone(j);
  }
}
// Of rotations, which take longer than what is done for one alone.
inline int64_t few_to_rotate(int64_t lanes, int64_t rows, int64_t cols) {
  const int64_t size = std::max(rows, cols);
  return size > 8 ? lanes / 2 : size > 2 ? 2 : 1;
}

inline double product(int64_t a, int64_t b, int64_t c = 1) {
  return static_cast<double>(a) * static_cast<double>(b) * static_cast<double>(c);
}

// The answer to a query for work space, which comes as a number of the matrix's own type: the float
// may have been rounded down.
template <class T> int work_size(T answer) {
  const double n = static_cast<double>(std::real(answer));
  return std::max(1, narrow(sizeof(Real<T>) == 4 ? std::ceil(n * (1 + 1e-6)) : n));
}

}  // namespace taeda::cpu::lapack
