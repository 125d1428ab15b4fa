#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#include "kernels/cpu/gemm/simd/gemm_tile.h"
#include "kernels/cpu/pointwise/simd/transpose.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

#if defined(__AVX512F__)
// The caller has asked whether the machine has these instructions, which the level v4 does not
// promise.
#pragma GCC push_options
#pragma GCC target("avx512bf16")

template <int M, int W> void pairs_tile(int64_t n, const TileProduct<float, Bf16Pair>& x) {
  const Bf16Pair *a = x.a, *b = x.b;
  Vec<float> sum[M][W] = {};
  for (int64_t p = 0; p < x.k; ++p, a += x.a_step, b += x.b_row) {
    __m512bh right[W];
    for (int w = 0; w < W; ++w) right[w] = (__m512bh)_mm512_loadu_si512(b + w * kLanes<float>);
#pragma GCC unroll 8
    for (int r = 0; r < M; ++r) {
      const auto left = (__m512bh)_mm512_set1_epi32(static_cast<int>(a[r * x.a_row].bits));
      for (int w = 0; w < W; ++w)
        sum[r][w] = (Vec<float>)_mm512_dpbf16_ps((__m512)sum[r][w], left, right[w]);
    }
  }
  store_tile<float, kLanes<float>, M, W>(sum, n, x.epilogue, x.c, x.ldc);
}

template <int M = kTileRows>
void tile(int64_t m, int64_t n, const TileProduct<float, Bf16Pair>& x) {
  if constexpr (M > 1) {
    if (m < M) return tile<M - 1>(m, n, x);
  }
  if (n > kLanes<float>) pairs_tile<M, 2>(n, x);
  else pairs_tile<M, 1>(n, x);
}
#pragma GCC pop_options

// Panels of pairs: rows are interleaved two by two, contiguous columns transposed as 32-bit words.
void pack(int64_t k, int64_t n, int64_t width, const BFloat16* from, int64_t row, int64_t col,
          Bf16Pair* to) {
  const auto* x = &elements(from)->bits;
  const int64_t pairs = (k + 1) / 2;
  for (int64_t j = 0; j < n; j += width, x += width * col, to += pairs * width) {
    const int64_t many = n - j < width ? n - j : width;
    if (many < width || (col != 1 && k % 2 != 0)) {
      for (int64_t i = 0; i < pairs * width; ++i) to[i] = {};
    }
    if (col == 1) {
      for (int64_t p = 0; p < k; p += 2) {
        const auto *even = x + p * row, *odd = even + row;
        Bf16Pair* pair = to + p / 2 * width;
        if (p + 1 < k) {
          for (int64_t i = 0; i < many; ++i) pair[i] = {even[i] | uint32_t{odd[i]} << 16};
        } else {
          for (int64_t i = 0; i < many; ++i) pair[i] = {even[i]};
        }
      }
    } else {
      transpose_kernels.of(4, false)(reinterpret_cast<char*>(to), width * 4,
                                     reinterpret_cast<const char*>(x), col * 2, many, k / 2);
      for (int64_t i = 0; k % 2 != 0 && i < many; ++i) to[k / 2 * width + i] = {x[i * col + k - 1]};
    }
  }
}
#endif

}  // namespace

#if defined(__AVX512F__)
extern constinit const Bf16Kernels bf16_kernels = {kTileRows, kTileRows, kLanes<float>, tile<>,
                                                   pack};
#else
extern constinit const Bf16Kernels bf16_kernels = {};
#endif

}  // namespace taeda::cpu::simd::TAEDA_ISA
