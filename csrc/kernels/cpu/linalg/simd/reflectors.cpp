#include "kernels/cpu/linalg/simd/reflectors.h"

#include "kernels/cpu/linalg/simd/householder.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

// A matrix in work space: columns as columns.h wants them, as many more as its loops read.
template <class T> struct Padded {
  int64_t m, n, ld;
  T *x, *beside;

  Padded(int64_t rows, int64_t cols, T* work)
      : m(rows),
        n(cols),
        ld(block_down(rows + kColumnBlock - 1)),
        x(work),
        beside(x + ld * (n + kColumns)) {}

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

// v = reflector i of those in a, each `high` long, filled up with zeros.
template <class T> void take_reflector(int64_t i, int64_t high, const T* a, T* v) {
  for (int64_t r = block_down(i); r < i; ++r) v[r] = 0;
  v[i] = 1;
  __builtin_memcpy(v + i + 1, a + i * high + i + 1, (high - i - 1) * sizeof(T));
  for (int64_t r = high; r % kColumnBlock; ++r) v[r] = 0;
}

// Reflector i of the matrix's column i, applied to those behind it.
template <class T> FN T reflect_next(const Padded<T>& p, int64_t i) {
  const int64_t from = block_down(i);
  T *column = p.x + i * p.ld, *v = p.beside;
  for (int64_t r = from; r < i; ++r) v[r] = 0;
  __builtin_memcpy(v + i, column + i, (p.ld - i) * sizeof(T));
  const T tau = make_reflector(i, p.ld, v, column[i]);
  __builtin_memcpy(column + i + 1, v + i + 1, (p.ld - i - 1) * sizeof(T));
  turn_columns(from, p.ld, tau, v, i + 1, p.n, p.x, p.ld);
  return tau;
}

template <class T> void qr(int64_t m, int64_t n, T* a, T* tau, T* work) {
  const Padded<T> p(m, n, work);
  p.load(a, m);
  for (int64_t i = 0; i < m && i < n; ++i) tau[i] = reflect_next(p, i);
  p.store(a, m);
}

// Lengths are brought up to date by what a step takes from them, and measured again once little of
// them is left (Drmac and Bujanovic 2008).
template <class T> void qr_pivots(int64_t m, int64_t n, T* a, T* tau, int32_t* order, T* work) {
  constexpr T enough = sizeof(T) == 4 ? T(0x1p-12) : T(0x1p-26);
  const Padded<T> p(m, n, work);
  p.load(a, m);
  T *lengths = p.beside + p.ld, *measured = lengths + n;
  auto measure = [&](int64_t from, int64_t c) {
    T sum = 0;
    const T* column = p.x + c * p.ld;
    for (int64_t r = from; r % kColumnBlock; ++r) sum += column[r] * column[r];
    T rest;
    some_dots<1>(block_down(from + kColumnBlock - 1), p.ld, column, p.ld, column, &rest);
    lengths[c] = measured[c] = taeda::TAEDA_ISA::sqrt(sum + rest);
  };
  for (int64_t c = 0; c < n; ++c) {
    order[c] = static_cast<int32_t>(c);
    measure(0, c);
  }
  for (int64_t i = 0; i < m && i < n; ++i) {
    int64_t best = i;
    for (int64_t c = i + 1; c < n; ++c) best = lengths[c] > lengths[best] ? c : best;
    if (best != i) {
      T *here = p.x + i * p.ld, *there = p.x + best * p.ld;
      for (int64_t r = 0; r < p.ld; ++r) {
        const T before = here[r];
        here[r] = there[r];
        there[r] = before;
      }
      lengths[best] = lengths[i], measured[best] = measured[i];
      const int32_t before = order[i];
      order[i] = order[best], order[best] = before;
    }
    tau[i] = reflect_next(p, i);
    for (int64_t c = i + 1; c < n; ++c) {
      if (lengths[c] == 0) continue;
      const T part = p.x[c * p.ld + i] / lengths[c], left = 1 - part * part,
              ratio = lengths[c] / measured[c], sure = left > 0 ? left * ratio * ratio : T(0);
      if (sure <= enough) measure(i + 1, c);
      else lengths[c] *= taeda::TAEDA_ISA::sqrt(left);
    }
  }
  p.store(a, m);
}

template <class T> void q(int64_t m, int64_t n, int64_t k, T* a, const T* tau, T* work) {
  const Padded<T> p(m, n, work);
  p.load_unit();
  for (int64_t i = k; i-- > 0;) {
    take_reflector(i, m, a, p.beside);
    turn_columns(block_down(i), p.ld, tau[i], p.beside, i, n, p.x, p.ld);
  }
  p.store(a, m);
}

template <class T>
void multiply(int64_t m, int64_t n, bool left, bool turned, int64_t k, const T* a, const T* tau,
              T* c, int64_t ldc, T* work) {
  const Padded<T> p(m, n, work);
  p.load(c, ldc);
  T *sum = p.beside, *v = left ? p.beside : sum + p.ld;
  for (int64_t i = 0; i < k; ++i) {
    const int64_t j = left == turned ? i : k - 1 - i;
    take_reflector(j, left ? m : n, a, v);
    if (left) {
      turn_columns(block_down(j), p.ld, tau[j], v, 0, n, p.x, p.ld);
    } else {
      sum_columns(0, p.ld, p.x, p.ld, j, n, v, sum);
      for (int64_t r = 0; r < p.ld; ++r) sum[r] *= tau[j];
      subtract_from_columns(0, p.ld, sum, v, j, n, p.x, p.ld);
    }
  }
  p.store(c, ldc);
}

template <class T>
constexpr ReflectorLoops<T> reflector_loops{qr<T>, qr_pivots<T>, q<T>, multiply<T>};

}  // namespace

extern constinit const ReflectorKernels reflector_kernels{reflector_loops<float>,
                                                          reflector_loops<double>};

}  // namespace taeda::cpu::simd::TAEDA_ISA
