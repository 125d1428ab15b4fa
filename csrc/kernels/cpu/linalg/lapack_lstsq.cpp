// Least squares.
#include <type_traits>

#include "kernels/cpu/linalg/lapack_bidiagonal.h"
#include "kernels/cpu/linalg/lapack_blocked.h"
#include "kernels/cpu/linalg/lapack_reflectors.h"
#include "kernels/cpu/linalg/lapack_util.h"

// Fortran passes the length of every text behind the other arguments. Complex routines take a real
// work array (C stands for its argument).
#define TAEDA_REAL(argument)
#define TAEDA_COMPLEX(argument) argument,
#define TAEDA_LAPACK_LEAST_SQUARES(T, R, x, C)                                                     \
  void scipy_##x##gels_(const char*, const int*, const int*, const int*, T*, const int*, T*,       \
                        const int*, T*, const int*, int*, size_t);                                 \
  void scipy_##x##gelsy_(const int*, const int*, const int*, T*, const int*, T*, const int*, int*, \
                         const R*, int*, T*, const int*, C(R*) int*);                              \
  void scipy_##x##gelsd_(const int*, const int*, const int*, T*, const int*, T*, const int*, R*,   \
                         const R*, int*, T*, const int*, C(R*) int*, int*);                        \
  void scipy_##x##gelss_(const int*, const int*, const int*, T*, const int*, T*, const int*, R*,   \
                         const R*, int*, T*, const int*, C(R*) int*);

using ComplexFloat = std::complex<float>;
using ComplexDouble = std::complex<double>;
extern "C" {
TAEDA_LAPACK_LEAST_SQUARES(float, float, s, TAEDA_REAL)
TAEDA_LAPACK_LEAST_SQUARES(double, double, d, TAEDA_REAL)
TAEDA_LAPACK_LEAST_SQUARES(ComplexFloat, float, c, TAEDA_COMPLEX)
TAEDA_LAPACK_LEAST_SQUARES(ComplexDouble, double, z, TAEDA_COMPLEX)
void scipy_slaic1_(const int*, const int*, const float*, const float*, const float*, const float*,
                   float*, float*, float*);
void scipy_dlaic1_(const int*, const int*, const double*, const double*, const double*,
                   const double*, double*, double*, double*);
}

