#include "kernels/cpu/conv/simd/conv_nhwc.h"

#include "kernels/cpu/simd/registers.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

constexpr int kHalf = kBytes > 16 ? kBytes / 2 : kBytes;  // of a register, for the fewest columns

template <class T, int Bytes> struct Lanes {
  typedef T type __attribute__((vector_size(Bytes), aligned(sizeof(T)), may_alias));
};

template <class T, int Bytes, int W, int M> void product_of(const RunProduct<T>& x) {
  using V = typename Lanes<T, Bytes>::type;
  constexpr int64_t lanes = Bytes / sizeof(T);
  V sum[M][W];
#pragma GCC unroll 16
  for (int r = 0; r < M; ++r) {
    const T* from = x.start ? x.start : x.c + r * x.c_row;
    for (int w = 0; w < W; ++w) sum[r][w] = *reinterpret_cast<const V*>(from + w * lanes);
  }
  const int64_t row = x.a_row, step = x.a_step, b_step = x.b_step;
  for (int64_t i = 0; i < x.runs; ++i) {
    const T *a = x.a + x.a_at[i], *b = x.b + x.b_at[i];
    for (int64_t p = 0; p < x.count; ++p, a += step, b += b_step) {
      const V left = *reinterpret_cast<const V*>(b);
      const V right = *reinterpret_cast<const V*>(b + (W - 1) * lanes);
#pragma GCC unroll 16
      for (int r = 0; r < M; ++r) {
        sum[r][0] += a[r * row] * left;
        if constexpr (W == 2) sum[r][1] += a[r * row] * right;
      }
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < M; ++r) {
    for (int w = 0; w < W; ++w) *reinterpret_cast<V*>(x.c + r * x.c_row + w * lanes) = sum[r][w];
  }
}

template <class T, int Bytes, int W, int M = 2 * kRows / W>
void product(int64_t rows, const RunProduct<T>& x) {
  if constexpr (M > 1) {
    if (rows < M) return product<T, Bytes, W, M - 1>(rows, x);
  }
  product_of<T, Bytes, W, M>(x);
}

template <class T>
constexpr LastLoops<T> last_loops = {
    {2 * kLanes<T>, kLanes<T>, kHalf / int64_t{sizeof(T)}},
    {kRows, 2 * kRows, 2 * kRows},
    {product<T, kBytes, 2>, product<T, kBytes, 1>, product<T, kHalf, 1>}};

}  // namespace

extern constinit const LastKernels last_kernels = {last_loops<float>, last_loops<double>};

}  // namespace taeda::cpu::simd::TAEDA_ISA
