// QR, eigenvalues of any matrix and singular values.
#include <type_traits>

#include "kernels/cpu/linalg/lapack_bidiagonal.h"
#include "kernels/cpu/linalg/lapack_blocked.h"
#include "kernels/cpu/linalg/lapack_reflectors.h"
#include "kernels/cpu/linalg/lapack_util.h"
#include "kernels/cpu/linalg/simd/eig.h"

// Fortran passes the length of every text behind the other arguments.
#define TAEDA_LAPACK_QR(T, x, gqr, mqr)                                                          \
  void scipy_##x##geqrf_(const int*, const int*, T*, const int*, T*, T*, const int*, int*);      \
  void scipy_##x##gqr##_(const int*, const int*, const int*, T*, const int*, const T*, T*,       \
                         const int*, int*);                                                      \
  void scipy_##x##mqr##_(const char*, const char*, const int*, const int*, const int*, const T*, \
                         const int*, const T*, T*, const int*, T*, const int*, int*, size_t,     \
                         size_t);
// Complex routines take a real work array (C stands for its argument).
#define TAEDA_LAPACK_SPECTRUM(T, R, x, C)                                                         \
  void scipy_##x##gesdd_(const char*, const int*, const int*, T*, const int*, R*, T*, const int*, \
                         T*, const int*, T*, const int*, C(R*) int*, int*, size_t);
#define TAEDA_REAL(argument)
#define TAEDA_COMPLEX(argument) argument,

using ComplexFloat = std::complex<float>;
using ComplexDouble = std::complex<double>;
extern "C" {
TAEDA_LAPACK_QR(float, s, orgqr, ormqr)
TAEDA_LAPACK_QR(double, d, orgqr, ormqr)
TAEDA_LAPACK_QR(ComplexFloat, c, ungqr, unmqr)
TAEDA_LAPACK_QR(ComplexDouble, z, ungqr, unmqr)
TAEDA_LAPACK_SPECTRUM(float, float, s, TAEDA_REAL)
TAEDA_LAPACK_SPECTRUM(double, double, d, TAEDA_REAL)
TAEDA_LAPACK_SPECTRUM(ComplexFloat, float, c, TAEDA_COMPLEX)
TAEDA_LAPACK_SPECTRUM(ComplexDouble, double, z, TAEDA_COMPLEX)
void scipy_sgeev_(const char*, const char*, const int*, float*, const int*, float*, float*, float*,
                  const int*, float*, const int*, float*, const int*, int*, size_t, size_t);
void scipy_dgeev_(const char*, const char*, const int*, double*, const int*, double*, double*,
                  double*, const int*, double*, const int*, double*, const int*, int*, size_t,
                  size_t);
void scipy_cgeev_(const char*, const char*, const int*, ComplexFloat*, const int*, ComplexFloat*,
                  ComplexFloat*, const int*, ComplexFloat*, const int*, ComplexFloat*, const int*,
                  float*, int*, size_t, size_t);
void scipy_zgeev_(const char*, const char*, const int*, ComplexDouble*, const int*, ComplexDouble*,
                  ComplexDouble*, const int*, ComplexDouble*, const int*, ComplexDouble*,
                  const int*, double*, int*, size_t, size_t);
}

