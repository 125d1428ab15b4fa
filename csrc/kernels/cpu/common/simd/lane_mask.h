// Fewer elements than a register has lanes, read and written under a mask; the lanes beyond them
// are zero.
//
// Only for the files of this folder that are compiled for each instruction set.
#pragma once

#ifdef __AVX2__
#include <immintrin.h>
#endif

#include "kernels/cpu/simd/registers.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

#if defined(__AVX512F__)
constexpr bool kHasMasks = true;

template <class T> struct LaneMask {
  using Row = typename Vector<T>::type;
  explicit LaneMask(int64_t n) : lanes(static_cast<uint16_t>((1u << n) - 1)) {}
  FN Row load(const T* p) const {
    if constexpr (sizeof(T) == 4) return (Row)_mm512_maskz_loadu_ps(lanes, p);
    else return (Row)_mm512_maskz_loadu_pd(static_cast<__mmask8>(lanes), p);
  }
  FN void store(T* p, Row v) const {
    if constexpr (sizeof(T) == 4) _mm512_mask_storeu_ps(p, lanes, (__m512)v);
    else _mm512_mask_storeu_pd(p, static_cast<__mmask8>(lanes), (__m512d)v);
  }
  __mmask16 lanes;
};
#elif defined(__AVX2__)
constexpr bool kHasMasks = true;

template <class T> struct LaneMask {
  using Row = typename Vector<T>::type;
  explicit LaneMask(int64_t n) {
    if constexpr (sizeof(T) == 4) {
      const __m256i place = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
      lanes = _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), place);
    } else {
      lanes = _mm256_cmpgt_epi64(_mm256_set1_epi64x(n), _mm256_setr_epi64x(0, 1, 2, 3));
    }
  }
  FN Row load(const T* p) const {
    if constexpr (sizeof(T) == 4) return (Row)_mm256_maskload_ps(p, lanes);
    else return (Row)_mm256_maskload_pd(p, lanes);
  }
  FN void store(T* p, Row v) const {
    if constexpr (sizeof(T) == 4) _mm256_maskstore_ps(p, lanes, (__m256)v);
    else _mm256_maskstore_pd(p, lanes, (__m256d)v);
  }
  __m256i lanes;
};
#else
constexpr bool kHasMasks = false;
#endif

// W neighbouring elements, all of them.
template <class T, int W> struct AllLanes {
  typedef T Row __attribute__((vector_size(W * sizeof(T)), aligned(sizeof(T)), may_alias));
  FN Row load(const T* p) const { return *reinterpret_cast<const Row*>(p); }
  FN void store(T* p, Row v) const { *reinterpret_cast<Row*>(p) = v; }
};

}  // namespace
}  // namespace taeda::cpu::simd::TAEDA_ISA
