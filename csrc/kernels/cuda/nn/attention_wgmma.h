// Tiles of attention for products by warpgroups: rows of D halves in shared memory as panels of 64
// columns, D / 64 after each other.
#pragma once

#include "kernels/cuda/common/wgmma.h"
#include "kernels/cuda/nn/attention_mma.h"

namespace taeda::cuda {

template <int D, int kRows> struct Panels {
  static constexpr int kChunks = D / 8, kRowBytes = Panel::kRowBytes,
                       kPanelBytes = Panel::bytes(kRows), kBytes = D / 64 * kPanelBytes;
  __device__ static int offset(int row, int chunk) {
    return chunk / 8 * kPanelBytes + row * kRowBytes + ((chunk % 8 ^ (row & 7)) << 4);
  }
};

// The rows of each warp of a warpgroup in registers: 16 rows from `rows`, of D columns.
template <int D> struct LeftRows {
  uint32_t at[D / 16][4];

  __device__ __forceinline__ LeftRows(SharedAddress rows, int panel_bytes) {
#pragma unroll
    for (int panel = 0; panel < D / 64; ++panel) {
      const auto lanes = Lanes<64>::down_first(rows + panel * panel_bytes);
#pragma unroll
      for (int step = 0; step < 4; ++step) lanes.load(at[panel * 4 + step], 0, 2 * step);
    }
  }
};

template <int kN> __device__ __forceinline__ void keep(Sums<1, kN>& s) {
#pragma unroll
  for (int n = 0; n < kN; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) keep(s.at[0][n][i]);
}
template <int kSteps> __device__ __forceinline__ void keep(Left<1, kSteps>& left) {
#pragma unroll
  for (int step = 0; step < kSteps; ++step)
#pragma unroll
    for (int i = 0; i < 4; ++i) keep(left.at[step][0][i]);
}

// Products of left and right^T, of 8 kN rows of the right: one step of 16 columns.
template <class T, class Rows, int kN, int D>
__device__ __forceinline__ void begin_dots_step(Sums<1, kN>& to, const LeftRows<D>& left,
                                                RightSide begin, int step) {
#pragma unroll
  for (int n = 0; n < kN; n += 8)
    multiply_add_64<T, false>(
        &to.at[0][n], left.at[step],
        moved(begin, step / 4 * Rows::kPanelBytes + Panel::bytes(n * 8) + step % 4 * 32), step > 0);
}
// Products of left and right, added to `to`: one step of 16 rows of the right.
template <class T, class Rows, int kN, int kSteps>
__device__ __forceinline__ void begin_product_step(Sums<1, kN>& to, const Left<1, kSteps>& left,
                                                   RightSide begin, int step) {
#pragma unroll
  for (int n = 0; n < kN; n += 8)
    multiply_add_64<T, true>(&to.at[0][n], left.at[step][0],
                             moved(begin, n / 8 * Rows::kPanelBytes + Panel::bytes(16 * step)),
                             true);
}
template <class T, class Rows, int kN, int D>
__device__ __forceinline__ void begin_dots(Sums<1, kN>& to, const LeftRows<D>& left,
                                           SharedAddress right) {
  const RightSide begin = right_side(right);
#pragma unroll
  for (int step = 0; step < D / 16; ++step) begin_dots_step<T, Rows>(to, left, begin, step);
}
template <class T, class Rows, int kN, int kSteps>
__device__ __forceinline__ void begin_product(Sums<1, kN>& to, const Left<1, kSteps>& left,
                                              SharedAddress right) {
  const RightSide begin = right_side(right);
#pragma unroll
  for (int step = 0; step < kSteps; ++step) begin_product_step<T, Rows>(to, left, begin, step);
}

}  // namespace taeda::cuda
