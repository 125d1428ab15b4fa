#include "kernels/cpu/simd/gemm_bf16.h"

#ifdef __AVX512F__
#include <immintrin.h>
#endif

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

constexpr int64_t kRows = 8, kCols = 32;

[[maybe_unused]] uint16_t rounded(float x) {
  const auto u = __builtin_bit_cast(uint32_t, x);
  return static_cast<uint16_t>(x != x ? 0x7fc0u : (u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}

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

// The instruction takes subnormal numbers for zero and keeps parts of a NaN: those are rounded by
// themselves.
[[gnu::target("avx512bf16")]]
void round_fast(const float* from, int64_t n, uint16_t* to) {
  constexpr int64_t lanes = 16;
  constexpr int special = 0x01 | 0x20 | 0x80;  // quiet NaN, subnormal, signalling NaN
  int64_t begin = 0;
  for (; begin + 2 * lanes <= n; begin += 2 * lanes) {
    const __m512 first = _mm512_loadu_ps(from + begin);
    const __m512 second = _mm512_loadu_ps(from + begin + lanes);
    const __mmask16 left = _mm512_fpclass_ps_mask(first, special);
    if (left | _mm512_fpclass_ps_mask(second, special)) [[unlikely]]
      break;
    _mm512_storeu_si512(to + begin, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(second, first)));
  }
  for (int64_t i = begin; i < n; i += lanes) {
    const int64_t some = n - i < lanes ? n - i : lanes;
    const auto mask = static_cast<__mmask16>((1u << some) - 1);
    const __m512 v = _mm512_maskz_loadu_ps(mask, from + i);
    if (_mm512_fpclass_ps_mask(v, special)) [[unlikely]] {
      for (int64_t l = i; l < i + some; ++l) to[l] = rounded(from[l]);
    } else {
      _mm256_mask_storeu_epi16(to + i, mask, reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(v)));
    }
  }
}
constexpr auto round_if_any = round_fast;
#else
constexpr decltype(GemmBf16Kernels::round) round_if_any = nullptr;
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

}  // namespace

extern constinit const GemmBf16Kernels gemm_bf16_kernels = {kRows, kCols, product_if_any, pair_rows,
                                                            round_if_any};

}  // namespace taeda::cpu::simd::TAEDA_ISA
