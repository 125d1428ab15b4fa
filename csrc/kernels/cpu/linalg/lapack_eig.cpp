// Eigenvalues of any square matrix, and singular values: LAPACK's, but for real matrices that fit a
// near cache (simd/eigen.h) and for small ones of a batch (simd/batched.h).
#include "kernels/cpu/linalg/lapack_qr.h"
#include "kernels/cpu/linalg/lapack_util.h"
#include "kernels/cpu/linalg/simd/eigen.h"

namespace taeda::cpu::lapack {
namespace {

constexpr int64_t kNear = 320;  // rows of a matrix that fits

template <class T> const simd::EigLoops<T>& eig_loops() {
  return typed<T>(TAEDA_PICK(eig_kernels));
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
void eig_real(int64_t n, R* a, std::complex<R>* values, std::complex<R>* vectors,
              const Workspace<R>& w, int32_t* info) {
  Scratch<R> memory(2 * n), packed(vectors ? n * n : 1);
  R *re = memory.data(), *im = re + n;
  const int64_t ld = leading(n);
  call(Routines<R>::geev, 'N', vectors ? 'V' : 'N', n, a, ld, re, im, packed.data(), ld,
       packed.data(), ld, w.work, w.lwork, info);
  if (w.lwork < 0) return;
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
  T answer{};
  call(Routines<T>::gesdd, 'S', m, wide, a, m, values, u, m, vh, m, &answer, -1, info, info);
  const int64_t lwork = work_size(answer);
  Scratch<T> memory(2 * m * n + m + m * wide * 2 + lwork);
  Scratch<int> iwork(8 * m);
  T *high = memory.data(), *v = high + m * n, *tau = v + m * n, *lower = tau + m,
    *right = lower + m * wide, *work = right + m * wide;
  transpose(a, m, n, m, high, n);
  factor_qr(n, m, high, tau);
  for (int64_t c = 0; c < wide; ++c) {
    for (int64_t r = 0; r < m; ++r) lower[c * m + r] = r < c ? T(0) : high[r * n + c];
  }
  call(Routines<T>::gesdd, 'S', m, wide, lower, m, values, u, m, right, m, work, lwork,
       iwork.data(), info);
  std::fill_n(v, m * n, T(0));
  transpose(right, m, m, m, v, n);
  multiply_reflectors(n, m, false, m, high, n, tau, v, n);
  transpose(v, n, m, n, vh, m);
  return true;
}

// Of a square matrix, as gesdd does it, but for the products by reflectors. Returns false as above.
template <class T> bool svd_square(int64_t n, T* a, T* values, T* u, T* vh, int32_t* info) {
  if (!is_moderate(reflector_loops<T>().largest_size(n * n, a))) return false;
  Scratch<T> memory(3 * n * (n + 3));
  Scratch<int> iw(8 * n);
  T *e = memory.data(), *left = e + n, *right = left + n, *work = right + n, *v = work + n * n;
  call(Routines<T>::gebrd, n, n, a, n, values, e, left, right, work, n * n, info);
  call(Routines<T>::bdsdc, 'U', 'I', n, values, e, u, n, vh, n, work, info, work, iw.data(), info);
  multiply_reflectors(n, n, false, n, a, n, left, u, n);
  transpose(a, n, n, n, work, n);
  transpose(vh, n, n, n, v, n);
  multiply_reflectors(n - 1, n, false, n - 1, work + 1, n, right, v + 1, n);
  transpose(v, n, n, n, vh, n);
  return true;
}

template <class T>
void eig(int64_t batch, int64_t n, T* a, std::complex<Real<T>>* values,
         std::complex<Real<T>>* vectors, int32_t* info) {
  using R = Real<T>;
  auto one = [&](int64_t i, const Workspace<T>& w) {
    T* x = a + i * n * n;
    auto *to = values + i * n, *v = vectors ? vectors + i * n * n : nullptr;
    if constexpr (is_complex<T>) {
      const int64_t ld = leading(n);
      call(Routines<T>::geev, 'N', v ? 'V' : 'N', n, x, ld, to, w.work, ld, v ? v : w.work, ld,
           w.work, w.lwork, w.rwork, info + i);
    } else {
      if (w.lwork > 0 && n > 1 && n <= kNear) {
        Scratch<T> space(simd::EigLoops<T>::space(n));
        info[i] = 0;
        if (eig_loops<T>().eig(n, x, reinterpret_cast<R*>(to), reinterpret_cast<R*>(v),
                               space.data()))
          return;
      }
      eig_real(n, x, to, v, w, info + i);
    }
  };
  each_with_work<T>(batch, product(n, n, n) * 10, one, 2 * n);
}

template <class T>
void svd(MatrixBatch s, bool full, bool any_signs, T* a, Real<T>* values, T* u, T* vh,
         int32_t* info) {
  const int64_t m = s.rows, n = s.cols, k = std::min(m, n), wide = std::max(m, n);
  const int64_t u_step = m * (full ? m : k), vh_step = n * (full ? n : k);
  narrow(5 * product(k, k) + 2 * product(wide, k) + 8 * static_cast<double>(wide));
  if (s.count == 0) return;
  // One matrix. u and vh are not read where they are not wanted, but must not be null.
  auto run = [&](int64_t i, const Workspace<T>& w) {
    const char job = !u ? 'N' : full ? 'A' : 'S';
    call(Routines<T>::gesdd, job, m, n, a + i * m * n, leading(m), values + i * k,
         u ? u + i * u_step : w.work, leading(m), vh ? vh + i * vh_step : w.work,
         leading(full ? n : k), w.work, w.lwork, if_complex<T>(w.rwork), w.iwork, info + i);
  };
  const int64_t lrwork =
      u ? std::max(5 * k * k + 7 * k, 2 * wide * k + 2 * k * k + k) : std::max<int64_t>(1, 7 * k);
  const WorkSizes<T> sizes([&](const Workspace<T>& w) { run(0, w); }, is_complex<T> ? lrwork : 1,
                           8 * k);
  auto one = [&](int64_t i) {
    if constexpr (!is_complex<T>) {
      if (u && !full && m > 0 && 6 * n >= 11 * m &&
          svd_wide(m, n, a + i * m * n, values + i * k, u + i * u_step, vh + i * vh_step, info + i))
        return;
      if (u && m == n && n > 2 && n <= kNear &&
          svd_square(n, a + i * n * n, values + i * n, u + i * n * n, vh + i * n * n, info + i))
        return;
    }
    sizes.use([&](const Workspace<T>& w) { run(i, w); });
  };
  auto some = [&](const auto& loops, int64_t i, int64_t count) {
    std::fill_n(info + i, count, 0);
    return loops.svd(count, m, n, a + i * m * n, values + i * k, u ? u + i * u_step : nullptr,
                     vh ? vh + i * vh_step : nullptr);
  };
  const bool rotated = !u || (any_signs && (!full || m == n));
  each_together<T>(s.count, product(m, n, k) * 8,
                   rotated ? rotated_together<T>(s.count, m, n) : Together{}, some, one);
}

}  // namespace
}  // namespace taeda::cpu::lapack

TAEDA_LINALG_TABLE(EigenKernels, cpu::lapack::eig<T>, cpu::lapack::svd<T>)
