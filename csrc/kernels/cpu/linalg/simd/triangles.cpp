#include "kernels/cpu/linalg/simd/triangles.h"

#include "kernels/cpu/linalg/simd/householder.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

// Some columns of the unit matrix are solved for at once, from the first row that is not zero.
template <class T>
void inverse(int64_t n, bool upper, const T* l, int64_t ldl, T* w, int64_t ldw, T* work) {
  using V = typename Vector<T>::type;
  const int64_t ld = block_down(n + kColumnBlock - 1);
  T *const x = work, *const factors = x + ld * n, *const some = factors + ld;
  for (int64_t c = 0; c < n; ++c) {
    T* to = x + c * ld;
    for (int64_t r = 0; r <= c; ++r) to[r] = 0;
    for (int64_t r = c + 1; r < n; ++r) to[r] = upper ? l[r * ldl + c] : l[c * ldl + r];
    for (int64_t r = n; r < ld; ++r) to[r] = 0;
    factors[c] = 1 / l[c * (ldl + 1)];
  }
  for (int64_t first = 0; first < n; first += kColumns) {
    const int64_t count = n - first < kColumns ? n - first : kColumns;
    __builtin_memset(some, 0, kColumns * ld * sizeof(T));
    for (int64_t k = 0; k < count; ++k) some[k * ld + first + k] = 1;
    for (int64_t j = first; j < n; ++j) {
      T value[kColumns];
      for (int64_t k = 0; k < kColumns; ++k) value[k] = some[k * ld + j] *= factors[j];
      for (int64_t r = j / kLanes<T> * kLanes<T>; r < n; r += kLanes<T>) {
        const V column = at(x + j * ld + r);
        for (int64_t k = 0; k < kColumns; ++k) {
          V& to = at(some + k * ld + r);
          to = to - column * value[k];
        }
      }
    }
    for (int64_t k = 0; k < count; ++k)
      __builtin_memcpy(w + (first + k) * ldw, some + k * ld, n * sizeof(T));
  }
}

// Which of the elements from `first` on is the largest; beyond the last one are zeros.
template <class T> FN int64_t find_largest(int64_t first, int64_t n, const T* x) {
  using V = typename Vector<T>::type;
  V most = V{} - 1;
  for (int64_t r = block_down(first); r < n; r += kLanes<T>) {
    const V v = at(x + r), size = v < 0 ? -v : v;
    most = size > most ? size : most;
  }
  const T largest = fold_lanes<T, kLanes<T>>(most, [](auto a, auto b) { return a > b ? a : b; });
  for (int64_t r = first; r < n; ++r) {
    if (taeda::TAEDA_ISA::abs(x[r]) == largest) return r;
  }
  return first;
}

template <class T> int32_t lu(int64_t m, int64_t n, T* a, int64_t lda, int32_t* pivots, T* work) {
  const int64_t ld = block_down(m + kColumnBlock - 1);
  T *const x = work, *const v = x + ld * n, *const row = v + ld;
  for (int64_t c = 0; c < n; ++c) {
    __builtin_memcpy(x + c * ld, a + c * lda, m * sizeof(T));
    for (int64_t r = m; r < ld; ++r) x[c * ld + r] = 0;
  }
  int32_t info = 0;
  for (int64_t j = 0; j < m && j < n; ++j) {
    T* const column = x + j * ld;
    const int64_t from = block_down(j);
    for (int64_t r = from; r < j; ++r) v[r] = 0;
    for (int64_t r = j; r < ld; ++r) v[r] = column[r];
    const int64_t best = find_largest(j, ld, v);
    pivots[j] = static_cast<int32_t>(best + 1);
    const T pivot = v[best];
    if (pivot == 0) {
      if (!info) info = static_cast<int32_t>(j + 1);
      continue;
    }
    for (int64_t c = 0; c < n; ++c) {
      T &here = x[c * ld + j], &there = x[c * ld + best];
      const T before = here;
      row[c] = here = there;
      there = before;
    }
    v[best] = v[j];
    v[j] = 0;
    for (int64_t r = from; r < ld; ++r) v[r] /= pivot;
    for (int64_t r = j + 1; r < ld; ++r) column[r] = v[r];
    subtract_from_columns(from, ld, v, row, j + 1, n, x, ld);
  }
  for (int64_t c = 0; c < n; ++c) __builtin_memcpy(a + c * lda, x + c * ld, m * sizeof(T));
  return info;
}

template <class T> constexpr TriangleLoops<T> triangle_loops{inverse<T>, lu<T>};

}  // namespace

extern constinit const TriangleKernels triangle_kernels{triangle_loops<float>,
                                                        triangle_loops<double>};

}  // namespace taeda::cpu::simd::TAEDA_ISA
