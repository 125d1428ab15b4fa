// The lanes of a vector put together, always in the same order, and vectors stored past the caches.
//
// Only for the files of this folder that are compiled for each instruction set.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

// Bytes of a register. Arithmetic on longer vectors takes several of them, but comparisons of those
// are taken apart by compilers.
#if defined(__AVX512F__)
constexpr int64_t kRegister = 64;
#elif defined(__AVX2__)
constexpr int64_t kRegister = 32;
#else
constexpr int64_t kRegister = 16;
#endif

template <class T, int64_t Lanes> struct Narrow {
  typedef T type __attribute__((vector_size(Lanes * sizeof(T))));
};

// All lanes added up, in A.
template <class A, class C, int64_t N> inline A add_lanes(typename Narrow<C, N>::type v) {
  if constexpr (N == 2) {
    return static_cast<A>(v[0]) + static_cast<A>(v[1]);
  } else {
    typename Narrow<C, N / 2>::type half[2];
    __builtin_memcpy(&half, &v, sizeof v);
    if constexpr (__is_same(A, C)) {
      return add_lanes<A, C, N / 2>(half[0] + half[1]);
    } else {
      using W = typename Narrow<A, N / 2>::type;
      return add_lanes<A, A, N / 2>(__builtin_convertvector(half[0], W) +
                                    __builtin_convertvector(half[1], W));
    }
  }
}

// All lanes put together by op, which takes vectors and numbers.
template <class C, int64_t N, class Op>
inline C fold_lanes(typename Narrow<C, N>::type v, const Op& op) {
  if constexpr (N == 2) {
    return op(v[0], v[1]);
  } else {
    typename Narrow<C, N / 2>::type half[2];
    __builtin_memcpy(&half, &v, sizeof v);
    return fold_lanes<C, N / 2>(op(half[0], half[1]), op);
  }
}

// Stores 64 bytes to where a cache line begins, in parts of at most Width bytes. Before another
// thread reads them, this one calls fence_stores().
template <int64_t Width = kRegister, class V> inline void store_past_caches(void* to, V v) {
  static_assert(sizeof(V) == 64);
#if defined(__AVX512F__)
  if constexpr (Width == 64) {
    _mm512_stream_si512(static_cast<__m512i*>(to), (__m512i)v);
    return;
  }
#endif
#if defined(__AVX__)
  __m256i part[2];
  __builtin_memcpy(&part, &v, sizeof v);
  for (int i = 0; i < 2; ++i) _mm256_stream_si256(static_cast<__m256i*>(to) + i, part[i]);
#elif defined(__x86_64__)
  __m128i part[4];
  __builtin_memcpy(&part, &v, sizeof v);
  for (int i = 0; i < 4; ++i) _mm_stream_si128(static_cast<__m128i*>(to) + i, part[i]);
#else
  __builtin_memcpy(to, &v, sizeof v);
#endif
}
inline void fence_stores() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

}  // namespace
}  // namespace taeda::cpu::simd::TAEDA_ISA
