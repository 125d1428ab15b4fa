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

template <int M, int W>
FN void tile_of(int64_t pairs, int64_t n, const Bf16Pair* a, int64_t a_row, int64_t a_step,
                const Bf16Pair* b, int64_t b_row, const Epilogue<float>& e, float* c, int64_t ldc) {
  Vec<float> sum[M][W] = {};
  for (int64_t p = 0; p < pairs; ++p, a += a_step, b += b_row) {
    __m512bh right[W];
    for (int w = 0; w < W; ++w) right[w] = (__m512bh)_mm512_loadu_si512(b + w * kLanes<float>);
#pragma GCC unroll 8
    for (int r = 0; r < M; ++r) {
      const auto left = (__m512bh)_mm512_set1_epi32(static_cast<int>(a[r * a_row]));
      for (int w = 0; w < W; ++w)
        sum[r][w] = (Vec<float>)_mm512_dpbf16_ps((__m512)sum[r][w], left, right[w]);
    }
  }
  if (n < W * kLanes<float>) store_tile<true, float>(sum, n, e, c, ldc);
  else store_tile<false, float>(sum, n, e, c, ldc);
}

template <int M = kTileRows>
void tile(int64_t pairs, int64_t m, int64_t n, const Bf16Pair* a, int64_t a_row, int64_t a_step,
          const Bf16Pair* b, int64_t b_row, const Epilogue<float>& e, float* c, int64_t ldc) {
  if constexpr (M > 1) {
    if (m < M) return tile<M - 1>(pairs, m, n, a, a_row, a_step, b, b_row, e, c, ldc);
  }
  if (n > kLanes<float>) tile_of<M, 2>(pairs, n, a, a_row, a_step, b, b_row, e, c, ldc);
  else tile_of<M, 1>(pairs, n, a, a_row, a_step, b, b_row, e, c, ldc);
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
      for (int64_t i = 0; i < pairs * width; ++i) to[i] = 0;
    }
    if (col == 1) {
      for (int64_t p = 0; p < k; p += 2) {
        const auto *even = x + p * row, *odd = even + row;
        Bf16Pair* pair = to + p / 2 * width;
        if (p + 1 < k) {
          for (int64_t i = 0; i < many; ++i) pair[i] = even[i] | uint32_t{odd[i]} << 16;
        } else {
          for (int64_t i = 0; i < many; ++i) pair[i] = even[i];
        }
      }
    } else {
      transpose_kernels.bytes4(reinterpret_cast<char*>(to), width * 4,
                               reinterpret_cast<const char*>(x), col * 2, many, k / 2);
      for (int64_t i = 0; k % 2 != 0 && i < many; ++i) to[k / 2 * width + i] = x[i * col + k - 1];
    }
  }
}
#endif

}  // namespace

#if defined(__AVX512F__)
extern constinit const Bf16Kernels bf16_kernels = {kTileRows, kLanes<float>, tile, pack};
#else
extern constinit const Bf16Kernels bf16_kernels = {};
#endif

}  // namespace taeda::cpu::simd::TAEDA_ISA
