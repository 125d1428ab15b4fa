#include "kernels/cpu/simd/symmetric.h"

#include "kernels/cpu/simd/lanes.h"
#include "kernels/cpu/simd/registers.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

// Columns at once: as many as there are registers for, each with its sum and its factor.
constexpr int64_t kColumns = kBytes == 64 ? 8 : 4;

template <class T> T total(typename Vector<T>::type v) { return add_lanes<T, T, kLanes<T>>(v); }

template <class T>
void multiply(int64_t n, int64_t begin, int64_t end, const T* a, int64_t ld, const T* x, T* y) {
  using V = typename Vector<T>::type;
  for (int64_t c = begin; c < end; c += kColumns) {
    const T* column = a + c * ld;
    V sum[kColumns] = {};
    for (int64_t r = c / SymmetricLoops<T>::kBlock * SymmetricLoops<T>::kBlock; r < n;
         r += kLanes<T>) {
      const V across = at(x + r);
      V down = at(y + r);
      for (int64_t k = 0; k < kColumns; ++k) {
        const V v = at(column + k * ld + r);
        down += v * x[c + k];
        sum[k] += v * across;
      }
      at(y + r) = down;
    }
    for (int64_t k = 0; k < kColumns; ++k) y[c + k] += total<T>(sum[k]);
  }
}

template <int64_t Many, class T>
void some_dots(int64_t from, int64_t n, const T* a, int64_t ld, const T* x, T* out) {
  using V = typename Vector<T>::type;
  V sum[Many] = {};
  for (int64_t r = from; r < n; r += kLanes<T>) {
    const V v = at(x + r);
    for (int64_t k = 0; k < Many; ++k) sum[k] += at(a + k * ld + r) * v;
  }
  for (int64_t k = 0; k < Many; ++k) out[k] = total<T>(sum[k]);
}
template <class T>
void dots(int64_t from, int64_t n, int64_t many, const T* a, int64_t ld, const T* x, T* out) {
  int64_t c = 0;
  for (; c + kColumns <= many; c += kColumns)
    some_dots<kColumns>(from, n, a + c * ld, ld, x, out + c);
  for (; c < many; ++c) some_dots<1>(from, n, a + c * ld, ld, x, out + c);
}

template <int64_t Many, class T>
void add_some(int64_t from, int64_t n, const T* a, int64_t ld, const T* factors, T* y) {
  using V = typename Vector<T>::type;
  for (int64_t r = from; r < n; r += kLanes<T>) {
    V sum = at(y + r);
    for (int64_t k = 0; k < Many; ++k) sum += at(a + k * ld + r) * factors[k];
    at(y + r) = sum;
  }
}
template <class T>
void add(int64_t from, int64_t n, int64_t many, const T* a, int64_t ld, const T* factors, T* y) {
  int64_t c = 0;
  for (; c + kColumns <= many; c += kColumns)
    add_some<kColumns>(from, n, a + c * ld, ld, factors + c, y);
  for (; c < many; ++c) add_some<1>(from, n, a + c * ld, ld, factors + c, y);
}

}  // namespace

extern const SymmetricKernels symmetric_kernels{{multiply<float>, dots<float>, add<float>},
                                                {multiply<double>, dots<double>, add<double>}};

}  // namespace taeda::cpu::simd::TAEDA_ISA
