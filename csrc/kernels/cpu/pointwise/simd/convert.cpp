// Conversions between all dtypes, over two strided dimensions.
#include "kernels/cpu/pointwise/pointwise.h"
#include "kernels/functors_complex.h"

#ifdef __F16C__
#include <immintrin.h>
#endif

namespace taeda::TAEDA_ISA {
namespace {

struct F16 {
  uint16_t bits;
};
struct B16 {
  uint16_t bits;
};
struct Two64 {
  uint64_t v[2];
};

FN float widen(B16 b) { return bits_as<float>(uint32_t(b.bits) << 16); }
FN float widen(F16 h) {
#ifdef __F16C__
  return _cvtsh_ss(h.bits);
#else
  // Exponent and fraction as a float that is 2^112 too small; infinities and nans get their
  // exponent by hand.
  const uint32_t magnitude = h.bits & 0x7fffu;
  const float scaled = bits_as<float>(magnitude << 13) * 0x1p112f;
  const uint32_t special = magnitude >= 0x7c00u ? 0x7f800000u : 0u;
  return bits_as<float>(bits_as<uint32_t>(scaled) | special | (uint32_t(h.bits & 0x8000u) << 16));
#endif
}
FN B16 to_b16(float f) {
  const uint32_t u = bits_as<uint32_t>(f);
  const uint32_t rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  return {static_cast<uint16_t>(f != f ? 0x7fc0u : rounded)};
}
FN F16 to_f16(float f) {
#ifdef __F16C__
  return {static_cast<uint16_t>(_cvtss_sh(f, 0))};
#else
  const uint32_t sign = (bits_as<uint32_t>(f) >> 16) & 0x8000u,
                 u = bits_as<uint32_t>(f) & 0x7fffffffu;
  uint32_t h;
  if (u > 0x7f800000u) h = 0x7e00u;
  else if (u >= 0x477ff000u) h = 0x7c00u;
  else if (u < 0x38800000u) h = bits_as<uint32_t>(bits_as<float>(u) + 0.5f) - 0x3f000000u;
  else h = (u - 0x38000000u + 0xfffu + ((u >> 13) & 1u)) >> 13;
  return {static_cast<uint16_t>(sign | h)};
#endif
}

struct Bool {
  uint8_t byte;  // not 0: true, whatever it is
};

template <class T> constexpr bool is_half = same_type<T, F16> || same_type<T, B16>;

template <class D, class S> FN D convert(S s) {
  if constexpr (same_type<D, S>) return s;
  else if constexpr (same_type<S, Bool>) return convert<D>(static_cast<uint8_t>(s.byte != 0));
  else if constexpr (is_half<S>) return convert<D>(widen(s));
  else if constexpr (is_complex<S>) {
    if constexpr (is_complex<D>)
      return D(static_cast<decltype(D::re)>(s.re), static_cast<decltype(D::re)>(s.im));
    else if constexpr (same_type<D, bool>) return s.re != 0 || s.im != 0;
    else return convert<D>(s.re);
  } else if constexpr (is_complex<D>) return D(convert<decltype(D::re)>(s));
  else if constexpr (same_type<D, F16>) return to_f16(convert<float>(s));
  else if constexpr (same_type<D, B16>) return to_b16(convert<float>(s));
  else if constexpr (same_type<D, bool>) return s != S(0);
  else if constexpr (is_float<S> && is_integer<D> && sizeof(D) < 4)
    return static_cast<D>(static_cast<int32_t>(s));
  else return static_cast<D>(s);
}

// Copies bytes that lie elsewhere. Where they lie just before the place they go to, as far as the
// low 12 bits of addresses tell, every load seems to wait for a store that was made shortly
// before; from the end to the beginning none does.
FN void copy_line(char* __restrict d, const char* __restrict s, int64_t bytes) {
  const auto ahead = (reinterpret_cast<uintptr_t>(d) - reinterpret_cast<uintptr_t>(s)) & 4095;
  if (ahead != 0 && ahead < 512 && bytes >= 1024) {
    for (; bytes >= 64; bytes -= 64) {
      __builtin_memcpy(d + bytes - 64, s + bytes - 64, 64);
      __asm__ volatile("" ::: "memory");  // keeps the compiler from making one memcpy of all
    }
  }
  __builtin_memcpy(d, s, static_cast<size_t>(bytes));
}

template <class D, class S> FN void contiguous(D* __restrict d, const S* __restrict s, int64_t n) {
  if constexpr (same_type<D, S>) {
    copy_line(reinterpret_cast<char*>(d), reinterpret_cast<const char*>(s), n * int64_t(sizeof(D)));
    return;
  }
  int64_t i = 0;
#ifdef __AVX512F__
  if constexpr (same_type<S, F16> && same_type<D, float>) {
    for (; i + 16 <= n; i += 16) {
      const __m256i h = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(s + i));
      _mm512_storeu_ps(d + i, _mm512_maskz_cvtph_ps(0xffff, h));
    }
  }
  if constexpr (same_type<S, float> && same_type<D, F16>) {
    for (; i + 16 <= n; i += 16) {
      const __m256i h = _mm512_maskz_cvtps_ph(0xffff, _mm512_loadu_ps(s + i), 0);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(d + i), h);
    }
  }
#endif
#ifdef __F16C__
  if constexpr (same_type<S, F16> && same_type<D, float>) {
    for (; i + 8 <= n; i += 8) {
      _mm256_storeu_ps(d + i,
                       _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(s + i))));
    }
  }
  if constexpr (same_type<S, float> && same_type<D, F16>) {
    for (; i + 8 <= n; i += 8) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(d + i),
                       _mm256_cvtps_ph(_mm256_loadu_ps(s + i), 0));
    }
  }
