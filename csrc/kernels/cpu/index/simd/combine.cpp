#include "kernels/cpu/index/simd/combine.h"

#ifdef __F16C__
#include <immintrin.h>
#endif

#include "kernels/functors_complex.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

using namespace taeda::TAEDA_ISA;

// Integers wrap around: they are added and multiplied without a sign.
template <class T> struct Wraps {
  using type = T;
};
template <> struct Wraps<int8_t> {
  using type = uint32_t;
};
template <> struct Wraps<uint8_t> {
  using type = uint32_t;
};
template <> struct Wraps<int16_t> {
  using type = uint32_t;
};
template <> struct Wraps<int32_t> {
  using type = uint32_t;
};
template <> struct Wraps<int64_t> {
  using type = uint64_t;
};

template <Combination C, class T> FN T combined(T a, T b) {
  using W = typename Wraps<T>::type;
  if constexpr (C == kAdd) return static_cast<T>(static_cast<W>(a) + static_cast<W>(b));
  else if constexpr (C == kMultiply) return static_cast<T>(static_cast<W>(a) * static_cast<W>(b));
  else {
    const T best = (C == kMax ? a > b : a < b) ? a : b;  // b if that is NaN
    return a != a ? a : best;
  }
}

struct Bool {
  uint8_t byte;  // not 0: true, whatever it is
};
template <Combination C> FN Bool combined(Bool a, Bool b) {
  const int p = a.byte != 0, q = b.byte != 0;
  return {static_cast<uint8_t>(C == kAdd || C == kMax ? p | q : p & q)};
}

template <Combination C, class T> void combine(void* to_line, const void* from_line, int64_t n) {
  auto* to = static_cast<T*>(to_line);
  auto* from = static_cast<const T*>(from_line);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) to[i] = combined<C>(to[i], from[i]);
}

// ---- float16 and bfloat16, in float32 ----

template <bool Brain> FN float widened(uint16_t h) {
  if constexpr (Brain) return bits_as<float>(uint32_t(h) << 16);
#ifdef __F16C__
  return _cvtsh_ss(h);
#else
  const uint32_t magnitude = h & 0x7fffu;
  const uint32_t special = magnitude >= 0x7c00u ? 0x7f800000u : 0u;
  return bits_as<float>(bits_as<uint32_t>(bits_as<float>(magnitude << 13) * 0x1p112f) | special |
                        uint32_t(h & 0x8000u) << 16);
#endif
}
template <bool Brain> FN uint16_t rounded(float f) {
  uint32_t u = bits_as<uint32_t>(f);
  if constexpr (Brain)
    return static_cast<uint16_t>(f != f ? 0x7fc0u : (u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
#ifdef __F16C__
  return static_cast<uint16_t>(_cvtss_sh(f, 0));
#else
  const uint32_t sign = (u >> 16) & 0x8000u;
  u &= 0x7fffffffu;
  uint32_t h = (u - 0x38000000u + 0xfffu + ((u >> 13) & 1u)) >> 13;
  if (u < 0x38800000u) h = bits_as<uint32_t>(bits_as<float>(u) + 0.5f) - 0x3f000000u;
  if (u >= 0x477ff000u) h = 0x7c00u;
  if (u > 0x7f800000u) h = 0x7e00u;
  return static_cast<uint16_t>(sign | h);
#endif
}

template <Combination C, bool Brain>
void combine_halves(void* to_line, const void* from_line, int64_t n) {
  auto* to = static_cast<uint16_t*>(to_line);
  auto* from = static_cast<const uint16_t*>(from_line);
  int64_t i = 0;
#ifdef __F16C__
  if constexpr (!Brain) {  // which compilers convert one by one
    typedef float Eight __attribute__((vector_size(32)));
    const auto load = [](const uint16_t* p) {
      return (Eight)_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    };
    for (; i + 8 <= n; i += 8) {
      Eight a = load(to + i);
      const Eight b = load(from + i);
      if constexpr (C == kAdd) a += b;
      else if constexpr (C == kMultiply) a *= b;
      else a = a != a ? a : (C == kMax ? a > b : a < b) ? a : b;
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), _mm256_cvtps_ph((__m256)a, 0));
    }
  }
#endif
#pragma GCC ivdep
  for (; i < n; ++i)
    to[i] = rounded<Brain>(combined<C>(widened<Brain>(to[i]), widened<Brain>(from[i])));
}

template <Combination C> constexpr CombineKernels with_rows_of(CombineKernels k) {
  Combine rows[12] = {combine<C, Bool>,
                      combine<C, uint8_t>,
                      combine<C, int8_t>,
                      combine<C, int16_t>,
                      combine<C, int32_t>,
                      combine<C, int64_t>,
                      combine_halves<C, false>,
                      combine_halves<C, true>,
                      combine<C, float>,
                      combine<C, double>,
                      nullptr,
                      nullptr};
  if constexpr (C == kAdd || C == kMultiply) {
    rows[10] = combine<C, Complex<float>>;
    rows[11] = combine<C, Complex<double>>;
  }
  for (int d = 0; d < 12; ++d) k.of[C][d] = rows[d];
  return k;
}

}  // namespace

extern constinit const CombineKernels combine_kernels =
    with_rows_of<kAdd>(with_rows_of<kMultiply>(with_rows_of<kMax>(with_rows_of<kMin>({}))));

}  // namespace taeda::cpu::simd::TAEDA_ISA
