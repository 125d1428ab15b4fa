#include "kernels/cpu/conv/simd/conv_nhwc.h"

#include "kernels/cpu/simd/vec.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

// Rows of accumulators, two registers wide: as many as there are registers for, with two of the
// panel and one broadcast element.
constexpr int kRows = kRegisters == 32 ? 8 : kRegisterBytes == 32 ? 6 : 4;

// Rows by W vectors of N lanes.
template <class T, int64_t N, int W, int M> void product_of(const RunProduct<T>& x) {
  Vec<T, N> sum[M][W];
#pragma GCC unroll 16
  for (int r = 0; r < M; ++r) {
    for (int w = 0; w < W; ++w) sum[r][w] = x.start ? load<N>(x.start + w * N) : Vec<T, N>{};
  }
  const int64_t row = x.a_row, step = x.a_step, b_step = x.b_step;
  for (int64_t i = 0; i < x.runs; ++i) {
    const T *a = x.a + x.a_at[i], *b = x.b + x.b_at[i];
    for (int64_t p = 0; p < x.count; ++p, a += step, b += b_step) {
      const Vec<T, N> left = load<N>(b), right = load<N>(b + (W - 1) * N);
#pragma GCC unroll 16
      for (int r = 0; r < M; ++r) {
        sum[r][0] += a[r * row] * left;
        if constexpr (W == 2) sum[r][1] += a[r * row] * right;
      }
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < M; ++r) {
    // What is added is summed by itself first: long sums would lose more.
    for (int w = 0; w < W; ++w) {
      T* to = x.c + r * x.c_row + w * N;
      store(to, x.start ? sum[r][w] : load<N>(to) + sum[r][w]);
    }
  }
}

template <class T, int64_t N, int W, int M = 2 * kRows / W>
void product(int64_t rows, const RunProduct<T>& x) {
  if constexpr (M > 1) {
    if (rows < M) return product<T, N, W, M - 1>(rows, x);
  }
  product_of<T, N, W, M>(x);
}

// The narrowest panel fills half of a register, where registers have more than 16 bytes.
template <class T> constexpr int64_t kHalf = kRegisterBytes > 16 ? kLanes<T> / 2 : kLanes<T>;

template <class T>
constexpr NhwcLoops<T> nhwc_loops = {
    {2 * kLanes<T>, kLanes<T>, kHalf<T>},
    {kRows, 2 * kRows, 2 * kRows},
    {product<T, kLanes<T>, 2>, product<T, kLanes<T>, 1>, product<T, kHalf<T>, 1>}};

}  // namespace

extern constinit const NhwcKernels nhwc_kernels = {nhwc_loops<float>, nhwc_loops<double>};

}  // namespace taeda::cpu::simd::TAEDA_ISA
