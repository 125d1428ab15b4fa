#include "kernels/cpu/simd/row_sums.h"

#include "kernels/cpu/simd/registers.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

template <class T> void sum_rows(const T* x, int64_t n, int64_t stride, int64_t columns, T* y) {
  using V = typename Vector<T>::type;
  constexpr int64_t wide = 4 * kLanes<T>;
  int64_t c = 0;
  for (; c + wide <= columns; c += wide) {
    V sum[4] = {};
    for (int64_t r = 0; r < n; ++r) {
      const T* row = x + r * stride + c;
      for (int k = 0; k < 4; ++k) sum[k] += *reinterpret_cast<const V*>(row + k * kLanes<T>);
    }
    for (int k = 0; k < 4; ++k) *reinterpret_cast<V*>(y + c + k * kLanes<T>) = sum[k];
  }
  for (; c < columns; ++c) {
    T sum = 0;
    for (int64_t r = 0; r < n; ++r) sum += x[r * stride + c];
    y[c] = sum;
  }
}

}  // namespace

extern const RowSums row_sums{sum_rows<float>, sum_rows<double>};

}  // namespace taeda::cpu::simd::TAEDA_ISA
