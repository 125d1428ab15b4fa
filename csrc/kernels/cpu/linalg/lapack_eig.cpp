// Eigenvalues of any square matrix, and singular values: LAPACK's, but for real matrices that fit a
// near cache (simd/eig.h) and for small ones of a batch (simd/batched.h).
#include "kernels/cpu/linalg/lapack_qr.h"
#include "kernels/cpu/linalg/lapack_util.h"
#include "kernels/cpu/linalg/simd/eig.h"

namespace taeda::cpu::lapack {
namespace {

constexpr int64_t kNear = 320;  // rows of a matrix that fits

template <class T> const simd::EigLoops<T>& eig_loops() {
  using namespace simd;
  return loops_of<T>(TAEDA_PICK(eig_kernels));
}

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

// Of one real matrix, by LAPACK.
template <class R>
void eig_real(int64_t n, R* a, std::complex<R>* values, std::complex<R>* vectors, R* work,
              int64_t lwork, int32_t* info) {
  Scratch<R> memory(2 * n), packed(vectors ? n * n : 1);
  R *re = memory.data(), *im = re + n;
  const int64_t ld = leading(n);
  call(Routines<R>::geev, 'N', vectors ? 'V' : 'N', n, a, ld, re, im, packed.data(), ld,
       packed.data(), ld, work, lwork, info);
  if (lwork < 0) return;
  for (int64_t j = 0; j < n; ++j) values[j] = {re[j], im[j]};
  if (vectors) complex_vectors(n, im, packed.data(), vectors);
}

// a = [L 0] Q' for a (m x n) much wider than high. PyTorch's vectors have the signs that L's lower
// bidiagonal form gives; OpenBLAS makes that of matrices wider than high only, so L gets one column
// of zeros more. Returns false, with nothing changed, for numbers that cannot be squared.
template <class T>
bool svd_wide(int64_t m, int64_t n, T* a, T* values, T* u, T* vh, int32_t* info) {
  if (!is_moderate(reflector_loops<T>().largest_size(m * n, a))) return false;
  const int64_t wide = m + 1;
  int one = 1;
  T answer{};
  call(Routines<T>::gesdd, 'S', m, wide, a, m, values, u, m, vh, m, &answer, -1, &one, info);
  const int64_t lwork = work_size(answer);
  Scratch<T> memory(m * n + m + m * wide * 2 + lwork);
  Scratch<int> iwork(8 * m);
  T *transposed = memory.data(), *tau = transposed + m * n, *lower = tau + m,
    *right = lower + m * wide, *work = right + m * wide;
  for (int64_t r = 0; r < m; ++r) {
    for (int64_t c = 0; c < n; ++c) transposed[r * n + c] = a[c * m + r];
  }
  factor_qr(n, m, transposed, tau);
  for (int64_t c = 0; c < wide; ++c) {
    for (int64_t r = 0; r < m; ++r) lower[c * m + r] = r < c ? T(0) : transposed[r * n + c];
  }
  call(Routines<T>::gesdd, 'S', m, wide, lower, m, values, u, m, right, m, work, lwork,
       iwork.data(), info);
  std::copy_n(right, m * m, vh);
  std::fill(vh + m * m, vh + m * n, T(0));
  multiply_reflectors(m, n, false, true, m, transposed, n, tau, vh, m);
  return true;
}

}  // namespace

template <class T>
void eig(int64_t batch, int64_t n, T* a, std::complex<Real<T>>* values,
         std::complex<Real<T>>* vectors, int32_t* info) {
  using R = Real<T>;
  each_with_work<T>(batch, product(n, n, n) * 10, [&](int64_t i, T* work, int64_t lwork) {
    T* x = a + i * n * n;
    auto *to = values + i * n, *v = vectors ? vectors + i * n * n : nullptr;
    if constexpr (is_complex<T>) {
      const int64_t ld = leading(n);
      Scratch<R> rwork(2 * n);
      call(Routines<T>::geev, 'N', v ? 'V' : 'N', n, x, ld, to, work, ld, v ? v : work, ld, work,
           lwork, rwork.data(), info + i);
    } else {
      if (lwork > 0 && n > 1 && n <= kNear) {
        Scratch<T> space(simd::EigLoops<T>::space(n));
        if (eig_loops<T>().eig(n, x, reinterpret_cast<R*>(to), reinterpret_cast<R*>(v),
                               space.data())) {
          info[i] = 0;
          return;
        }
      }
      eig_real(n, x, to, v, work, lwork, info + i);
    }
  });
}

template <class T>
void svd(Shape s, bool full, bool any_signs, T* a, Real<T>* values, T* u, T* vh, int32_t* info) {
  using R = Real<T>;
  const int64_t m = s.rows, n = s.cols, k = std::min(m, n), wide = std::max(m, n);
  const int64_t u_step = m * (full ? m : k), vh_step = n * (full ? n : k);
  const int64_t lrwork = !is_complex<T> ? 1
                         : u            ? std::max(5 * k * k + 7 * k, 2 * wide * k + 2 * k * k + k)
                                        : 7 * k;
  narrow(5 * product(k, k) + 2 * product(wide, k) + 8 * static_cast<double>(wide));
  // One matrix. u and vh are not read where they are not wanted, but must not be null.
  auto run = [&](int64_t i, T* work, int64_t lwork, [[maybe_unused]] R* rwork, int* iwork) {
    const char job = !u ? 'N' : full ? 'A' : 'S';
    const int64_t ldu = leading(m), ldvh = leading(full ? n : k);
    T *x = a + i * m * n, *left = u ? u + i * u_step : work, *right = vh ? vh + i * vh_step : work;
    if constexpr (is_complex<T>)
      call(Routines<T>::gesdd, job, m, n, x, ldu, values + i * k, left, ldu, right, ldvh, work,
           lwork, rwork, iwork, info + i);
    else
      call(Routines<T>::gesdd, job, m, n, x, ldu, values + i * k, left, ldu, right, ldvh, work,
           lwork, iwork, info + i);
  };
  const double work = product(m, n, k) * 8;
  const bool rotated = !u || (any_signs && (!full || m == n));
  const int64_t lanes = rotated ? rotated_together<T>(m, n) : 0;
  if (s.batch == 0) return;
  T answer{};
  R unused{};
  int int_unused = 0;
  run(0, &answer, -1, &unused, &int_unused);
  const int64_t lwork = work_size(answer);
  auto alone = [&](int64_t i) {
    if constexpr (!is_complex<T>) {
      if (u && !full && m > 0 && 6 * n >= 11 * m &&
          svd_wide(m, n, a + i * m * n, values + i * k, u + i * u_step, vh + i * vh_step, info + i))
        return;
    }
    Scratch<T> space(lwork);
    Scratch<R> rwork(lrwork);
    Scratch<int> iwork(8 * k);
    run(i, space.data(), lwork, rwork.data(), iwork.data());
  };
  auto together = [&]([[maybe_unused]] int64_t i, [[maybe_unused]] int64_t count) {
    if constexpr (!is_complex<T>) {
      std::fill_n(info + i, count, 0);
      return batched_loops<T>().svd(count, m, n, a + i * m * n, values + i * k,
                                    u ? u + i * u_step : nullptr, vh ? vh + i * vh_step : nullptr);
    }
    return false;
  };
  each_together(s.batch, work, std::max<int64_t>(lanes, 1),
                lanes ? least_to_rotate(lanes, m, n) : 2, together, alone);
}

#define TAEDA_INSTANTIATE(T)                                                                 \
  template void eig<T>(int64_t, int64_t, T*, std::complex<Real<T>>*, std::complex<Real<T>>*, \
                       int32_t*);                                                            \
  template void svd<T>(Shape, bool, bool, T*, Real<T>*, T*, T*, int32_t*);
TAEDA_INSTANTIATE(float)
TAEDA_INSTANTIATE(double)
TAEDA_INSTANTIATE(ComplexFloat)
TAEDA_INSTANTIATE(ComplexDouble)

}  // namespace taeda::cpu::lapack
