#include "kernels/cpu/reduce/simd/row_sums.h"

#include "kernels/cpu/common/simd/lane_mask.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

// The sums of some neighbouring columns. Four by turns: one would wait for itself.
template <class T, class L>
FN void sum_columns(L lanes, const T* x, int64_t n, int64_t stride, T* y) {
  typename L::Row sum[4] = {};
  int64_t r = 0;
  for (; r + 4 <= n; r += 4, x += 4 * stride) {
    for (int k = 0; k < 4; ++k) sum[k] += lanes.load(x + k * stride);
  }
  for (; r < n; ++r, x += stride) sum[0] += lanes.load(x);
  lanes.store(y, (sum[0] + sum[1]) + (sum[2] + sum[3]));
}

template <class T> void sum_rows(const T* x, int64_t n, int64_t stride, int64_t columns, T* y) {
  using V = typename Vector<T>::type;
  constexpr int64_t wide = 4 * kLanes<T>;
  int64_t c = 0;
  for (; c + wide <= columns; c += wide) {
    V sum[4] = {};
    for (int64_t r = 0; r < n; ++r) {
      const T* row = x + r * stride + c;
      for (int k = 0; k < 4; ++k) sum[k] += at(row + k * kLanes<T>);
    }
    for (int k = 0; k < 4; ++k) at(y + c + k * kLanes<T>) = sum[k];
  }
  auto run = [&]<int W>() {
    for (; c + W <= columns; c += W) sum_columns(AllLanes<T, W>(), x + c, n, stride, y + c);
  };
  run.template operator()<kLanes<T>>();
  if constexpr (kHasMasks) {
    if (c < columns) sum_columns(LaneMask<T>(columns - c), x + c, n, stride, y + c);
  } else {
    run.template operator()<1>();
  }
}

}  // namespace

extern const RowSums row_sums{sum_rows<float>, sum_rows<double>};

}  // namespace taeda::cpu::simd::TAEDA_ISA
