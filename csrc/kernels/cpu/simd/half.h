// float16 and bfloat16 in vectors: loaded as float32 (or float64), stored rounded to nearest even.
// The one conversion of half precision in the kernels.
//
// Only for files compiled once for each instruction set (those under simd/).
#pragma once

#include "kernels/cpu/simd/vec.h"

namespace taeda::cpu::simd::TAEDA_ISA {

struct F16 {
  uint16_t bits;
};
struct BF16 {
  uint16_t bits;
};
template <class T> constexpr bool is_half = same_type<T, F16> || same_type<T, BF16>;

namespace detail {

// The exponent is rebased by a multiplication, which also normalises subnormals.
template <class U> FN auto widen_f16(U h) {
  using F = Vec<float, kLanesOf<U>>;
  using I = Vec<int32_t, kLanesOf<U>>;
  const F scaled = (F)((h & 0x7fff) << 13) * 0x1p112f;
  const U special = (U)((I)(h & 0x7c00) == 0x7c00) & 0x7f800000;
  return (F)((U)scaled | special | ((h & 0x8000) << 16));
}

// Subnormals are rounded by adding a power of two that leaves them in the low bits.
template <class V> FN auto narrow_f16(V v) {
  using U = Vec<uint32_t, kLanesOf<V>>;
  using I = Vec<int32_t, kLanesOf<V>>;
  const U sign = ((U)v >> 16) & 0x8000, u = (U)v & 0x7fffffff;
  const U normal = (u - 0x38000000u + 0xfffu + ((u >> 13) & 1u)) >> 13;
  const U subnormal = (U)((V)u + 0.5f) - 0x3f000000u;
  const I i = (I)u;  // u < 2^31: signed comparisons, which all instruction sets have
  U h = i < 0x38800000 ? subnormal : normal;
  h = i >= 0x477ff000 ? broadcast<U>(0x7c00) : h;
  h = i > 0x7f800000 ? broadcast<U>(0x7e00) : h;
  return h | sign;
}

template <class V> FN auto narrow_bf16(V v) {
  using U = Vec<uint32_t, kLanesOf<V>>;
  const U u = (U)v, rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  return v == v ? rounded : broadcast<U>(0x7fc0);
}

}  // namespace detail

// One element as a float, and a float rounded to one.
FN float widen(BF16 b) { return __builtin_bit_cast(float, uint32_t{b.bits} << 16); }
FN float widen(F16 h) {
#ifdef __F16C__
  return _cvtsh_ss(h.bits);
#else
  return detail::widen_f16(Vec<uint32_t, 4>{h.bits})[0];
#endif
}
template <class T> FN T narrow(float f) {
  if constexpr (same_type<T, BF16>) {
    const auto u = __builtin_bit_cast(uint32_t, f);
    return {static_cast<uint16_t>(f != f ? 0x7fc0u : (u + 0x7fffu + ((u >> 16) & 1u)) >> 16)};
  } else {
#ifdef __F16C__
    return {static_cast<uint16_t>(_cvtss_sh(f, 0))};
#else
    return {static_cast<uint16_t>(detail::narrow_f16(Vec<float, 4>{f})[0])};
#endif
  }
}
// One element of any type as a C.
template <class C, class T> FN C to(T x) {
  if constexpr (is_half<T>) return static_cast<C>(widen(x));
  else return static_cast<C>(x);
}

// The elements of half type T that have these bits, as float32.
template <class T, class U> FN Vec<float, kLanesOf<U>> widen(U bits) {
  constexpr int64_t n = kLanesOf<U>;
  if constexpr (n * sizeof(float) > kRegisterBytes) {
    return concat(widen<T>(low_half(bits)), widen<T>(high_half(bits)));
  } else if constexpr (same_type<T, BF16>) {
    // (The compiler converts in halves of a register.)
#ifdef __AVX512F__
    if constexpr (n == 16)
      return (Vec<float, n>)_mm512_maskz_slli_epi32(
          0xffff, _mm512_maskz_cvtepu16_epi32(0xffff, (__m256i)bits), 16);
#endif
#ifdef __AVX2__
    if constexpr (n == 8)
      return (Vec<float, n>)_mm256_slli_epi32(_mm256_cvtepu16_epi32((__m128i)bits), 16);
#endif
#ifdef __SSE4_1__
    if constexpr (n == 4)
      return (Vec<float, n>)_mm_unpacklo_epi16(_mm_setzero_si128(), (__m128i)concat(bits, U{}));
#endif
    return (Vec<float, n>)(convert<uint32_t>(bits) << 16);
  } else {
#ifdef __AVX512F__
    if constexpr (n == 16) return (Vec<float, n>)_mm512_maskz_cvtph_ps(0xffff, (__m256i)bits);
#endif
#ifdef __F16C__
    if constexpr (n == 8) return (Vec<float, n>)_mm256_cvtph_ps((__m128i)bits);
    if constexpr (n == 4) return (Vec<float, n>)_mm_cvtph_ps((__m128i)concat(bits, U{}));
#elif defined(__aarch64__)
    if constexpr (n == 4) return (Vec<float, n>)vcvt_f32_f16((float16x4_t)bits);
#endif
    return detail::widen_f16(convert<uint32_t>(bits));
  }
}

// The bits of the elements of half type T that are nearest to v.
template <class T, class V> FN Vec<uint16_t, kLanesOf<V>> narrow_bits(V v) {
  constexpr int64_t n = kLanesOf<V>;
  if constexpr (n * sizeof(float) > kRegisterBytes) {
    return concat(narrow_bits<T>(low_half(v)), narrow_bits<T>(high_half(v)));
  } else if constexpr (same_type<T, BF16>) {
    const auto rounded = detail::narrow_bf16(v);
#ifdef __AVX2__  // the compiler does not know that the upper halves are 0
    if constexpr (n == 8)
      return (Vec<uint16_t, n>)_mm_packus_epi32(_mm256_castsi256_si128((__m256i)rounded),
                                                _mm256_extracti128_si256((__m256i)rounded, 1));
#endif
#ifdef __SSE4_1__
    if constexpr (n == 4)
      return low_half((Vec<uint16_t, 8>)_mm_packus_epi32((__m128i)rounded, (__m128i)rounded));
#endif
    return convert<uint16_t>(rounded);
  } else {
#ifdef __AVX512F__
    if constexpr (n == 16) return (Vec<uint16_t, n>)_mm512_maskz_cvtps_ph(0xffff, (__m512)v, 0);
#endif
#ifdef __F16C__
    if constexpr (n == 8) return (Vec<uint16_t, n>)_mm256_cvtps_ph((__m256)v, 0);
    if constexpr (n == 4) return low_half((Vec<uint16_t, 8>)_mm_cvtps_ph((__m128)v, 0));
#elif defined(__aarch64__)
    if constexpr (n == 4) return (Vec<uint16_t, n>)vcvt_f16_f32((float32x4_t)v);
#endif
    return convert<uint16_t>(detail::narrow_f16(v));
  }
}

// N elements of T at p as C.
template <class C, int64_t N = kLanes<C>, class T> FN Vec<C, N> load_as(const T* p) {
  if constexpr (N == 1) return to<C>(*p);
  else if constexpr (!is_half<T>) return convert<C>(load<N>(p));
  else if constexpr (!same_type<C, float>) return convert<C>(load_as<float, N>(p));
  else if constexpr (N * sizeof(C) > kRegisterBytes)
    return concat(load_as<C, N / 2>(p), load_as<C, N / 2>(p + N / 2));
  else return widen<T>(load<N>(&p->bits));
}

// The lanes of v, converted to T, at p.
template <class T, class V> FN void store_as(T* p, V v) {
  constexpr int64_t n = kLanesOf<V>;
  if constexpr (!is_half<T>) {
    store(p, convert<T>(v));
  } else if constexpr (!same_type<ElementOf<V>, float>) {
    store_as(p, convert<float>(v));
  } else if constexpr (n == 1) {
    *p = narrow<T>(v);
  } else if constexpr (n * sizeof(float) > kRegisterBytes) {
    store_as(p, low_half(v));
    store_as(p + n / 2, high_half(v));
  } else {
    store(&p->bits, narrow_bits<T>(v));
  }
}

}  // namespace taeda::cpu::simd::TAEDA_ISA
