#include "kernels/cpu/simd/triangles.h"

#include "kernels/cpu/simd/columns.h"

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

template <class T> constexpr TriangleLoops<T> triangle_loops{inverse<T>};

}  // namespace

extern constinit const TriangleKernels triangle_kernels{triangle_loops<float>,
                                                        triangle_loops<double>};

}  // namespace taeda::cpu::simd::TAEDA_ISA
