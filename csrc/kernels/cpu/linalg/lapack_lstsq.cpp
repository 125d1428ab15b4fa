// Least squares: LAPACK's, but for full-rank problems by QR, which use our QR.
#include "kernels/cpu/linalg/lapack_qr.h"
#include "kernels/cpu/linalg/lapack_util.h"

namespace taeda::cpu::lapack {
namespace {

constexpr int64_t kDivide = 48;  // rows and columns from which gelss is slower than gelsd

// The same as gels for m >= n, with our QR: R x = Q' b. Returns LAPACK's info.
template <class T> int32_t solve_by_qr(int64_t m, int64_t n, int64_t cols, T* a, T* b) {
  Scratch<T> tau(n);
  factor_qr(m, n, a, tau.data());
  multiply_reflectors(m, cols, true, n, a, m, tau.data(), b, m);
  for (int64_t i = 0; i < n; ++i) {
    if (a[i * (m + 1)] == T(0)) return narrow(i + 1);
  }
  solve_triangle(n, cols, {.left = true, .upper = true, .unit = false, .trans = Trans::No}, a, m, b,
                 m);
  return 0;
}

template <class T>
void least_squares(LeastSquares method, MatrixBatch shape, int64_t b_cols, T* a, T* b, double rcond,
                   int32_t* rank, Real<T>* s, int32_t* info) {
  using R = Real<T>;
  const int64_t m = shape.rows, n = shape.cols, k = std::min(m, n), high = std::max(m, n);
  if (method == LeastSquares::SVD && k >= kDivide) method = LeastSquares::DivideAndConquer;
  narrow(product(high, k) * 2 + product(k, b_cols) + 64 * static_cast<double>(high + b_cols));
  const R limit = static_cast<R>(rcond);
  const int64_t ldb = leading(high);
  // One problem by LAPACK. What a method does not use is small.
  auto solve = [&](T* x, T* y, int* own_rank, R* values, const Workspace<T>& w, int32_t* status) {
    auto run = [&](auto routine, auto pivots_or_values, auto... last) {
      call(routine, m, n, b_cols, x, leading(m), y, ldb, pivots_or_values, &limit, own_rank, w.work,
           w.lwork, if_complex<T>(w.rwork), last..., status);
    };
    switch (method) {
      case LeastSquares::QR:
        return call(Routines<T>::gels, 'N', m, n, b_cols, x, leading(m), y, ldb, w.work, w.lwork,
                    status);
      case LeastSquares::PivotedQR:
        if (w.lwork > 0) std::fill_n(w.iwork, n, 0);  // all columns may be exchanged
        return run(Routines<T>::gelsy, w.iwork);
      case LeastSquares::DivideAndConquer: return run(Routines<T>::gelsd, values, w.iwork);
      case LeastSquares::SVD: return run(Routines<T>::gelss, values);
    }
  };
  int any_rank = 0, any_status = 0;
  R any_value{};
  const WorkSizes<T> sizes(
      [&](const Workspace<T>& w) { solve(a, b, &any_rank, &any_value, w, &any_status); }, 5 * high,
      n);
  auto one = [&](int64_t i, R* values, const Workspace<T>& w) {
    T *x = a + i * m * n, *y = b + i * high * b_cols;
    if constexpr (!is_complex<T>) {
      if (method == LeastSquares::QR && m >= n &&
          is_moderate(reflector_loops<T>().largest_size(m * n, x)) &&
          is_moderate(reflector_loops<T>().largest_size(m * b_cols, y))) {
        info[i] = solve_by_qr(m, n, b_cols, x, y);
        return;
      }
    }
    int own_rank = 0;
    solve(x, y, rank ? rank + i : &own_rank, s ? s + i * k : values, w, info + i);
  };
  each(shape.count, product(m, n, k) * 4, [&](int64_t begin, int64_t end) {
    Scratch<R> values(k);
    sizes.use([&](const Workspace<T>& w) {
      for (int64_t i = begin; i < end; ++i) one(i, values.data(), w);
    });
  });
}

}  // namespace
}  // namespace taeda::cpu::lapack

TAEDA_LINALG_TABLE(LeastSquaresKernels, cpu::lapack::least_squares<T>)
