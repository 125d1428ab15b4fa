#include "kernels/cpu/linalg/simd/reflectors.h"

#include "kernels/cpu/linalg/simd/householder.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

// A matrix in work space, padded as householder.h wants it.
template <class T> struct Padded {
  int64_t m, n, ld;
  T *x, *column;

  Padded(int64_t rows, int64_t cols, T* work)
      : m(rows),
        n(cols),
        ld(block_up(rows)),
        x(work),
        column(x + ld * (n + kColumns)) {}

  void load(const T* a, int64_t lda) const {
    for (int64_t c = 0; c < n; ++c) {
      T* to = x + c * ld;
      __builtin_memcpy(to, a + c * lda, m * sizeof(T));
      for (int64_t r = m; r < ld; ++r) to[r] = 0;
    }
    __builtin_memset(x + n * ld, 0, kColumns * ld * sizeof(T));
  }
  void load_unit() const {
    __builtin_memset(x, 0, (n + kColumns) * ld * sizeof(T));
    for (int64_t c = 0; c < n && c < m; ++c) x[c * (ld + 1)] = 1;
  }
  void store(T* a, int64_t lda) const {
    for (int64_t c = 0; c < n; ++c) __builtin_memcpy(a + c * lda, x + c * ld, m * sizeof(T));
  }
};

// v = reflector i of those in a, each `high` long, padded with zeros.
template <class T> void take_reflector(int64_t i, int64_t high, const T* a, int64_t lda, T* v) {
  for (int64_t r = block_down(i); r < i; ++r) v[r] = 0;
  v[i] = 1;
  __builtin_memcpy(v + i + 1, a + i * lda + i + 1, (high - i - 1) * sizeof(T));
  for (int64_t r = high; r % kColumnBlock; ++r) v[r] = 0;
}

// Reflector i of the matrix's column i, applied to those behind it.
template <class T> FN T reflect_next(const Padded<T>& p, int64_t i) {
  const int64_t from = block_down(i);
  T *column = p.x + i * p.ld, *v = p.column;
  for (int64_t r = from; r < i; ++r) v[r] = 0;
  __builtin_memcpy(v + i, column + i, (p.ld - i) * sizeof(T));
  const T tau = make_reflector(i, p.ld, v, column[i]);
  __builtin_memcpy(column + i + 1, v + i + 1, (p.ld - i - 1) * sizeof(T));
  reflect_columns(from, p.ld, tau, v, i + 1, p.n, p.x, p.ld);
  return tau;
}

template <class T> void qr(int64_t m, int64_t n, T* a, int64_t lda, T* tau, T* work) {
  const Padded<T> p(m, n, work);
  p.load(a, lda);
  for (int64_t i = 0; i < m && i < n; ++i) tau[i] = reflect_next(p, i);
  p.store(a, lda);
}

template <class T> void q(int64_t m, int64_t n, int64_t k, T* a, const T* tau, T* work) {
  const Padded<T> p(m, n, work);
  p.load_unit();
  for (int64_t i = k; i-- > 0;) {
    take_reflector(i, m, a, m, p.column);
    reflect_columns(block_down(i), p.ld, tau[i], p.column, i, n, p.x, p.ld);
  }
  p.store(a, m);
}

template <class T>
void multiply(int64_t m, int64_t n, bool transposed, int64_t k, const T* a, int64_t lda,
              const T* tau, T* c, int64_t ldc, T* work) {
  const Padded<T> p(m, n, work);
  p.load(c, ldc);
  for (int64_t i = 0; i < k; ++i) {
    const int64_t j = transposed ? i : k - 1 - i;
    take_reflector(j, m, a, lda, p.column);
    reflect_columns(block_down(j), p.ld, tau[j], p.column, 0, n, p.x, p.ld);
  }
  p.store(c, ldc);
}

template <class T> T find_largest(int64_t n, const T* x) { return largest_size(n, x); }

template <class T>
constexpr ReflectorLoops<T> reflector_loops{qr<T>, q<T>, multiply<T>, find_largest<T>};

}  // namespace

extern constinit const ForFloats<ReflectorLoops> reflector_kernels{reflector_loops<float>,
                                                                   reflector_loops<double>};

}  // namespace taeda::cpu::simd::TAEDA_ISA
