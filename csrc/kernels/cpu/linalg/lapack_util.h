// What the calls to LAPACK share: threads, work space, batches.
#pragma once

#include <algorithm>
#include <cmath>

#include "base/thread_pool.h"
#include "kernels/cpu/common/scratch.h"
#include "kernels/cpu/linalg/lapack_routines.h"
#include "kernels/cpu/linalg/simd/batched.h"
#include "kernels/cpu/simd/pick.h"

extern "C" void scipy_openblas_set_num_threads(int count);

namespace taeda::cpu::lapack {

// Of a table of kernels that has one for each of both types of real numbers.
template <class T, class Kernels> const auto& loops_of(const Kernels& kernels) {
  if constexpr (sizeof(T) == 4) return kernels.f32;
  else return kernels.f64;
}

// f(begin, end) over a batch, each matrix of which takes some `work` multiplications. It is cut at
// multiples of `together`.
template <class F> void each(int64_t batch, double work, F&& f, int64_t together = 1) {
  [[maybe_unused]] static const bool once = (scipy_openblas_set_num_threads(1), true);
  constexpr double grain = 1 << 16, call = 256;  // what a call costs beside the arithmetic
  const auto most = static_cast<int64_t>(grain / std::min(work + call, grain));
  parallel_for(batch, (most + together - 1) / together * together, std::forward<F>(f));
}

// The answer to a query for work space, which is a number of the matrix's own type: a float may
// have been rounded down.
template <class T> int64_t work_size(T answer) {
  const double n = static_cast<double>(std::real(answer));
  return std::max(1, narrow(sizeof(Real<T>) == 4 ? std::ceil(n * (1 + 1e-6)) : n));
}

// f(i, work, lwork) for each matrix of a batch; asked for the size of its work space once before,
// by lwork = -1.
template <class T, class F> void each_with_work(int64_t batch, double work, F&& f) {
  if (batch == 0) return;
  T answer{};
  f(int64_t{0}, &answer, int64_t{-1});
  const int64_t lwork = work_size(answer);
  each(batch, work, [&](int64_t begin, int64_t end) {
    Scratch<T> space(lwork);
    for (int64_t i = begin; i < end; ++i) f(i, space.data(), lwork);
  });
}

template <class T> const simd::BatchedLoops<T>& batched_loops() {
  using namespace simd;
  return loops_of<T>(TAEDA_PICK(batched_kernels));
}

// How many matrices are factored together; 0 where each is on its own.
template <class T> int64_t factored_together(int64_t rows, int64_t cols) {
  if constexpr (!is_complex<T>) {
    if (std::max(rows, cols) <= simd::kSmallMatrix) return batched_loops<T>().lanes;
  }
  return 0;
}
// And how few of them are not worth it: lanes without a matrix compute for nothing.
inline int64_t least_to_factor(int64_t rows, int64_t cols) {
  return std::max(rows, cols) > 8 ? 2 : 1;
}
constexpr int64_t kSmallCholesky = 8;
// The same for Jacobi's rotations, which take several times the arithmetic of other methods and so
// need many lanes for larger matrices.
template <class T> int64_t rotated_together(int64_t rows, int64_t cols) {
  const int64_t lanes = factored_together<T>(rows, cols);
  return std::max(rows, cols) <= std::max<int64_t>(8, 2 * lanes) ? lanes : 0;
}
inline int64_t least_to_rotate(int64_t lanes, int64_t rows, int64_t cols) {
  const int64_t size = std::max(rows, cols);
  return size > 8 ? lanes / 2 : size > 2 ? 2 : 1;
}

// together(first, count) for up to `lanes` matrices of a batch; alone(matrix) for each where it
// returns false, and where fewer than `least` are left.
template <class F, class G>
void each_together(int64_t batch, double work, int64_t lanes, int64_t least, F&& together,
                   G&& alone) {
  each(
      batch, work,
      [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i += lanes) {
          const int64_t count = std::min(lanes, end - i);
          if (count >= least && together(i, count)) continue;
          for (int64_t j = i; j < i + count; ++j) alone(j);
        }
      },
      lanes);
}

// op(t) x = b for b (n x sides), or x op(t) = b for b (sides x n) unless how.left; t: n x n
// (lapack_solve.cpp).
template <class T>
void solve_triangle(int64_t n, int64_t sides, Triangle how, const T* t, int64_t ldt, T* b,
                    int64_t ldb);

// Whether squares of numbers up to `most` neither overflow nor vanish.
template <class T> bool is_moderate(T most) {
  const T least = std::sqrt(std::numeric_limits<T>::min() / std::numeric_limits<T>::epsilon());
  return most >= least && most <= 1 / least;
}

inline double product(int64_t a, int64_t b, int64_t c = 1) {
  return static_cast<double>(a) * static_cast<double>(b) * static_cast<double>(c);
}

}  // namespace taeda::cpu::lapack