namespace taeda::cpu::lapack {
namespace {

template <class T> struct Routines;
#define TAEDA_ROUTINES(T, x, gqr, mqr)               \
  template <> struct Routines<T> {                   \
    static constexpr auto geqrf = scipy_##x##geqrf_; \
    static constexpr auto orgqr = scipy_##x##gqr##_; \
    static constexpr auto ormqr = scipy_##x##mqr##_; \
    static constexpr auto gesdd = scipy_##x##gesdd_; \
    static constexpr auto geev = scipy_##x##geev_;   \
  };
TAEDA_ROUTINES(float, s, orgqr, ormqr)
TAEDA_ROUTINES(double, d, orgqr, ormqr)
TAEDA_ROUTINES(ComplexFloat, c, ungqr, unmqr)
TAEDA_ROUTINES(ComplexDouble, z, ungqr, unmqr)

template <class T> inline constexpr bool is_complex = !std::is_floating_point_v<T>;
const int kQuery = -1;

constexpr int64_t kNear = 320;  // rows of a matrix whose eigenvalues are found by one loop

}  // namespace

template <class T> void qr_factor(Shape s, T* a, T* tau) {
  const int64_t k = std::min(s.rows, s.cols), size = s.rows * s.cols;
  const double work = product(s.rows, s.cols, k) * 2;
  if constexpr (is_complex<T>) {
    const int m = narrow(s.rows), n = narrow(s.cols), ld = leading(s.rows);
    T answer{};
    int info = 0;
    Routines<T>::geqrf(&m, &n, a, &ld, tau, &answer, &kQuery, &info);
    const int lwork = work_size(answer);
    each(s.batch, work, [&](int64_t begin, int64_t end) {
      Scratch<T> space(lwork);
      int status = 0;
      for (int64_t i = begin; i < end; ++i)
        Routines<T>::geqrf(&m, &n, a + i * size, &ld, tau + i * k, space.data(), &lwork, &status);
    });
  } else {
    const int64_t lanes = factored_at_once<T>(s.rows, s.cols), few = k > 8 ? 2 : 1;
    auto alone = [&](int64_t i) { factor_qr(s.rows, s.cols, a + i * size, tau + i * k); };
    auto together = [&](int64_t i, int64_t count) {
      return small_loops<T>().qr(count, s.rows, s.cols, a + i * size, tau + i * k);
    };
    auto some = [&](int64_t begin, int64_t end) {
      if (lanes) return each_together(begin, end, lanes, few, together, alone);
      for (int64_t i = begin; i < end; ++i) alone(i);
    };
    each(s.batch, work, some, std::max<int64_t>(lanes, 1));
  }
}

template <class T> void reflectors_to_q(Shape s, int64_t k, T* a, const T* tau) {
  const int64_t size = s.rows * s.cols;
  const double work = product(s.rows, s.cols, k) * 2;
  if constexpr (is_complex<T>) {
    const int m = narrow(s.rows), n = narrow(s.cols), count = narrow(k), ld = leading(s.rows);
    T answer{};
    int info = 0;
    Routines<T>::orgqr(&m, &n, &count, a, &ld, tau, &answer, &kQuery, &info);
    const int lwork = work_size(answer);
    each(s.batch, work, [&](int64_t begin, int64_t end) {
      Scratch<T> space(lwork);
      int status = 0;
      for (int64_t i = begin; i < end; ++i)
        Routines<T>::orgqr(&m, &n, &count, a + i * size, &ld, tau + i * k, space.data(), &lwork,
                           &status);
    });
  } else {
    const int64_t lanes = factored_at_once<T>(s.rows, s.cols);
    auto some = [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i += std::max<int64_t>(lanes, 1)) {
        T* x = a + i * size;
        if (lanes && (s.cols <= 8 || end - i > 1))
          small_loops<T>().q(std::min(lanes, end - i), s.rows, s.cols, k, x, tau + i * k);
        else make_q(s.rows, s.cols, k, x, tau + i * k);
      }
    };
    each(s.batch, work, some, std::max<int64_t>(lanes, 1));
  }
}

template <class T>
void multiply_by_q(Shape s, bool left, Trans trans, int64_t k, const T* a, const T* tau, T* c) {
  const int64_t high = left ? s.rows : s.cols, size = s.rows * s.cols;
  const double work = product(s.rows, s.cols, k) * 4;
  if constexpr (is_complex<T>) {
    const int m = narrow(s.rows), n = narrow(s.cols), count = narrow(k), lda = leading(high),
              ldc = leading(s.rows);
    const char *side = left ? "L" : "R", *op = trans == Trans::No ? "N" : "C";
    T answer{};
    int info = 0;
    Routines<T>::ormqr(side, op, &m, &n, &count, a, &lda, tau, c, &ldc, &answer, &kQuery, &info, 1,
                       1);
    const int lwork = work_size(answer);
    each(s.batch, work, [&](int64_t begin, int64_t end) {
      Scratch<T> space(lwork);
      int status = 0;
      for (int64_t i = begin; i < end; ++i)
        Routines<T>::ormqr(side, op, &m, &n, &count, a + i * high * k, &lda, tau + i * k,
                           c + i * size, &ldc, space.data(), &lwork, &status, 1, 1);
    });
  } else {
    each(s.batch, work, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        multiply_reflectors(s.rows, s.cols, left, trans != Trans::No, k, a + i * high * k,
                            tau + i * k, c + i * size);
    });
  }
}

