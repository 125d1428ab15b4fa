// Eigenvalues of any square matrix, and singular values: LAPACK's, but for the steps to Schur's
// form of real matrices that fit a near cache (simd/eigen.h), and for small ones of a batch
// (simd/batched.h).
#include "kernels/cpu/linalg/lapack_qr.h"
#include "kernels/cpu/linalg/lapack_util.h"
#include "kernels/cpu/linalg/simd/eigen.h"

namespace taeda::cpu::lapack {
namespace {

constexpr int64_t kNearEig = 320;  // rows of a matrix that fits

template <class T> const simd::SchurLoops<T>& schur_loops() {
  return typed<T>(TAEDA_PICK(schur_kernels));
}

// LAPACK gives a pair of conjugate eigenvectors of a real matrix as one column of real and one of
// imaginary parts.
template <class R>
void complex_vectors(int64_t n, const R* imaginary, const R* packed, int64_t ld,
                     std::complex<R>* vectors) {
  for (int64_t j = 0; j < n; ++j) {
    const R *re = packed + j * ld, *im = re + ld;
    std::complex<R>*v = vectors + j * n, *next = v + n;
    const bool pair = imaginary[j] != 0 && j + 1 < n;
    for (int64_t i = 0; i < n; ++i) {
      v[i] = {re[i], pair ? im[i] : R(0)};
      if (pair) next[i] = {re[i], -im[i]};
    }
    j += pair;
  }
}

// Makes a vector's length 1 and, as LAPACK does, its largest element real.
template <class R> void normalize(int64_t n, std::complex<R>* v) {
  R most = 0, square = 0;
  for (int64_t i = 0; i < n; ++i)
    most = std::max({most, std::abs(v[i].real()), std::abs(v[i].imag())});
  const std::complex<R>* largest = v;
  for (int64_t i = 0; i < n; ++i) {
    v[i] /= most;
    square += std::norm(v[i]);
    if (std::norm(v[i]) > std::norm(*largest)) largest = v + i;
  }
  const auto factor = largest->imag() == 0 ? R(1) : std::conj(*largest) / std::abs(*largest);
  for (int64_t i = 0; i < n; ++i) v[i] *= factor / std::sqrt(square);
}

// The steps of LAPACK's geev. Those to Schur's form, which take most of the time, are ours while
// the matrix fits; lahqr finishes the blocks.
template <class R>
void eig_real(int64_t n, const R* a, std::complex<R>* values, std::complex<R>* vectors,
              const Workspace<R>& w, int32_t* info) {
  int low = 0, high = 0, found = 0, unused = 0;
  int64_t ld = (n + 15) / 16 * 16;
  if (ld % 128 == 0) ld += 16;  // or columns would share their sets of a cache
  Scratch<R> memory(2 * ld * n + 4 * n);
  R *h = memory.data(), *q = h + ld * n, *factors = q + ld * n, *tau = factors + n, *re = tau + n,
    *im = re + n;
  const auto vectors_of_triangle = [&] {
    call(Routines<R>::trevc3, 'R', 'B', &unused, n, h, ld, q, ld, q, ld, n, &found, w.work, w.lwork,
         info);
  };
  if (w.lwork < 0) return vectors_of_triangle();
  const R most = reflector_loops<R>().largest_size(n * n, a);
  const R scale = most > 0 ? std::ldexp(R(1), std::ilogb(most)) : R(1);
  std::fill_n(h, ld * n, R(0));
  for (int64_t c = 0; c < n; ++c)
    std::transform(a + c * n, a + (c + 1) * n, h + c * ld, [scale](R x) { return x / scale; });
  call(Routines<R>::gebal, 'B', n, h, ld, &low, &high, factors, info);
  call(Routines<R>::gehrd, n, int64_t{low}, int64_t{high}, h, ld, tau, w.work, w.lwork, info);
  if (vectors) {
    std::copy_n(h, ld * n, q);
    call(Routines<R>::orghr, n, int64_t{low}, int64_t{high}, q, ld, tau, w.work, w.lwork, info);
  }
  for (int64_t c = 0; c + 2 < n; ++c) std::fill(h + c * ld + c + 2, h + c * ld + n, R(0));
  if (n <= kNearEig) {
    schur_loops<R>().to_blocks(n, ld, h, vectors ? q : nullptr);
    const int64_t one = 1, all = vectors ? one : 0;
    call(Routines<R>::lahqr, all, all, n, one, n, h, ld, re, im, one, n, q, ld, info);
  } else {
    call(Routines<R>::hseqr, vectors ? 'S' : 'E', vectors ? 'V' : 'N', n, int64_t{low},
         int64_t{high}, h, ld, re, im, q, ld, w.work, w.lwork, info);
  }
  if (*info != 0) return;
  for (int64_t j = 0; j < n; ++j) values[j] = std::complex<R>(re[j], im[j]) * scale;
  if (!vectors) return;
  vectors_of_triangle();
  call(Routines<R>::gebak, 'B', 'R', n, int64_t{low}, int64_t{high}, factors, n, q, ld, info);
  complex_vectors(n, im, q, ld, vectors);
  for (int64_t j = 0; j < n; ++j) normalize(n, vectors + j * n);
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
  auto one = [&](int64_t i, const Workspace<T>& w) {
    T* x = a + i * n * n;
    auto *to = values + i * n, *v = vectors ? vectors + i * n * n : nullptr;
    if constexpr (is_complex<T>) {
      const int64_t ld = leading(n);
      call(Routines<T>::geev, 'N', v ? 'V' : 'N', n, x, ld, to, w.work, ld, v ? v : w.work, ld,
           w.work, w.lwork, w.rwork, info + i);
    } else {
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
      if (u && m == n && n > 2 && n <= kNearEig &&
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
