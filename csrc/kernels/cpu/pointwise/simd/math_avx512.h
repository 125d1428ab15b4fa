// Functions of float32 on the sixteen lanes of a register of AVX-512, which take what they need of
// a table from another register. They hold for all numbers, so that no block is looked at first.
//
// Only for the files of this folder that are compiled for each instruction set.
#pragma once

#include "kernels/functors_scalar.h"

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace taeda::TAEDA_ISA {

// How a functor is computed in sixteen lanes, where that has a way of its own.
template <class Op> struct Lanes {
  static constexpr bool kExist = false;
};
template <class Op> struct LanesLoop;

#if defined(__AVX512F__)

struct Exp;
struct Log;
struct Sigmoid;
struct Silu;
typedef float LaneFloats __attribute__((vector_size(64), aligned(4), may_alias));
typedef uint32_t LaneBits __attribute__((vector_size(64)));
inline constexpr __mmask16 kAllLanes = 0xffff;  // GCC warns of the forms without a mask

FN LaneFloats with_sign(LaneFloats a, LaneFloats x) {  // |a| with the sign of x
  constexpr int choose = 0xe4;                         // a where the third has ones, else x
  return (LaneFloats)_mm512_ternarylogic_epi32((__m512i)a, (__m512i)x,
                                               _mm512_set1_epi32(0x7fffffff), choose);
}
FN LaneFloats larger(LaneFloats a, LaneFloats b) {  // b where one is NaN
  return (LaneFloats)_mm512_maskz_max_ps(kAllLanes, (__m512)a, (__m512)b);
}
FN LaneFloats smaller(LaneFloats a, LaneFloats b) {
  return (LaneFloats)_mm512_maskz_min_ps(kAllLanes, (__m512)a, (__m512)b);
}
FN LaneFloats clamp(LaneFloats x, float low, float high) {  // NaN stays
  return smaller(LaneFloats{} + high, larger(LaneFloats{} + low, x));
}

// 2^(j / 16), and how far its logarithm is from that of the exact power.
inline constexpr LaneFloats kPowers = {1.0f,        1.04427378f, 1.09050773f, 1.13878863f,
                                       1.18920712f, 1.24185781f, 1.29683955f, 1.35425555f,
                                       1.41421356f, 1.47682615f, 1.54221083f, 1.61049033f,
                                       1.68179283f, 1.75625216f, 1.83400809f, 1.91520656f};
inline constexpr LaneFloats kPowerRests = {0.0f,
                                           4.62854715e-08f,
                                           -1.19921575e-08f,
                                           4.72978243e-08f,
                                           3.19341815e-08f,
                                           3.62105723e-08f,
                                           -3.09907193e-08f,
                                           -7.47521334e-09f,
                                           1.71142709e-08f,
                                           -3.04768335e-08f,
                                           5.23333421e-09f,
                                           6.10759177e-09f,
                                           -1.47196051e-08f,
                                           -5.25879518e-09f,
                                           -6.12825968e-09f,
                                           5.14060927e-09f};

// exp(x) = 2^k (power + power rest), with k a multiple of 1/16, of which `power` is what its
// fraction makes. Max 0.7 ulp.
struct LanePower {
  LaneFloats k, shifted;  // k is also in the low bits
  LaneFloats power, rest;
};
FN LanePower power_of(LaneFloats x) {
  const LaneFloats shifted = x * 1.44269504f + 786432.0f, k = shifted - 786432.0f;
  const LaneFloats lost = __builtin_shuffle(kPowerRests, (LaneBits)shifted) - k * 3.19461833e-5f;
  const LaneFloats r = (x - k * 0.693115234375f) + lost;
  const LaneFloats q = r * 0.166668f + 0.5f;
  return {k, shifted, __builtin_shuffle(kPowers, (LaneBits)shifted), r * r * q + r};
}

template <> struct Lanes<Exp> {
  static constexpr bool kExist = true;
  FN static LaneFloats at(LaneFloats x) {
    const LanePower p = power_of(clamp(x, -110.0f, 90.0f));
    return (LaneFloats)_mm512_maskz_scalef_ps(kAllLanes, (__m512)(p.power * p.rest + p.power),
                                              (__m512)p.k);
  }
};

// 1 + exp(-x), by exp(-x) / 2, which does not overflow before the sum does.
FN LaneFloats one_plus_exp_less(LaneFloats x) {
  const LanePower p = power_of(-clamp(x, -89.0f, 86.0f));
  constexpr LaneBits drop = {0u << 19,  1u << 19,  2u << 19,  3u << 19, 4u << 19,  5u << 19,
                             6u << 19,  7u << 19,  8u << 19,  9u << 19, 10u << 19, 11u << 19,
                             12u << 19, 13u << 19, 14u << 19, 15u << 19};
  // The power's bits, less what those of k's fraction will add to them, and half of it.
  constexpr LaneBits halves = (LaneBits)kPowers - drop - (1u << 23);
  const auto half =
      (LaneFloats)(__builtin_shuffle(halves, (LaneBits)p.shifted) + ((LaneBits)p.shifted << 19));
  return (half * p.rest + half) * 2.0f + 1.0f;
}
template <> struct Lanes<Sigmoid> {
  static constexpr bool kExist = true;
  FN static LaneFloats at(LaneFloats x) { return 1.0f / one_plus_exp_less(x); }
};
template <> struct Lanes<Silu> {
  static constexpr bool kExist = true;
  FN static LaneFloats at(LaneFloats x) { return x / one_plus_exp_less(x); }
};

// log(2^e m) = e log(2) - log(c) + log(c m), with c near 1 / m for each sixteenth of m. The first
// parts of both logarithms have few bits, so that their sum is exact. Max 0.8 ulp.
template <> struct Lanes<Log> {
  static constexpr bool kExist = true;
  static constexpr LaneFloats c = {1.0f,         0.914285719f, 0.864864886f, 0.820512831f,
                                   0.780487776f, 0.744186044f, 0.711111128f, 0.680851042f,
                                   0.653061211f, 0.627451003f, 0.603773594f, 0.581818163f,
                                   0.561403513f, 0.542372882f, 0.524590135f, 0.5f};
  static constexpr LaneFloats high = {0.0f,         0.0896148682f, 0.145187378f, 0.1978302f,
                                      0.247833252f, 0.295471191f,  0.340927124f, 0.384414673f,
                                      0.426086426f, 0.466094971f,  0.504562378f, 0.541595459f,
                                      0.577316284f, 0.611801147f,  0.645141602f, 0.693145752f};
  static constexpr LaneFloats low = {0.0f,
                                     -2.71506224e-06f,
                                     -5.3922995e-06f,
                                     -4.46990407e-06f,
                                     2.94920437e-06f,
                                     -6.97478708e-06f,
                                     -5.61267257e-07f,
                                     -2.9422763e-06f,
                                     -2.00998124e-06f,
                                     -5.27616885e-06f,
                                     -6.38207848e-06f,
                                     1.85511328e-06f,
                                     -9.26595419e-07f,
                                     3.91782407e-07f,
                                     -3.58430952e-06f,
                                     1.42860682e-06f};
  FN static LaneFloats at(LaneFloats x) {
    // Of 0, infinity and NaN the exponent is what their logarithm is; negative numbers give NaN.
    const auto e = (LaneFloats)_mm512_maskz_getexp_ps(kAllLanes, (__m512)x);
    const auto m = (LaneFloats)_mm512_maskz_getmant_ps(kAllLanes, (__m512)x, _MM_MANT_NORM_1_2,
                                                       _MM_MANT_SIGN_nan);
    const LaneBits j = (LaneBits)m >> 19;
    const LaneFloats r = m * __builtin_shuffle(c, j) - 1.0f;
    const LaneFloats h = e * 0.693145751953125f + __builtin_shuffle(high, j);
    const LaneFloats l = e * 1.42860682e-06f + __builtin_shuffle(low, j);
    LaneFloats q = r * 0.188557491f - 0.250066936f;
    q = q * r + 0.33334446f;
    q = q * r - 0.5f;
    return h + (r + (r * r * q + l));
  }
};

template <class Op> struct LanesLoop {
  static void loop(void* out, const void* const* in, int64_t n) {
    run(n, static_cast<float*>(out), static_cast<const float*>(in[0]));
  }
  FN static void run(int64_t n, float* y, const float* x) {
    int64_t i = 0;
#pragma GCC unroll 4
    for (; i + 16 <= n; i += 16) {
      *reinterpret_cast<LaneFloats*>(y + i) =
          Lanes<Op>::at(*reinterpret_cast<const LaneFloats*>(x + i));
    }
    if (i == n) return;
    LaneFloats last{};
    __builtin_memcpy(&last, x + i, static_cast<size_t>(n - i) * sizeof *x);
    last = Lanes<Op>::at(last);
    __builtin_memcpy(y + i, &last, static_cast<size_t>(n - i) * sizeof *y);
  }
};

#endif

}  // namespace taeda::TAEDA_ISA