namespace {

// LAPACK gives a pair of conjugate eigenvectors of a real matrix as one column of real and one of
// imaginary parts.
template <class R>
void complex_vectors(int64_t n, const R* imaginary, const R* packed, std::complex<R>* vectors) {
  for (int64_t j = 0; j < n; ++j) {
    const R *re = packed + j * n, *im = re + n;
    std::complex<R>*v = vectors + j * n, *next = v + n;
    const bool pair = imaginary[j] != 0 && j + 1 < n;
    for (int64_t i = 0; i < n; ++i) {
      v[i] = {re[i], pair ? im[i] : R(0)};
      if (pair) next[i] = {re[i], -im[i]};
    }
    j += pair;
  }
}

template <class T> const simd::EigLoops<T>& near_loops() {
  using namespace simd;
  if constexpr (sizeof(T) == 4) return TAEDA_PICK(eig_kernels).f32;
  else return TAEDA_PICK(eig_kernels).f64;
}

// Returns false, with nothing written, where LAPACK is to do it.
template <class R>
bool near_eig(int64_t n, const R* a, std::complex<R>* values, std::complex<R>* vectors, R* space) {
  if (!is_moderate(n * n, a)) return false;
  R most = 0;
  for (int64_t i = 0; i < n * n; ++i) most = std::max(most, std::abs(a[i]));
  return near_loops<R>().eig(n, a, most, reinterpret_cast<R*>(values),
                             reinterpret_cast<R*>(vectors), space);
}

template <class R>
void eig_real(int64_t batch, int64_t n, R* a, std::complex<R>* values, std::complex<R>* vectors,
              int32_t* info) {
  const int size = narrow(n), ld = leading(n);
  const char* job = vectors ? "V" : "N";
  R answer{};
  int status = 0;
  Routines<R>::geev("N", job, &size, a, &ld, &answer, &answer, &answer, &ld, &answer, &ld, &answer,
                    &kQuery, &status, 1, 1);
  const int lwork = work_size(answer);
  const bool near = n > 1 && n <= kNear;
  each(batch, product(n, n, n) * 10, [&](int64_t begin, int64_t end) {
    Scratch<R> work(lwork), re(n), im(n), packed(vectors ? n * n : 1);
    Scratch<R> space(near ? simd::EigLoops<R>::space(n) : 1);
    for (int64_t i = begin; i < end; ++i) {
      if (near && near_eig(n, a + i * n * n, values + i * n,
                           vectors ? vectors + i * n * n : nullptr, space.data())) {
        info[i] = 0;
        continue;
      }
      Routines<R>::geev("N", job, &size, a + i * n * n, &ld, re.data(), im.data(), work.data(), &ld,
                        packed.data(), &ld, work.data(), &lwork, info + i, 1, 1);
      for (int64_t j = 0; j < n; ++j) values[i * n + j] = {re.data()[j], im.data()[j]};
      if (vectors) complex_vectors(n, im.data(), packed.data(), vectors + i * n * n);
    }
  });
}

template <class T>
void eig_complex(int64_t batch, int64_t n, T* a, T* values, T* vectors, int32_t* info) {
  const int size = narrow(n), ld = leading(n);
  const char* job = vectors ? "V" : "N";
  T answer{};
  Real<T> unused{};
  int status = 0;
  Routines<T>::geev("N", job, &size, a, &ld, values, &answer, &ld, &answer, &ld, &answer, &kQuery,
                    &unused, &status, 1, 1);
  const int lwork = work_size(answer);
  each(batch, product(n, n, n) * 10, [&](int64_t begin, int64_t end) {
    Scratch<T> work(lwork);
    Scratch<Real<T>> rwork(2 * n);
    for (int64_t i = begin; i < end; ++i) {
      Routines<T>::geev("N", job, &size, a + i * n * n, &ld, values + i * n, work.data(), &ld,
                        vectors ? vectors + i * n * n : work.data(), &ld, work.data(), &lwork,
                        rwork.data(), info + i, 1, 1);
    }
  });
}

}  // namespace

template <class T>
void eig(int64_t batch, int64_t n, T* a, std::complex<Real<T>>* values,
         std::complex<Real<T>>* vectors, int32_t* info) {
  if constexpr (is_complex<T>) eig_complex(batch, n, a, values, vectors, info);
  else eig_real(batch, n, a, values, vectors, info);
}

