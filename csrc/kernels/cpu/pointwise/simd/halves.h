// Arithmetic on float16 and bfloat16 in registers: they are widened, computed and rounded without a
// buffer of float32 in between.
//
// Only for the files of this folder that are compiled for each instruction set.
#pragma once

#include "kernels/cpu/pointwise/simd/math_avx512.h"

namespace taeda::TAEDA_ISA {

// How a functor is computed in sixteen lanes of float32, where its halves are to have this way.
template <class Op> struct Halves {
  static constexpr bool kExist = false;
};
template <class Op, bool Brain> struct HalvesLoop;

#if defined(__AVX512F__)

struct Add;
struct Sub;
struct Mul;
struct Div;
struct Sqrt;
template <> struct Halves<Add> {
  static constexpr bool kExist = true;
  FN static LaneFloats at(LaneFloats a, LaneFloats b) { return a + b; }
};
template <> struct Halves<Sub> {
  static constexpr bool kExist = true;
  FN static LaneFloats at(LaneFloats a, LaneFloats b) { return a - b; }
};
template <> struct Halves<Mul> {
  static constexpr bool kExist = true;
  FN static LaneFloats at(LaneFloats a, LaneFloats b) { return a * b; }
};
template <> struct Halves<Div> {
  static constexpr bool kExist = true;
  FN static LaneFloats at(LaneFloats a, LaneFloats b) { return a / b; }
};
template <> struct Halves<Sqrt> {
  static constexpr bool kExist = true;
  FN static LaneFloats at(LaneFloats a) {
    return (LaneFloats)_mm512_maskz_sqrt_ps(kAllLanes, (__m512)a);
  }
};

template <bool Brain> FN LaneFloats load_halves(const uint16_t* p, __mmask16 lanes) {
  const __m256i h = _mm256_maskz_loadu_epi16(lanes, p);
  if constexpr (!Brain) return (LaneFloats)_mm512_maskz_cvtph_ps(kAllLanes, h);
  else return (LaneFloats)((LaneBits)_mm512_maskz_cvtepu16_epi32(kAllLanes, h) << 16);
}
template <bool Brain> FN void store_halves(uint16_t* p, LaneFloats v, __mmask16 lanes) {
  __m256i h;
  if constexpr (!Brain) {
    h = _mm512_maskz_cvtps_ph(kAllLanes, (__m512)v, 0);
  } else {
    const LaneBits u = (LaneBits)v, rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
    const __mmask16 nan = _mm512_cmp_ps_mask((__m512)v, (__m512)v, _CMP_UNORD_Q);
    h = _mm512_maskz_cvtepi32_epi16(
        kAllLanes, _mm512_mask_mov_epi32((__m512i)rounded, nan, _mm512_set1_epi32(0x7fc0)));
  }
  _mm256_mask_storeu_epi16(p, lanes, h);
}

template <class Op, bool Brain> struct HalvesLoop {
  static void loop(void* out, const void* const* in, unsigned numbers, int64_t n) {
    auto* y = static_cast<uint16_t*>(out);
    const auto array = [&](int k) {
      auto* x = static_cast<const uint16_t*>(in[k]);
      return [x](int64_t i, __mmask16 lanes) { return load_halves<Brain>(x + i, lanes); };
    };
    if constexpr (requires(LaneFloats v) { Op::template f<float>(v[0], v[0]); }) {
      const auto number = [&](int k) {
        const LaneFloats c = LaneFloats{} + *static_cast<const float*>(in[k]);
        return [c](int64_t, __mmask16) { return c; };
      };
      if (numbers == 0) walk(y, n, array(0), array(1));
      else if (numbers == 1) walk(y, n, number(0), array(1));
      else if (numbers == 2) walk(y, n, array(0), number(1));
      else walk(y, n, number(0), number(1));
    } else if (numbers == 0) {
      walk(y, n, array(0));
    }
  }
  FN static void walk(uint16_t* y, int64_t n, const auto&... x) {
    int64_t i = 0;
    for (; i + 16 <= n; i += 16)
      store_halves<Brain>(y + i, Halves<Op>::at(x(i, kAllLanes)...), kAllLanes);
    if (i == n) return;
    const auto left = static_cast<__mmask16>((1u << (n - i)) - 1u);
    store_halves<Brain>(y + i, Halves<Op>::at(x(i, left)...), left);
  }
};

#endif

}  // namespace taeda::TAEDA_ISA
