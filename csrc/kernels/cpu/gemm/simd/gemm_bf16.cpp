#include "kernels/cpu/gemm/simd/gemm_bf16.h"

#ifdef __AVX512F__
#include <immintrin.h>
#endif

#include "kernels/cpu/reduce/simd/lanes.h"
#include "kernels/functors_scalar.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

constexpr int64_t kRows = 8, kNumbers = 16;  // of a register

[[maybe_unused]] uint16_t rounded(float x) {
  const auto u = __builtin_bit_cast(uint32_t, x);
  return static_cast<uint16_t>(x != x ? 0x7fc0u : (u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}

#ifdef __AVX512F__
// The caller has asked whether the machine has these instructions, which the level v4 does not
// promise.
#pragma GCC push_options
#pragma GCC target("avx512bf16")

// M rows of sums, W registers wide.
template <int M, int W>
FN void sum_up(int64_t pairs, const Bf16Pair* a, int64_t a_row, int64_t a_step, const uint32_t* b,
               __m512 (&sum)[M][W]) {
  for (int64_t p = 0; p < pairs; ++p, a += a_step, b += W * kNumbers) {
    __m512bh right[W];
    for (int w = 0; w < W; ++w)
      right[w] = reinterpret_cast<__m512bh>(_mm512_loadu_si512(b + w * kNumbers));
#pragma GCC unroll 8
    for (int r = 0; r < M; ++r) {
      const auto factor =
          reinterpret_cast<__m512bh>(_mm512_set1_epi32(static_cast<int>(a[r * a_row])));
      for (int w = 0; w < W; ++w) sum[r][w] = _mm512_dpbf16_ps(sum[r][w], factor, right[w]);
    }
  }
}

template <int W, int M = kRows>
void in_float(int64_t rows, int64_t pairs, const Bf16Pair* a, int64_t a_row, int64_t a_step,
              const uint32_t* b, float* c) {
  if constexpr (M > 1) {
    if (rows < M) return in_float<W, M - 1>(rows, pairs, a, a_row, a_step, b, c);
  }
  __m512 sum[M][W]{};
  sum_up(pairs, a, a_row, a_step, b, sum);
#pragma GCC unroll 8
  for (int r = 0; r < M; ++r) {
    for (int w = 0; w < W; ++w) _mm512_storeu_ps(c + (r * W + w) * kNumbers, sum[r][w]);
  }
}

// The instruction takes subnormal numbers for zero and keeps parts of a NaN: those are rounded by
// themselves.
constexpr int special = 0x01 | 0x20 | 0x80;  // quiet NaN, subnormal, signalling NaN
void round_fast(const float* from, int64_t n, uint16_t* to) {
  constexpr int64_t lanes = 16;
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

// A row of W registers.
template <int W> FN void store_rounded(const __m512 (&sum)[W], uint16_t* to, int64_t n) {
  __mmask16 odd = 0;
  for (int w = 0; w < W; ++w) odd |= _mm512_fpclass_ps_mask(sum[w], special);
  if (odd) [[unlikely]] {
    float row[W * kNumbers];
    for (int w = 0; w < W; ++w) _mm512_storeu_ps(row + w * kNumbers, sum[w]);
    for (int64_t j = 0; j < n; ++j) to[j] = rounded(row[j]);
  } else if constexpr (W == 2) {
    const auto both = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(sum[1], sum[0]));
    if (n == 2 * kNumbers) _mm512_storeu_si512(to, both);
    else _mm512_mask_storeu_epi16(to, (uint32_t(1) << n) - 1, both);
  } else {
    _mm256_mask_storeu_epi16(to, static_cast<__mmask16>((1u << n) - 1),
                             reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(sum[0])));
  }
}

template <int W, int M = kRows>
void in_halves(int64_t rows, int64_t pairs, const Bf16Pair* a, int64_t a_row, int64_t a_step,
               const uint32_t* b, uint16_t* c, int64_t ldc, int64_t n) {
  if constexpr (M > 1) {
    if (rows < M) return in_halves<W, M - 1>(rows, pairs, a, a_row, a_step, b, c, ldc, n);
  }
  __m512 sum[M][W]{};
  sum_up(pairs, a, a_row, a_step, b, sum);
#pragma GCC unroll 8
  for (int r = 0; r < M; ++r) store_rounded(sum[r], c + r * ldc, n);
}

// R rows of w and M of x, where they lie.
template <int M, int R>
FN void dots_of(int64_t k, const uint16_t* x, int64_t x_row, const uint16_t* w, int64_t w_row,
                float* c, int64_t ldc) {
  constexpr int64_t wide = 2 * kNumbers;
  __m512 sum[M][R]{};
  const auto add = [&](const auto& load, int64_t p) {
    __m512bh right[R];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) right[r] = reinterpret_cast<__m512bh>(load(w + r * w_row + p));
#pragma GCC unroll 8
    for (int i = 0; i < M; ++i) {
      const auto left = reinterpret_cast<__m512bh>(load(x + i * x_row + p));
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) sum[i][r] = _mm512_dpbf16_ps(sum[i][r], left, right[r]);
    }
  };
  int64_t p = 0;
  for (; p + wide <= k; p += wide)
    add([](const uint16_t* from) { return _mm512_loadu_si512(from); }, p);
  if (p < k) {
    const __mmask32 some = (uint32_t(1) << (k - p)) - 1;
    add([some](const uint16_t* from) { return _mm512_maskz_loadu_epi16(some, from); }, p);
  }
  for (int i = 0; i < M; ++i) {
    for (int r = 0; r < R; ++r) c[i * ldc + r] = add_lanes<float, float, kNumbers>(sum[i][r]);
  }
}

void dots(int64_t m, int64_t n, int64_t k, const uint16_t* x, int64_t x_row, const uint16_t* w,
          int64_t w_row, float* c, int64_t ldc) {
  constexpr int rows = 6;
  for (int64_t j = 0; j < n;) {
    const int64_t many = n - j >= rows ? rows : 1;
    int64_t i = 0;
    const auto run = [&]<int Some>() {
      for (; i + Some <= m; i += Some) {
        const auto* from = x + i * x_row;
        float* to = c + i * ldc + j;
        if (many == rows) dots_of<Some, rows>(k, from, x_row, w + j * w_row, w_row, to, ldc);
        else dots_of<Some, 1>(k, from, x_row, w + j * w_row, w_row, to, ldc);
      }
    };
    run.template operator()<4>();
    run.template operator()<1>();
    j += many;
  }
}
constexpr auto dots_if_any = dots;

#pragma GCC pop_options

template <int W> constexpr Bf16Products products_if_any = {W * kNumbers, in_float<W>, in_halves<W>};
constexpr auto round_if_any = round_fast;
#else
constexpr decltype(GemmBf16Kernels::round) round_if_any = nullptr;
constexpr decltype(GemmBf16Kernels::dots) dots_if_any = nullptr;
template <int W> constexpr Bf16Products products_if_any = {W * kNumbers, nullptr, nullptr};
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

extern constinit const GemmBf16Kernels gemm_bf16_kernels = {
    kRows, products_if_any<2>, products_if_any<1>, pair_rows, dots_if_any, round_if_any};

}  // namespace taeda::cpu::simd::TAEDA_ISA