#endif
  if constexpr (same_type<S, double> && same_type<D, F16>) {  // by way of float32, as one by one
    constexpr int64_t block = 256;
    float some[block];
    for (; i < n; i += block) {
      const int64_t m = n - i < block ? n - i : block;
      for (int64_t j = 0; j < m; ++j) some[j] = static_cast<float>(s[i + j]);
      contiguous(d + i, some, m);
    }
    return;
  }
  for (; i < n; ++i) d[i] = convert<D>(s[i]);
}

template <class D, class S>
void cast(char* dst, int64_t d0, int64_t d1, const char* src, int64_t s0, int64_t s1, int64_t n0,
          int64_t n1) {
  constexpr auto size = static_cast<int64_t>(sizeof(D));
  for (int64_t j = 0; j < n1; ++j, dst += d1, src += s1) {
    if (d0 == size && s0 == static_cast<int64_t>(sizeof(S))) {
      contiguous(reinterpret_cast<D*>(dst), reinterpret_cast<const S*>(src), n0);
    } else if (d0 == size && s0 == 0) {
      const D v = convert<D>(*reinterpret_cast<const S*>(src));
      D* d = reinterpret_cast<D*>(dst);
      for (int64_t i = 0; i < n0; ++i) d[i] = v;
    } else if (same_type<D, S> && d0 == size && s0 == -size) {
      D* __restrict d = reinterpret_cast<D*>(dst);
      const S* __restrict last = reinterpret_cast<const S*>(src);
      for (int64_t i = 0; i < n0; ++i) d[i] = convert<D>(last[-i]);
    } else if (same_type<D, S> && d0 == size && s0 == 2 * size) {
      D* __restrict d = reinterpret_cast<D*>(dst);
      const S* __restrict s = reinterpret_cast<const S*>(src);
      for (int64_t i = 0; i < n0; ++i) d[i] = convert<D>(s[2 * i]);
    } else {
      for (int64_t i = 0; i < n0; ++i) {
        *reinterpret_cast<D*>(dst + i * d0) = convert<D>(*reinterpret_cast<const S*>(src + i * s0));
      }
    }
  }
}

template <class D, class S> constexpr Cast pick() {  // equal dtypes only move bytes
  if constexpr (same_type<D, bool> && same_type<S, Bool>) return &cast<uint8_t, uint8_t>;
  else if constexpr (!same_type<D, S>) return &cast<D, S>;
  else if constexpr (sizeof(D) == 1) return &cast<uint8_t, uint8_t>;
  else if constexpr (sizeof(D) == 2) return &cast<uint16_t, uint16_t>;
  else if constexpr (sizeof(D) == 4) return &cast<int32_t, int32_t>;
  else if constexpr (sizeof(D) == 8) return &cast<int64_t, int64_t>;
  else return &cast<Two64, Two64>;
}

}  // namespace

#define TAEDA_ROW(D)          \
  {pick<D, Bool>(),           \
   pick<D, uint8_t>(),        \
   pick<D, int8_t>(),         \
   pick<D, int16_t>(),        \
   pick<D, int32_t>(),        \
   pick<D, int64_t>(),        \
   pick<D, F16>(),            \
   pick<D, B16>(),            \
   pick<D, float>(),          \
   pick<D, double>(),         \
   pick<D, Complex<float>>(), \
   pick<D, Complex<double>>()}
extern const Cast casts[kComputed][kComputed] = {TAEDA_ROW(bool),
                                                 TAEDA_ROW(uint8_t),
                                                 TAEDA_ROW(int8_t),
                                                 TAEDA_ROW(int16_t),
                                                 TAEDA_ROW(int32_t),
                                                 TAEDA_ROW(int64_t),
                                                 TAEDA_ROW(F16),
                                                 TAEDA_ROW(B16),
                                                 TAEDA_ROW(float),
                                                 TAEDA_ROW(double),
                                                 TAEDA_ROW(Complex<float>),
                                                 TAEDA_ROW(Complex<double>)};
#undef TAEDA_ROW

}  // namespace taeda::TAEDA_ISA
