#include "kernels/cpu/gemm/simd/gemm_skinny_half.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "kernels/cpu/reduce/simd/lanes.h"
#include "kernels/cpu/simd/registers.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

using taeda::TAEDA_ISA::bits_as;
using V = typename Vector<float>::type;
constexpr int64_t kWide = kLanes<float>;

[[maybe_unused]] FN float widened(uint16_t h) {
  const uint32_t magnitude = h & 0x7fffu;
  const uint32_t special = magnitude >= 0x7c00u ? 0x7f800000u : 0u;
  return bits_as<float>(bits_as<uint32_t>(bits_as<float>(magnitude << 13) * 0x1p112f) | special |
                        uint32_t(h & 0x8000u) << 16);
}

#if defined(__AVX512F__)
template <bool Brain> FN V wide(__m256i h) {
  if constexpr (!Brain) return (V)_mm512_maskz_cvtph_ps(0xffff, h);
  else return (V)_mm512_maskz_slli_epi32(0xffff, _mm512_maskz_cvtepu16_epi32(0xffff, h), 16);
}
#endif
template <bool Brain> FN V load(const uint16_t* p) {
#if defined(__AVX512F__)
  return wide<Brain>(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
#elif defined(__AVX2__)
  const __m128i h = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  if constexpr (!Brain) return (V)_mm256_cvtph_ps(h);
  else return (V)_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16);
#else
  V v;
  for (int64_t i = 0; i < kWide; ++i)
    v[i] = Brain ? bits_as<float>(uint32_t(p[i]) << 16) : widened(p[i]);
  return v;
#endif
}
// The first n; 0 for the others.
template <bool Brain> FN V load_some(const uint16_t* p, int64_t n) {
#if defined(__AVX512F__)
  return wide<Brain>(_mm256_maskz_loadu_epi16(static_cast<__mmask16>((1u << n) - 1), p));
#else
  uint16_t some[kWide] = {};
  for (int64_t i = 0; i < n; ++i) some[i] = p[i];
  return load<Brain>(some);
#endif
}

FN float add_up(V v) { return add_lanes<float, float, kWide>(v); }

// ---- rows of w along the sum ----

// R rows of w at once, for each of which a number of x is read once.
template <bool Brain, int M, int R, int Together>
FN void dots_of_rows(int64_t k, const uint16_t* w, int64_t w_row, const float* x, int64_t x_row,
                     float* y, int64_t y_row) {
  V sum[R][M][Together] = {};  // Together: that do not wait for one another
  int64_t p = 0;
  const auto add = [&](int t, const V(&right)[R]) {
    for (int i = 0; i < M; ++i) {
      const V left = at(x + i * x_row + p + t * kWide);
      for (int r = 0; r < R; ++r) sum[r][i][t] += left * right[r];
    }
  };
  V right[R];
  for (; p + Together * kWide <= k; p += Together * kWide) {
    for (int t = 0; t < Together; ++t) {
      for (int r = 0; r < R; ++r) right[r] = load<Brain>(w + r * w_row + p + t * kWide);
      add(t, right);
    }
  }
  for (; p < k; p += kWide) {
    for (int r = 0; r < R; ++r) {
      const uint16_t* from = w + r * w_row + p;
      right[r] = k - p >= kWide ? load<Brain>(from) : load_some<Brain>(from, k - p);
    }
    add(0, right);
  }
  for (int r = 0; r < R; ++r) {
    for (int i = 0; i < M; ++i) {
      for (int t = 1; t < Together; ++t) sum[r][i][0] += sum[r][i][t];
      y[i * y_row + r] = add_up(sum[r][i][0]);
    }
  }
}

template <bool Brain, int M>
FN void dots_of(int64_t n, int64_t k, const uint16_t* w, int64_t w_row, const float* x,
                int64_t x_row, float* y, int64_t y_row) {
  constexpr int sums = kBytes == 64 ? 24 : 12;  // the registers that there are for them
  constexpr int rows = M == 1 ? 1 : sums / M > 4 ? 4 : sums / M;
  constexpr int together = M * rows <= 4 ? 4 : 1;
  int64_t j = 0;
  for (; j + rows <= n; j += rows)
    dots_of_rows<Brain, M, rows, together>(k, w + j * w_row, w_row, x, x_row, y + j, y_row);
  for (; j < n; ++j)
    dots_of_rows<Brain, M, 1, together>(k, w + j * w_row, w_row, x, x_row, y + j, y_row);
}

// ---- rows of w across it ----

// R rows at once.
template <bool Brain, int M, int R>
FN void add_rows(int64_t n, const uint16_t* w, int64_t w_row, const float* x, int64_t x_row,
                 float* y, int64_t y_row) {
  const auto add = [&](int64_t j, const V(&right)[R]) {
    for (int i = 0; i < M; ++i) {
      V& to = at(y + i * y_row + j);
      V sum = to;
      for (int r = 0; r < R; ++r) sum += x[i * x_row + r] * right[r];
      to = sum;
    }
  };
  int64_t j = 0;
  V right[R];
  for (; j + kWide <= n; j += kWide) {
    for (int r = 0; r < R; ++r) {
      __builtin_prefetch(w + (R + r) * w_row + j);
      right[r] = load<Brain>(w + r * w_row + j);
    }
    add(j, right);
  }
  if (j == n) return;
  for (int r = 0; r < R; ++r) right[r] = load_some<Brain>(w + r * w_row + j, n - j);
  add(j, right);
}

template <bool Brain, int M>
FN void sums_of(int64_t n, int64_t k, const uint16_t* w, int64_t w_row, const float* x,
                int64_t x_row, float* y, int64_t y_row) {
  constexpr int rows = kRows / 2;
  for (int i = 0; i < M; ++i) {
    for (int64_t j = 0; j < n; j += kWide) at(y + i * y_row + j) = V{};
  }
  int64_t p = 0;
  for (; p + rows <= k; p += rows)
    add_rows<Brain, M, rows>(n, w + p * w_row, w_row, x + p, x_row, y, y_row);
  for (; p < k; ++p) add_rows<Brain, M, 1>(n, w + p * w_row, w_row, x + p, x_row, y, y_row);
}

template <bool Brain, int M = kFewRows>
void dots(int64_t m, int64_t n, int64_t k, const uint16_t* w, int64_t w_row, const float* x,
          int64_t x_row, float* y, int64_t y_row) {
  if constexpr (M > 1) {
    if (m < M) return dots<Brain, M - 1>(m, n, k, w, w_row, x, x_row, y, y_row);
  }
  dots_of<Brain, M>(n, k, w, w_row, x, x_row, y, y_row);
}
template <bool Brain, int M = kFewRows>
void sums(int64_t m, int64_t n, int64_t k, const uint16_t* w, int64_t w_row, const float* x,
          int64_t x_row, float* y, int64_t y_row) {
  if constexpr (M > 1) {
    if (m < M) return sums<Brain, M - 1>(m, n, k, w, w_row, x, x_row, y, y_row);
  }
  sums_of<Brain, M>(n, k, w, w_row, x, x_row, y, y_row);
}

}  // namespace

extern constinit const FewHalvesKernels few_halves_kernels = {{dots<false>, sums<false>},
                                                              {dots<true>, sums<true>}};

}  // namespace taeda::cpu::simd::TAEDA_ISA
