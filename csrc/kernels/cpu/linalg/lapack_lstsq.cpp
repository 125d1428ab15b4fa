// Least squares: LAPACK's, but for full-rank problems by QR, which use our QR.
#include "kernels/cpu/linalg/lapack_qr.h"
#include "kernels/cpu/linalg/lapack_util.h"

namespace taeda::cpu::lapack {
namespace {

constexpr int64_t kDivide = 48;  // rows and columns from which gelss is slower than gelsd

// The arguments of one of LAPACK's solvers. What a method does not use is small.
template <class T> struct Problem {
  using R = Real<T>;
  LeastSquares method;
  int64_t m, n, cols;
  R rcond;

  void solve(T* a, T* b, int* rank, R* s, T* work, int64_t lwork, [[maybe_unused]] R* rwork,
             int* iwork, int* info) const {
    const int64_t lda = leading(m), ldb = leading(std::max(m, n));
    switch (method) {
      case LeastSquares::QR:
        return call(Routines<T>::gels, 'N', m, n, cols, a, lda, b, ldb, work, lwork, info);
      case LeastSquares::PivotedQR:
        if (lwork > 0) std::fill_n(iwork, n, 0);  // all columns may be exchanged
        if constexpr (is_complex<T>)
          return call(Routines<T>::gelsy, m, n, cols, a, lda, b, ldb, iwork, &rcond, rank, work,
                      lwork, rwork, info);
        else
          return call(Routines<T>::gelsy, m, n, cols, a, lda, b, ldb, iwork, &rcond, rank, work,
                      lwork, info);
      case LeastSquares::DivideAndConquer:
        if constexpr (is_complex<T>)
          return call(Routines<T>::gelsd, m, n, cols, a, lda, b, ldb, s, &rcond, rank, work, lwork,
                      rwork, iwork, info);
        else
          return call(Routines<T>::gelsd, m, n, cols, a, lda, b, ldb, s, &rcond, rank, work, lwork,
                      iwork, info);
      default:
        if constexpr (is_complex<T>)
          return call(Routines<T>::gelss, m, n, cols, a, lda, b, ldb, s, &rcond, rank, work, lwork,
                      rwork, info);
        else
          return call(Routines<T>::gelss, m, n, cols, a, lda, b, ldb, s, &rcond, rank, work, lwork,
                      info);
    }
  }
};

// The same as gels for m >= n, with our QR: R x = Q' b. Returns LAPACK's info.
template <class T> int32_t solve_by_qr(int64_t m, int64_t n, int64_t cols, T* a, T* b) {
  Scratch<T> tau(n);
  factor_qr(m, n, a, tau.data());
  multiply_reflectors(m, cols, true, true, n, a, m, tau.data(), b, m);
  for (int64_t i = 0; i < n; ++i) {
    if (a[i * (m + 1)] == T(0)) return narrow(i + 1);
  }
  solve_triangle(n, cols, {.left = true, .upper = true, .unit = false, .trans = Trans::No}, a, m, b,
                 m);
  return 0;
}

}  // namespace

template <class T>
void least_squares(LeastSquares method, Shape shape, int64_t b_cols, T* a, T* b, double rcond,
                   int32_t* rank, Real<T>* s, int32_t* info) {
  using R = Real<T>;
  const int64_t m = shape.rows, n = shape.cols, k = std::min(m, n), high = std::max(m, n);
  if (method == LeastSquares::SVD && k >= kDivide) method = LeastSquares::DivideAndConquer;
  narrow(product(high, k) * 2 + product(k, b_cols) + 64 * static_cast<double>(high + b_cols));
  const Problem<T> problem{method, m, n, b_cols, static_cast<R>(rcond)};
  T answer{};
  R real_answer{};
  int int_answer = 0, any_rank = 0, status = 0;
  problem.solve(a, b, &any_rank, &real_answer, &answer, -1, &real_answer, &int_answer, &status);
  const bool divide = method == LeastSquares::DivideAndConquer;
  const int64_t lwork = work_size(answer), lrwork = divide ? work_size(real_answer) : 5 * high,
                liwork = divide ? std::max(int_answer, 1) : n;
  each(shape.batch, product(m, n, k) * 4, [&](int64_t begin, int64_t end) {
    Scratch<T> work(lwork);
    Scratch<R> rwork(lrwork), values(k);
    Scratch<int> iwork(liwork);
    for (int64_t i = begin; i < end; ++i) {
      int own_rank = 0;
      T *x = a + i * m * n, *y = b + i * high * b_cols;
      if constexpr (!is_complex<T>) {
        if (method == LeastSquares::QR && m >= n &&
            is_moderate(reflector_loops<T>().largest_size(m * n, x)) &&
            is_moderate(reflector_loops<T>().largest_size(m * b_cols, y))) {
          info[i] = solve_by_qr(m, n, b_cols, x, y);
          continue;
        }
      }
      problem.solve(x, y, rank ? rank + i : &own_rank, s ? s + i * k : values.data(), work.data(),
                    lwork, rwork.data(), iwork.data(), info + i);
    }
  });
}

#define TAEDA_INSTANTIATE(T)                                                                       \
  template void least_squares<T>(LeastSquares, Shape, int64_t, T*, T*, double, int32_t*, Real<T>*, \
                                 int32_t*);
TAEDA_INSTANTIATE(float)
TAEDA_INSTANTIATE(double)
TAEDA_INSTANTIATE(ComplexFloat)
TAEDA_INSTANTIATE(ComplexDouble)

}  // namespace taeda::cpu::lapack
