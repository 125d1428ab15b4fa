// Two elements added, of any dtype.
#pragma once

#include <bit>
#include <type_traits>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "base/half.h"

namespace taeda::cpu {

#if defined(__SSE2__)
// Within one kind of registers: to change over twice takes longer than the sum.
inline BFloat16 sum_of(BFloat16 a, BFloat16 b) {
  const auto widened = [](BFloat16 v) {
    return _mm_castsi128_ps(_mm_insert_epi16(_mm_setzero_si128(), v.bits, 1));
  };
  const __m128 sum = _mm_add_ss(widened(a), widened(b));
  BFloat16 r;
  r.bits = 0x7fc0;
  if (_mm_comieq_ss(sum, sum)) {
    const __m128i u = _mm_castps_si128(sum), odd = _mm_set1_epi32(1);
    const __m128i half =
        _mm_add_epi32(_mm_and_si128(_mm_srli_epi32(u, 16), odd), _mm_set1_epi32(0x7fff));
    r.bits = static_cast<uint16_t>(_mm_extract_epi16(_mm_add_epi32(u, half), 1));
  }
  return r;
}
#endif

template <class T> T sum_of(T a, T b) {
  if constexpr (std::is_same_v<T, bool>) return a || b;
  else return static_cast<T>(a + b);
}

}  // namespace taeda::cpu
