// Eigenvalues and eigenvectors of Hermitian matrices. Small real ones of a batch are diagonalized
// together (simd/batched.h), one that fits a near cache by one loop (simd/eigen.h). Of a large real
// one LAPACK finds the tridiagonal form and solves its halves; our merge of them and our
// reflectors, which turn the vectors back, run on all threads. Complex ones are LAPACK's.
#include <array>
#include <numeric>

#include "kernels/cpu/linalg/lapack_qr.h"
#include "kernels/cpu/linalg/lapack_util.h"
#include "kernels/cpu/linalg/simd/eigen.h"

namespace taeda::cpu::lapack {
namespace {

constexpr int64_t kNearEigh = 160;  // rows of a matrix that no longer fits

template <class T> const simd::EighLoops<T>& eigh_loops() {
  return typed<T>(TAEDA_PICK(eigh_kernels));
}

// The largest number of one triangle; NaN where an element is NaN.
template <class T> T largest_of(int64_t n, bool upper, const T* a) {
  T most = 0;
  for (int64_t j = 0; j < n && most == most; ++j) {
    const int64_t first = upper ? 0 : j, last = upper ? j + 1 : n;
    const T size = reflector_loops<T>().largest_size(last - first, a + j * n + first);
    most = size <= most ? most : size;
  }
  return most;
}

// Merges two solved parts, of `half` and of n - half rows, of a tridiagonal matrix, e between them.
// d: their eigenvalues; q: their eigenvectors, in blocks on its diagonal; order: counted from 1
// within a part, the order in which its eigenvalues ascend. Eigenvalues are roots of
// 1 + rho * sum(w[i]^2 / (poles[i] - x)), except those that a part keeps, and the differences to
// the poles give the vectors (Gu and Eisenstat 1994). Returns LAPACK's info.
template <class T> int32_t merge(int64_t n, int64_t half, T e, T* d, T* q, int* order) {
  Scratch<T> memory(n * (2 * n + 4));
  Scratch<int> int_memory(5 * n);
  T *z = memory.data(), *poles = z + n, *w = poles + n, *exact = w + n, *packed = exact + n,
    *s = packed + n * n;
  int *index = int_memory.data(), *status = index + n, *types = status + n, *unused = types + n;
  for (int64_t j = 0; j < n; ++j) z[j] = q[j * n + (j < half ? half - 1 : half)];
  int count = 0, info = 0;
  // How many eigenvalues change. The vectors are packed without the blocks that are zero: types[0]
  // of them have only the upper part, types[2] only the lower one, types[1] both.
  call(Routines<T>::laed2, &count, n, half, d, q, n, order, &e, z, poles, w, packed, unused, index,
       unused + n, types, &info);
  const int64_t k = count, grain = (1 << 12) / std::max<int64_t>(k, 8);
  parallel_each(k, grain, [&](int64_t j) {
    call(Routines<T>::laed4, k, j + 1, poles, w, q + j * n, &e, d + j, status + j);
  });
  for (int64_t j = 0; j < k; ++j) info = info ? info : status[j];
  if (info || k == 0) return info;
  // The w of which these roots are exact: with them the vectors are orthogonal.
  for (int64_t i = 0; i < k; ++i) exact[i] = q[i * n + i];
  for (int64_t j = 0; j < k; ++j) {
    const T* gap = q + j * n;
    for (int64_t i = 0; i < j; ++i) exact[i] *= gap[i] / (poles[i] - poles[j]);
    for (int64_t i = j + 1; i < k; ++i) exact[i] *= gap[i] / (poles[i] - poles[j]);
  }
  for (int64_t i = 0; i < k; ++i) exact[i] = std::copysign(std::sqrt(-exact[i]), w[i]);
  parallel_each(k, grain, [&](int64_t j) {
    T *gap = q + j * n, length = 1;
    if (k > 2) {  // else these are the vectors
      T square = 0;
      for (int64_t i = 0; i < k; ++i) gap[i] = exact[i] / gap[i], square += gap[i] * gap[i];
      length = std::sqrt(square);
    }
    for (int64_t i = 0; i < k; ++i) s[j * k + i] = gap[index[i] - 1] / length;
  });
  // gemm is row-major: it sees the transpose of every matrix, and factors in reverse order.
  const int64_t above = types[0] + types[1], below = types[1] + types[2], rest = n - half;
  gemm<T>(k, half, above, 1, {s, k}, {packed, half}, 0, q, n);
  gemm<T>(k, rest, below, 1, {s + types[0], k}, {packed + half * above, rest}, 0, q + half, n);
  return 0;
}

// Eigenvalues d, in any order, and eigenvectors q (n x n) of a tridiagonal matrix with the diagonal
// d and e next to it, of norm about 1: its halves, without what they share, side by side, and their
// merge. Returns LAPACK's info.
template <class T> int32_t divide_and_conquer(int64_t n, T* d, T* e, T* q) {
  const int64_t half = n / 2, size = n - half, lwork = size * (size + 4) + 1, liwork = 5 * size + 3;
  const T shared = e[half - 1];
  Scratch<T> work(2 * lwork);
  Scratch<int> iwork(2 * liwork), order(n);
  std::array<int, 2> info{};
  std::fill_n(q, n * n, T(0));
  d[half - 1] -= std::abs(shared), d[half] -= std::abs(shared);
  parallel_each(2, 1, [&](int64_t i) {
    const int64_t at = i * half, rows = i ? size : half;
    call(Routines<T>::stedc, 'I', rows, d + at, e + at, q + at * (n + 1), n,
         work.data() + i * lwork, lwork, iwork.data() + i * liwork, liwork, &info[i]);
    std::iota(order.data() + at, order.data() + at + rows, 1);
  });
  if (info[0] || info[1]) return std::max(info[0], info[1]);
  return merge(n, half, shared, d, q, order.data());
}

// The eigenvalues, and the eigenvectors over a, of a large real matrix of moderate numbers. Returns
// LAPACK's info.
template <class T> int32_t eigh_large(int64_t n, bool upper, T* a, T* values) {
  for (int64_t j = 0; upper && j < n; ++j) {
    for (int64_t i = 0; i < j; ++i) a[i * n + j] = a[j * n + i];
  }
  Scratch<T> memory(3 * n), vectors(n * n);
  T *d = memory.data(), *e = d + n, *tau = e + n, scale = 0;
  int32_t info = 0;
  call(Routines<T>::sytrd, 'L', n, a, n, d, e, tau, vectors.data(), n * n, &info);
  e[n - 1] = 0;
  for (int64_t i = 0; i < n; ++i) scale = std::max({scale, std::abs(d[i]), std::abs(e[i])});
  for (int64_t i = 0; i < n; ++i) d[i] /= scale, e[i] /= scale;
  info = divide_and_conquer(n, d, e, vectors.data());
  if (info) return info;
  multiply_reflectors(n - 1, n, false, n - 1, a + 1, n, tau, vectors.data() + 1, n);
  Scratch<int64_t> order(n);
  std::iota(order.data(), order.data() + n, 0);
  std::stable_sort(order.data(), order.data() + n, [&](auto i, auto j) { return d[i] < d[j]; });
  for (int64_t i = 0; i < n; ++i) {
    values[i] = d[order.data()[i]] * scale;
    std::copy_n(vectors.data() + order.data()[i] * n, n, a + i * n);
  }
  return 0;
}

// Those of a matrix that fits a near cache. Returns false, with the matrix as it was, where they
// are not found.
template <class T> bool eigh_near(int64_t n, bool upper, bool vectors, T* a, T* values) {
  Scratch<T> memory(simd::EighLoops<T>::space(n) + n);
  T *e = memory.data(), *space = e + n;
  if (!eigh_loops<T>().tridiagonal(n, upper, a, values, e, space)) return false;
  if (vectors) return eigh_loops<T>().vectors(n, values, e, a, space);
  int info = 0;
  call(Routines<T>::sterf, n, values, e, &info);
  return info == 0;
}

template <class T>
void eigh(int64_t batch, int64_t n, bool upper, bool vectors, T* a, Real<T>* values,
          int32_t* info) {
  narrow(2 * product(n, n) + 6 * static_cast<double>(n) + 1);
  if (batch == 0) return;
  auto run = [&](int64_t i, const Workspace<T>& w) {
    call(Routines<T>::syevd, vectors ? 'V' : 'N', triangle(upper), n, a + i * n * n, leading(n),
         values + i * n, w.work, w.lwork, if_complex<T>(w.rwork), if_complex<T>(w.lrwork), w.iwork,
         w.liwork, info + i);
  };
  const WorkSizes<T> sizes([&](const Workspace<T>& w) { run(0, w); });
  auto one = [&](int64_t i) {
    if constexpr (!is_complex<T>) {
      T* x = a + i * n * n;
      info[i] = 0;
      if (n > 2 && n < kNearEigh && eigh_near(n, upper, vectors, x, values + i * n)) return;
      if (n >= kNearEigh && vectors && is_moderate(largest_of(n, upper, x))) {
        info[i] = eigh_large(n, upper, x, values + i * n);
        return;
      }
    }
    sizes.use([&](const Workspace<T>& w) { run(i, w); });
  };
  auto some = [&](const auto& loops, int64_t i, int64_t count) {
    T* x = a + i * n * n;
    std::fill_n(info + i, count, 0);
    return loops.eigh(count, n, upper, x, values + i * n, vectors ? x : nullptr);
  };
  // The vectors of 2x2 matrices have the same signs in all libraries, those of larger ones do not.
  const Together how = vectors && n == 2 ? Together{} : rotated_together<T>(batch, n, n);
  each_together<T>(batch, product(n, n, n) * 4, how, some, one);
}

}  // namespace
}  // namespace taeda::cpu::lapack

TAEDA_LINALG_TABLE(HermitianKernels, cpu::lapack::eigh<T>)
