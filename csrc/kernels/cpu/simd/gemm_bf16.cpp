#include "kernels/cpu/simd/gemm_bf16.h"

#ifdef __AVX512F__
#include <immintrin.h>
#endif

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

constexpr int64_t kRows = 8, kCols = 32;

#ifdef __AVX512F__
// The caller has asked whether the machine has these instructions, which the level v4 does not
// promise.
template <int M>
[[gnu::target("avx512bf16")]]
void product_of(int64_t pairs, const Bf16Pair* a, int64_t a_row, int64_t a_step, const uint32_t* b,
                float* c) {
  __m512 sum[M][2]{};
  for (int64_t p = 0; p < pairs; ++p, a += a_step, b += kCols) {
    const auto left = reinterpret_cast<__m512bh>(_mm512_loadu_si512(b));
    const auto right = reinterpret_cast<__m512bh>(_mm512_loadu_si512(b + kCols / 2));
#pragma GCC unroll 8
    for (int r = 0; r < M; ++r) {
      const auto factor =
          reinterpret_cast<__m512bh>(_mm512_set1_epi32(static_cast<int>(a[r * a_row])));
      sum[r][0] = _mm512_dpbf16_ps(sum[r][0], factor, left);
      sum[r][1] = _mm512_dpbf16_ps(sum[r][1], factor, right);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < M; ++r) {
    _mm512_storeu_ps(c + r * kCols, sum[r][0]);
    _mm512_storeu_ps(c + r * kCols + kCols / 2, sum[r][1]);
  }
}

template <int M = kRows>
void product(int64_t rows, int64_t pairs, const Bf16Pair* a, int64_t a_row, int64_t a_step,
             const uint32_t* b, float* c) {
  if constexpr (M > 1) {
    if (rows < M) return product<M - 1>(rows, pairs, a, a_row, a_step, b, c);
  }
  product_of<M>(pairs, a, a_row, a_step, b, c);
}
constexpr auto product_if_any = product<>;
#else
constexpr decltype(GemmBf16Kernels::product) product_if_any = nullptr;
#endif

void pair_rows(const uint16_t* x, int64_t ld, int64_t depth, int64_t n, uint32_t* to,
               int64_t to_step) {
  for (int64_t p = 0; p + 1 < depth; p += 2, x += 2 * ld, to += to_step) {
    for (int64_t i = 0; i < n; ++i) to[i] = uint32_t(x[i]) | uint32_t(x[ld + i]) << 16;
  }
  if (depth % 2) {
    for (int64_t i = 0; i < n; ++i) to[i] = x[i];
  }
}

void round(const float* from, int64_t n, uint16_t* to) {
  for (int64_t i = 0; i < n; ++i) {
    const auto u = __builtin_bit_cast(uint32_t, from[i]);
    const uint32_t rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
    to[i] = static_cast<uint16_t>(from[i] != from[i] ? 0x7fc0u : rounded);
  }
}

}  // namespace

extern constinit const GemmBf16Kernels gemm_bf16_kernels = {kRows, kCols, product_if_any, pair_rows,
                                                            round};

}  // namespace taeda::cpu::simd::TAEDA_ISA
