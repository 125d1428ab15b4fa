// A vector of elements that lie anywhere.
#pragma once

#ifdef __AVX2__
#include <immintrin.h>
#endif

#include "kernels/cpu/simd/registers.h"

namespace taeda::cpu::simd::TAEDA_ISA {

// x[place[0]], x[place[1]], ... for one register.
FN Vector<float>::type gather(const float* x, const int32_t* place) {
#if defined(__AVX512F__)
  const __m512i at = _mm512_loadu_si512(place);
  return (Vector<float>::type)_mm512_mask_i32gather_ps(_mm512_setzero_ps(), 0xffff, at, x, 4);
#elif defined(__AVX2__)
  const __m256i at = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(place));
  const __m256 all = _mm256_castsi256_ps(_mm256_set1_epi32(-1));
  return (Vector<float>::type)_mm256_mask_i32gather_ps(_mm256_setzero_ps(), x, at, all, 4);
#else
  Vector<float>::type v;
  for (int i = 0; i < kLanes<float>; ++i) v[i] = x[place[i]];
  return v;
#endif
}
FN Vector<double>::type gather(const double* x, const int32_t* place) {
#if defined(__AVX512F__)
  const __m256i at = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(place));
  return (Vector<double>::type)_mm512_mask_i32gather_pd(_mm512_setzero_pd(), 0xff, at, x, 8);
#elif defined(__AVX2__)
  const __m128i at = _mm_loadu_si128(reinterpret_cast<const __m128i*>(place));
  const __m256d all = _mm256_castsi256_pd(_mm256_set1_epi32(-1));
  return (Vector<double>::type)_mm256_mask_i32gather_pd(_mm256_setzero_pd(), x, at, all, 8);
#else
  Vector<double>::type v;
  for (int i = 0; i < kLanes<double>; ++i) v[i] = x[place[i]];
  return v;
#endif
}

}  // namespace taeda::cpu::simd::TAEDA_ISA