template <class T>
void svd(Shape s, bool full, bool any_signs, T* a, Real<T>* values, T* u, T* vh, int32_t* info) {
  using R = Real<T>;
  const int64_t k = std::min(s.rows, s.cols), wide = std::max(s.rows, s.cols);
  const int m = narrow(s.rows), n = narrow(s.cols), lda = leading(s.rows);
  const int ldvh = leading(full ? s.cols : k);
  const char* job = !u ? "N" : full ? "A" : "S";
  narrow(5 * product(k, k) + 2 * product(wide, k) + 8 * static_cast<double>(wide));
  const int64_t lrwork = !is_complex<T> ? 1
                         : u            ? std::max(5 * k * k + 7 * k, 2 * wide * k + 2 * k * k + k)
                                        : 7 * k;
  auto run = [&](T* x, R* sv, T* left, T* right, T* work, int lwork, [[maybe_unused]] R* rwork,
                 int* iwork, int* status) {
    if constexpr (is_complex<T>)
      Routines<T>::gesdd(job, &m, &n, x, &lda, sv, left, &lda, right, &ldvh, work, &lwork, rwork,
                         iwork, status, 1);
    else
      Routines<T>::gesdd(job, &m, &n, x, &lda, sv, left, &lda, right, &ldvh, work, &lwork, iwork,
                         status, 1);
  };
  T answer{};
  R unused{};
  int int_unused = 0, status = 0;
  run(a, values, u, vh, &answer, -1, &unused, &int_unused, &status);
  const int lwork = work_size(answer);
  const int64_t u_step = s.rows * (full ? s.rows : k), vh_step = s.cols * (full ? s.cols : k);
  const bool large = !is_complex<T> && k >= kBidiagonal && (!u || !full || s.rows == s.cols);
  const bool rotated = !u || (any_signs && (!full || s.rows == s.cols));
  const int64_t lanes = rotated ? rotated_at_once<T>(s.rows, s.cols) : 0;
  auto some = [&](int64_t begin, int64_t end) {
    Scratch<T> work(lwork);
    Scratch<R> rwork(lrwork);
    Scratch<int> iwork(8 * k);
    auto alone = [&](int64_t i) {
      if constexpr (!is_complex<T>) {
        T* x = a + i * s.rows * s.cols;
        if (large && is_moderate(s.rows * s.cols, x)) {
          info[i] = large_svd(s.rows, s.cols, x, values + i * k, u ? u + i * u_step : nullptr,
                              vh ? vh + i * vh_step : nullptr);
          return;
        }
      }
      run(a + i * s.rows * s.cols, values + i * k, u ? u + i * u_step : work.data(),
          vh ? vh + i * vh_step : work.data(), work.data(), lwork, rwork.data(), iwork.data(),
          info + i);
    };
    if constexpr (!is_complex<T>) {
      const int64_t few = few_to_rotate(lanes, s.rows, s.cols);
      auto together = [&](int64_t i, int64_t count) {
        std::fill_n(info + i, count, 0);
        return small_loops<T>().svd(count, s.rows, s.cols, a + i * s.rows * s.cols, values + i * k,
                                    u ? u + i * u_step : nullptr, vh ? vh + i * vh_step : nullptr);
      };
      if (lanes) return each_together(begin, end, lanes, few, together, alone);
    }
    for (int64_t i = begin; i < end; ++i) alone(i);
  };
  each(s.batch, product(s.rows, s.cols, k) * 8, some, std::max<int64_t>(lanes, 1));
}

#define TAEDA_INSTANTIATE(T)                                                                 \
  template void qr_factor<T>(Shape, T*, T*);                                                 \
  template void reflectors_to_q<T>(Shape, int64_t, T*, const T*);                            \
  template void multiply_by_q<T>(Shape, bool, Trans, int64_t, const T*, const T*, T*);       \
  template void eig<T>(int64_t, int64_t, T*, std::complex<Real<T>>*, std::complex<Real<T>>*, \
                       int32_t*);                                                            \
  template void svd<T>(Shape, bool, bool, T*, Real<T>*, T*, T*, int32_t*);
TAEDA_INSTANTIATE(float)
TAEDA_INSTANTIATE(double)
TAEDA_INSTANTIATE(ComplexFloat)
TAEDA_INSTANTIATE(ComplexDouble)

}  // namespace taeda::cpu::lapack