namespace taeda::cpu::lapack {
namespace {

constexpr int64_t kDivide = 48;      // rows and columns from which QR steps take longer
constexpr int64_t kHigh = 12;        // columns of a high matrix that is best replaced by its R
constexpr int64_t kNear = 64 << 10;  // bytes of one that is best factored with pivots at once

template <class T> struct Routines;
#define TAEDA_ROUTINES(T, x)                         \
  template <> struct Routines<T> {                   \
    static constexpr auto gels = scipy_##x##gels_;   \
    static constexpr auto gelsy = scipy_##x##gelsy_; \
    static constexpr auto gelsd = scipy_##x##gelsd_; \
    static constexpr auto gelss = scipy_##x##gelss_; \
  };
TAEDA_ROUTINES(float, s)
TAEDA_ROUTINES(double, d)
TAEDA_ROUTINES(ComplexFloat, c)
TAEDA_ROUTINES(ComplexDouble, z)

template <class T> inline constexpr bool is_complex = !std::is_floating_point_v<T>;

template <class T> constexpr auto laic1() {
  if constexpr (sizeof(T) == 4) return scipy_slaic1_;
  else return scipy_dlaic1_;
}

// One least-squares problem after another with one work space. What a method does not use is
// small.
template <class T> struct LeastSquaresCall {
  using R = Real<T>;
  LeastSquares method;
  int m, n, cols, lda, ldb;
  R rcond;

  void operator()(T* a, T* b, int* rank, R* s, T* work, int lwork, [[maybe_unused]] R* rwork,
                  int* iwork, int* info) const {
    switch (method) {
      case LeastSquares::QR:
        return Routines<T>::gels("N", &m, &n, &cols, a, &lda, b, &ldb, work, &lwork, info, 1);
      case LeastSquares::PivotedQR:  // iwork: which columns may be exchanged (all)
        if (lwork > 0) std::fill_n(iwork, n, 0);
        if constexpr (is_complex<T>)
          return Routines<T>::gelsy(&m, &n, &cols, a, &lda, b, &ldb, iwork, &rcond, rank, work,
                                    &lwork, rwork, info);
        else
          return Routines<T>::gelsy(&m, &n, &cols, a, &lda, b, &ldb, iwork, &rcond, rank, work,
                                    &lwork, info);
      case LeastSquares::DivideAndConquer:
        if constexpr (is_complex<T>)
          return Routines<T>::gelsd(&m, &n, &cols, a, &lda, b, &ldb, s, &rcond, rank, work, &lwork,
                                    rwork, iwork, info);
        else
          return Routines<T>::gelsd(&m, &n, &cols, a, &lda, b, &ldb, s, &rcond, rank, work, &lwork,
                                    iwork, info);
      default:
        if constexpr (is_complex<T>)
          return Routines<T>::gelss(&m, &n, &cols, a, &lda, b, &ldb, s, &rcond, rank, work, &lwork,
                                    rwork, info);
        else
          return Routines<T>::gelss(&m, &n, &cols, a, &lda, b, &ldb, s, &rcond, rank, work, &lwork,
                                    info);
    }
  }
};

// b := Q' b for the Q of a (m x n, m >= n), of which R is left, with anything below it.
template <class T> void turn_by_q(int64_t m, int64_t n, int64_t b_cols, T* a, T* b) {
  Scratch<T> tau(n);
  factor_qr(m, n, a, tau.data());
  multiply_reflectors(m, b_cols, true, true, n, a, tau.data(), b);
}

// From there: LAPACK's info.
template <class T> int32_t solve_by_r(int64_t m, int64_t n, int64_t b_cols, const T* a, T* b) {
  for (int64_t i = 0; i < n; ++i) {
    if (a[i * (m + 1)] == T(0)) return narrow(i + 1);
  }
  const Triangle how{.left = true, .upper = true, .unit = false, .trans = Trans::No};
  solve_blocks(n, b_cols, how, a, m, b, m);
  return 0;
}

// The rank of an upper triangle whose diagonal descends, as LAPACK finds it: estimates of the least
// and the largest singular value grow with each column (Bischof 1990).
template <class T> int64_t rank_of(int64_t m, int64_t n, const T* r, T rcond) {
  Scratch<T> memory(2 * n);
  T *of_least = memory.data(), *of_largest = of_least + n;
  T largest = std::abs(r[0]), least = largest;
  if (largest == 0) return 0;
  of_least[0] = of_largest[0] = 1;
  for (int64_t i = 1; i < n; ++i) {
    const int largest_code = 1, least_code = 2, size = narrow(i);
    const T *column = r + i * m, *corner = column + i;
    T next_least, s1, c1, next_largest, s2, c2;
    laic1<T>()(&least_code, &size, of_least, &least, column, corner, &next_least, &s1, &c1);
    laic1<T>()(&largest_code, &size, of_largest, &largest, column, corner, &next_largest, &s2, &c2);
    if (!(next_largest * rcond <= next_least)) return i;
    for (int64_t k = 0; k < i; ++k) of_least[k] *= s1, of_largest[k] *= s2;
    of_least[i] = c1, of_largest[i] = c2;
    least = next_least, largest = next_largest;
  }
  return n;
}

// Solves for a matrix (m x n, m >= n) of full rank by QR with pivots; b is `ldb` apart. Returns
// false, with b as it was, where the rank is another or the matrix is too large.
template <class T>
bool solve_by_pivots(int64_t m, int64_t n, int64_t b_cols, const T* a, T* b, int64_t ldb, T rcond) {
  if (!pivots_are_near<T>(m, n)) return false;
  Scratch<T> factor(m * n), tau(n), solved(m * b_cols);
  Scratch<int32_t> order(n);
  std::copy_n(a, m * n, factor.data());
  factor_qr_pivots(m, n, factor.data(), tau.data(), order.data());
  if (rank_of(m, n, factor.data(), rcond) < n) return false;
  for (int64_t c = 0; c < b_cols; ++c) std::copy_n(b + c * ldb, m, solved.data() + c * m);
  multiply_reflectors(m, b_cols, true, true, n, factor.data(), tau.data(), solved.data());
  const Triangle how{.left = true, .upper = true, .unit = false, .trans = Trans::No};
  solve_blocks(n, b_cols, how, factor.data(), m, solved.data(), m);
  for (int64_t c = 0; c < b_cols; ++c) {
    for (int64_t i = 0; i < n; ++i) b[c * ldb + order.data()[i]] = solved.data()[c * m + i];
  }
  return true;
}

}  // namespace

template <class T>
void least_squares(LeastSquares method, Shape shape, int64_t b_cols, T* a, T* b, double rcond,
                   int32_t* rank, Real<T>* s, int32_t* info) {
  using R = Real<T>;
  const int64_t k = std::min(shape.rows, shape.cols), high = std::max(shape.rows, shape.cols);
  if (method == LeastSquares::SVD && k >= kDivide) method = LeastSquares::DivideAndConquer;
  narrow(product(high, k) * 2 + product(k, b_cols) + 64 * static_cast<double>(high + b_cols));
  const LeastSquaresCall<T> call{
      method,        narrow(shape.rows),   narrow(shape.cols), narrow(b_cols), leading(shape.rows),
      leading(high), static_cast<R>(rcond)};
  T answer{};
  R real_answer{};
  int int_answer = 0, any_rank = 0, status = 0;
  call(a, b, &any_rank, &real_answer, &answer, -1, &real_answer, &int_answer, &status);
  const int lwork = work_size(answer);
  const bool divide = method == LeastSquares::DivideAndConquer;
  const int64_t lrwork = divide ? work_size(real_answer) : 5 * high;
  const int64_t liwork = divide ? std::max(int_answer, 1) : shape.cols;
  // A matrix that is much higher than wide is best replaced by its R, for every method.
  const int64_t m = shape.rows, n = shape.cols;
  const bool plain = method == LeastSquares::QR;
  const bool pivots = method == LeastSquares::PivotedQR && m >= n && rank && !is_complex<T>;
  const bool near = pivots && m * n * int64_t{sizeof(T)} <= kNear;
  const bool by_r = !is_complex<T> && (plain ? m >= n : n >= kHigh && 2 * m >= 3 * n && !near);
  LeastSquaresCall<T> of_r = call;
  of_r.m = of_r.lda = of_r.n;
  auto some = [&](int64_t begin, int64_t end) {
    Scratch<T> work(lwork), r(by_r && !plain ? n * n : 1);
    Scratch<R> rwork(lrwork), values(k);
    Scratch<int> iwork(liwork);
    for (int64_t i = begin; i < end; ++i) {
      int own_rank = 0;
      T *x = a + i * m * n, *y = b + i * high * b_cols;
      auto run = [&](const LeastSquaresCall<T>& with, T* matrix) {
        with(matrix, y, rank ? rank + i : &own_rank, s ? s + i * k : values.data(), work.data(),
             lwork, rwork.data(), iwork.data(), info + i);
      };
      if constexpr (!is_complex<T>) {
        const bool moderate =
            (by_r || pivots) && is_moderate(m * n, x) && is_moderate(high * b_cols, y);
        auto by_pivots = [&](int64_t rows, const T* matrix) {
          if (!pivots || !solve_by_pivots(rows, n, b_cols, matrix, y, high, call.rcond))
            return false;
          rank[i] = narrow(n);
          info[i] = 0;
          return true;
        };
        if (moderate && !by_r && by_pivots(m, x)) continue;
        if (moderate && by_r) {
          turn_by_q(m, n, b_cols, x, y);
          if (plain) {
            info[i] = solve_by_r(m, n, b_cols, x, y);
          } else {
            std::fill_n(r.data(), n * n, T(0));
            for (int64_t c = 0; c < n; ++c) std::copy_n(x + c * m, c + 1, r.data() + c * n);
            if (!by_pivots(n, r.data())) run(of_r, r.data());
          }
          continue;
        }
      }
      run(call, x);
    }
  };
  each(shape.batch, product(m, n, k) * 4, some);
}

#define TAEDA_INSTANTIATE(T)                                                                       \
  template void least_squares<T>(LeastSquares, Shape, int64_t, T*, T*, double, int32_t*, Real<T>*, \
                                 int32_t*);
TAEDA_INSTANTIATE(float)
TAEDA_INSTANTIATE(double)
TAEDA_INSTANTIATE(ComplexFloat)
TAEDA_INSTANTIATE(ComplexDouble)

}  // namespace taeda::cpu::lapack
