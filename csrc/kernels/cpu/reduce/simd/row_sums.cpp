#include "kernels/cpu/reduce/simd/row_sums.h"

#include "kernels/cpu/simd/vec.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

template <class T> void sum_rows(const T* x, int64_t n, int64_t stride, int64_t columns, T* y) {
  constexpr int64_t w = kLanes<T>;
  int64_t c = 0;
  for (; c + 4 * w <= columns; c += 4 * w) {
    Vec<T> sum[4] = {};
    for (int64_t r = 0; r < n; ++r) {
      for (int k = 0; k < 4; ++k) sum[k] += load(x + r * stride + c + k * w);
    }
    for (int k = 0; k < 4; ++k) store(y + c + k * w, sum[k]);
  }
  for (; c < columns; c += w) {
    const FirstLanes<T> lanes(columns - c < w ? columns - c : w);
    Vec<T> sum[4] = {};  // four accumulators hide the latency of the additions
    int64_t r = 0;
    for (; r + 4 <= n; r += 4) {
      for (int k = 0; k < 4; ++k) sum[k] += lanes.load(x + (r + k) * stride + c);
    }
    for (; r < n; ++r) sum[0] += lanes.load(x + r * stride + c);
    lanes.store(y + c, (sum[0] + sum[1]) + (sum[2] + sum[3]));
  }
}

}  // namespace

extern const ForFloats<RowSums> row_sums{sum_rows<float>, sum_rows<double>};

}  // namespace taeda::cpu::simd::TAEDA_ISA
