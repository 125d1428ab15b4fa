// Eigenvalues and eigenvectors of Hermitian matrices. Small real ones of a batch are diagonalized
// together (simd/batched.h), one that fits a near cache by one loop (simd/eigh.h). Of a large real
// one LAPACK finds the tridiagonal form and its vectors, which our reflectors turn back on all
// threads. Complex ones are LAPACK's.
#include "kernels/cpu/linalg/lapack_qr.h"
#include "kernels/cpu/linalg/lapack_util.h"
#include "kernels/cpu/linalg/simd/eigh.h"

namespace taeda::cpu::lapack {
namespace {

constexpr int64_t kNear = 160;  // rows of a matrix that no longer fits

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

// The eigenvalues, and the eigenvectors over a, of a large real matrix of moderate numbers. Returns
// LAPACK's info.
template <class T> int32_t eigh_large(int64_t n, bool upper, T* a, T* values) {
  if (upper) {
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t i = 0; i < j; ++i) a[i * n + j] = a[j * n + i];
    }
  }
  Scratch<T> e(n), tau(n), vectors(n * n);
  int32_t info = 0;
  const WorkSizes<T> sizes([&](const Workspace<T>& w) {
    call(Routines<T>::stedc, 'I', n, values, e.data(), vectors.data(), n, w.work, w.lwork, w.iwork,
         w.liwork, &info);
  });
  sizes.use([&](const Workspace<T>& w) {
    call(Routines<T>::sytrd, 'L', n, a, n, values, e.data(), tau.data(), w.work, w.lwork, &info);
    call(Routines<T>::stedc, 'I', n, values, e.data(), vectors.data(), n, w.work, w.lwork, w.iwork,
         w.liwork, &info);
  });
  if (info) return info;
  multiply_reflectors(n - 1, n, false, n - 1, a + 1, n, tau.data(), vectors.data() + 1, n);
  std::copy_n(vectors.data(), n * n, a);
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

}  // namespace

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
      if (n > 2 && n < kNear && eigh_near(n, upper, vectors, x, values + i * n)) return;
      if (n >= kNear && vectors && is_moderate(largest_of(n, upper, x))) {
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

#define TAEDA_INSTANTIATE(T) \
  template void eigh<T>(int64_t, int64_t, bool, bool, T*, Real<T>*, int32_t*);
TAEDA_INSTANTIATE(float)
TAEDA_INSTANTIATE(double)
TAEDA_INSTANTIATE(ComplexFloat)
TAEDA_INSTANTIATE(ComplexDouble)

}  // namespace taeda::cpu::lapack
