#include "kernels/cpu/linalg/simd/symmetric.h"

#include "kernels/cpu/linalg/simd/householder.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

static_assert(SymmetricLoops<float>::kBlock == kColumnBlock);

template <class T>
void multiply(int64_t n, int64_t begin, int64_t end, const T* a, int64_t ld, const T* x, T* y) {
  using V = typename Vector<T>::type;
  for (int64_t c = begin; c < end; c += kColumns) {
    const T* column = a + c * ld;
    V sum[kColumns] = {};
    for (int64_t r = block_down(c); r < n; r += kLanes<T>) {
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

template <class T>
void dots(int64_t from, int64_t n, int64_t many, const T* a, int64_t ld, const T* x, T* out) {
  int64_t c = 0;
  for (; c + kColumns <= many; c += kColumns)
    some_dots<kColumns>(from, n, a + c * ld, ld, x, out + c);
  for (; c < many; ++c) some_dots<1>(from, n, a + c * ld, ld, x, out + c);
}

template <class T>
void add(int64_t from, int64_t n, int64_t many, const T* a, int64_t ld, const T* factors, T* y) {
  int64_t c = 0;
  for (; c + kColumns <= many; c += kColumns)
    add_some<kColumns>(from, n, a + c * ld, ld, factors + c, y);
  for (; c < many; ++c) add_some<1>(from, n, a + c * ld, ld, factors + c, y);
}

template <class T> void times(int64_t from, int64_t n, const T* x, const T* y, T* out) {
  for (int64_t r = from; r < n; r += kLanes<T>) at(out + r) = at(x + r) * at(y + r);
}

template <class T> void combine(int64_t from, int64_t n, T factor, T shift, const T* x, T* y) {
  for (int64_t r = from; r < n; r += kLanes<T>)
    at(y + r) = factor * (at(y + r) - shift * at(x + r));
}

template <class T> T reflect(int64_t first, int64_t n, T* v, T& beside) {
  return make_reflector(first, n, v, beside);
}

template <class T>
constexpr SymmetricLoops<T> symmetric_loops{multiply<T>, dots<T>,    add<T>,
                                            times<T>,    combine<T>, reflect<T>};

}  // namespace

extern constinit const SymmetricKernels symmetric_kernels{symmetric_loops<float>,
                                                          symmetric_loops<double>};

}  // namespace taeda::cpu::simd::TAEDA_ISA
