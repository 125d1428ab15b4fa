// What the calls to LAPACK share: threads, work space, batches.
#pragma once

#include <algorithm>
#include <cmath>

#include "base/thread_pool.h"
#include "kernels/cpu/common/scratch.h"
#include "kernels/cpu/linalg/lapack_routines.h"
#include "kernels/cpu/linalg/simd/batched.h"

namespace taeda::cpu::lapack {

// f(begin, end) over a batch, each matrix of which takes some `work` multiplications. It is cut at
// multiples of `together`.
template <class F> void each(int64_t batch, double work, F&& f, int64_t together = 1) {
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

// What a routine works in: arrays of the matrix's own type, of real numbers and of integers.
template <class T> struct Workspace {
  T* work;
  int64_t lwork;
  Real<T>* rwork;
  int64_t lrwork;
  int* iwork;
  int64_t liwork;
};
template <class T> class WorkSizes {
 public:
  // Asks f(workspace), a call of a routine, with -1 for sizes. Not all routines tell how many real
  // numbers and integers they need: those are the least.
  template <class F> explicit WorkSizes(F&& f, int64_t least_rwork = 1, int64_t least_iwork = 1) {
    T answer{};
    Real<T> real_answer{};
    int int_answer = 0;
    f(Workspace<T>{&answer, -1, &real_answer, -1, &int_answer, -1});
    lwork_ = work_size(answer);
    lrwork_ = std::max(least_rwork, work_size(real_answer));
    liwork_ = std::max(least_iwork, int64_t{int_answer});
  }
  // f(workspace) with as much as was asked for.
  template <class F> void use(F&& f) const {
    Scratch<T> work(lwork_);
    Scratch<Real<T>> rwork(lrwork_);
    Scratch<int> iwork(liwork_);
    f(Workspace<T>{work.data(), lwork_, rwork.data(), lrwork_, iwork.data(), liwork_});
  }

 private:
  int64_t lwork_, lrwork_, liwork_;
};

// f(i, workspace) for each matrix of a batch; asked for the workspace's sizes once before.
template <class T, class F>
void each_with_work(int64_t batch, double work, F&& f, int64_t least_rwork = 1) {
  if (batch == 0) return;
  const WorkSizes<T> sizes([&](const Workspace<T>& w) { f(int64_t{0}, w); }, least_rwork);
  each(batch, work, [&](int64_t begin, int64_t end) {
    sizes.use([&](const Workspace<T>& w) {
      for (int64_t i = begin; i < end; ++i) f(i, w);
    });
  });
}

template <class T> const simd::BatchedLoops<T>& batched_loops() {
  return typed<T>(TAEDA_PICK(batched_kernels));
}

// How many matrices of a batch are computed together, and how few of them are not worth it, since
// lanes without a matrix compute for nothing. No lanes: each is on its own.
struct Together {
  int64_t lanes = 0, least = 1;
};
template <class T> Together factored_together(int64_t batch, int64_t rows, int64_t cols) {
  const int64_t size = std::max(rows, cols);
  if constexpr (!is_complex<T>) {
    if (size <= simd::kSmallMatrix && (batch > 1 || size <= 8)) return {batched_loops<T>().lanes};
  }
  return {};
}
// The same for Jacobi's rotations, which take several times the arithmetic of other methods and so
// need many lanes for larger matrices.
template <class T> Together rotated_together(int64_t batch, int64_t rows, int64_t cols) {
  const int64_t lanes = factored_together<T>(batch, rows, cols).lanes, size = std::max(rows, cols);
  if (size > std::max<int64_t>(8, 2 * lanes)) return {};
  return {lanes, size > 8 ? lanes / 2 : size > 2 ? 2 : 1};
}

// some(loops, first, count) for up to how.lanes real matrices of a batch, one(matrix) for each
// where it returns false.
template <class T, class F, class G>
void each_together(int64_t batch, double work, Together how, F&& some, G&& one) {
  const int64_t step = std::max<int64_t>(how.lanes, 1);
  each(
      batch, work,
      [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i += step) {
          const int64_t count = std::min(step, end - i);
          if constexpr (!is_complex<T>) {
            if (how.lanes && count >= how.least && some(batched_loops<T>(), i, count)) continue;
          }
          for (int64_t j = i; j < i + count; ++j) one(j);
        }
      },
      step);
}

// op(t) x = b for b (n x sides), or x op(t) = b for b (sides x n) unless how.left; t: n x n
// (lapack_solve.cpp).
template <class T>
void solve_triangle(int64_t n, int64_t sides, TriangularSystem how, const T* t, int64_t ldt, T* b,
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
