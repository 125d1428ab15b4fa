// The one vector type of the CPU kernels. Vec<T, N> holds N elements of T; N is by default what a
// register of the instruction set holds, and should be that: vectors wider than a register are
// split by the compiler, their comparisons even into scalars.
//
// Vec is the compiler's own vector type (GCC's and Clang's vector_size), which lowers to SSE,
// AVX2, AVX-512 and NEON alike. Arithmetic, bit operations and comparisons are operators; a
// comparison gives integers, all ones where it holds, and `mask ? a : b` selects. a * b + c
// becomes one FMA where the instruction set has it. Here is what the type lacks: loads, stores,
// tails, reductions, conversions.
//
// Only for files compiled once for each instruction set (those under simd/).
#pragma once

#include <stdint.h>

#include <type_traits>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#include "kernels/functors/scalar.h"

namespace taeda::cpu::simd::TAEDA_ISA {

using taeda::TAEDA_ISA::is_float;
using taeda::TAEDA_ISA::same_type;

#if defined(__AVX512F__)
constexpr int64_t kRegisterBytes = 64, kRegisters = 32;
#elif defined(__AVX2__)
constexpr int64_t kRegisterBytes = 32, kRegisters = 16;
#elif defined(__aarch64__)
constexpr int64_t kRegisterBytes = 16, kRegisters = 32;
#else
constexpr int64_t kRegisterBytes = 16, kRegisters = 16;
#endif
constexpr int64_t kCacheLine = 64;

template <class T> constexpr int64_t kLanes = kRegisterBytes / static_cast<int64_t>(sizeof(T));

template <class T, int64_t N> struct VecOf {
  typedef T type __attribute__((vector_size(N * sizeof(T))));
  typedef T unaligned __attribute__((vector_size(N * sizeof(T)), aligned(sizeof(T)), may_alias));
};
template <class T> struct VecOf<T, 1> {  // one element is the number itself
  using type = T;
  using unaligned = T;
};
template <class T, int64_t N = kLanes<T>> using Vec = typename VecOf<T, N>::type;

template <class V> struct ElementIn {
  using type = V;
};
template <class V>
  requires requires(V v) { v[0]; }
struct ElementIn<V> {
  using type = std::remove_reference_t<decltype(V{}[0])>;
};
template <class V> using ElementOf = typename ElementIn<V>::type;
template <class V>
constexpr int64_t kLanesOf = static_cast<int64_t>(sizeof(V) / sizeof(ElementOf<V>));

// ---- memory ----

template <class T> FN Vec<T> load(const T* p) {
  return *reinterpret_cast<const typename VecOf<T, kLanes<T>>::unaligned*>(p);
}
template <int64_t N, class T> FN Vec<T, N> load(const T* p) {
  return *reinterpret_cast<const typename VecOf<T, N>::unaligned*>(p);
}
template <class T, class V> FN void store(T* p, V v) {
  static_assert(sizeof(ElementOf<V>) == sizeof(T));
  *reinterpret_cast<typename VecOf<T, kLanesOf<V>>::unaligned*>(p) = (Vec<T, kLanesOf<V>>)v;
}

// All lanes c. (c - 0 is c, and keeps the sign of a zero.)
template <class V> FN V broadcast(ElementOf<V> c) {
  if constexpr (kLanesOf<V> == 1) return c;
  else return c - V{};
}
template <class T, int64_t N = kLanes<T>> FN Vec<T, N> broadcast_to(T c) {
  return broadcast<Vec<T, N>>(c);
}
// 0, 1, 2, ...
template <class V> FN V iota() {
  V v{};
  for (int64_t i = 0; i < kLanesOf<V>; ++i) v[i] = static_cast<ElementOf<V>>(i);
  return v;
}

// The first n lanes of a vector, 0 <= n <= N: loads set the others to 0, and neither loads nor
// stores touch memory beyond them. Made once, used for many rows.
template <class T, int64_t N = kLanes<T>> class FirstLanes {
  using V = Vec<T, N>;
  static constexpr int64_t kItem = sizeof(T), kBytes = N * kItem;

 public:
#if defined(__AVX512BW__) && defined(__AVX512VL__)
  // By bytes.
  static constexpr bool kMasked = kBytes >= 16;

  FN explicit FirstLanes(int64_t n)
      : n_(n),
        mask_(n * kItem >= 64 ? ~uint64_t{0} : (uint64_t{1} << n * kItem) - 1) {}

  FN V load_masked(const T* p) const {
    if constexpr (kBytes == 64) return (V)_mm512_maskz_loadu_epi8(mask_, p);
    else if constexpr (kBytes == 32)
      return (V)_mm256_maskz_loadu_epi8(static_cast<__mmask32>(mask_), p);
    else return (V)_mm_maskz_loadu_epi8(static_cast<__mmask16>(mask_), p);
  }
  FN void store_masked(T* p, V v) const {
    if constexpr (kBytes == 64) _mm512_mask_storeu_epi8(p, mask_, (__m512i)v);
    else if constexpr (kBytes == 32)
      _mm256_mask_storeu_epi8(p, static_cast<__mmask32>(mask_), (__m256i)v);
    else _mm_mask_storeu_epi8(p, static_cast<__mmask16>(mask_), (__m128i)v);
  }
#elif defined(__AVX2__)
  // By words of 4 bytes.
  static constexpr bool kMasked = kBytes >= 16 && kItem >= 4;
  static constexpr int64_t kWords = kMasked ? kBytes / 4 : 4;

  FN explicit FirstLanes(int64_t n)
      : n_(n),
        mask_(iota<Vec<int32_t, kWords>>() <
              broadcast_to<int32_t, kWords>(static_cast<int32_t>(n * kItem / 4))) {}

  FN V load_masked(const T* p) const {
    const auto* words = reinterpret_cast<const int*>(p);
    if constexpr (kBytes == 32) return (V)_mm256_maskload_epi32(words, (__m256i)mask_);
    else return (V)_mm_maskload_epi32(words, (__m128i)mask_);
  }
  FN void store_masked(T* p, V v) const {
    auto* words = reinterpret_cast<int*>(p);
    if constexpr (kBytes == 32) _mm256_maskstore_epi32(words, (__m256i)mask_, (__m256i)v);
    else _mm_maskstore_epi32(words, (__m128i)mask_, (__m128i)v);
  }
#else
  static constexpr bool kMasked = false;
  FN explicit FirstLanes(int64_t n) : n_(n) {}
#endif

  FN V load(const T* p) const {
    if constexpr (kMasked) {
      return load_masked(p);
    } else {
      V v{};
      for (int64_t i = 0; i < n_; ++i) v[i] = p[i];
      return v;
    }
  }
  FN void store(T* p, V v) const {
    if constexpr (kMasked) {
      store_masked(p, v);
    } else {
      for (int64_t i = 0; i < n_; ++i) p[i] = v[i];
    }
  }

 private:
  int64_t n_;
#if defined(__AVX512BW__) && defined(__AVX512VL__)
  uint64_t mask_;
#elif defined(__AVX2__)
  Vec<int32_t, kWords> mask_;
#endif
};

// A non-temporal store to memory aligned as the vector is. stream_fence() before another thread
// reads what was stored.
template <class T, class V> FN void stream(T* p, V v) {
#if defined(__AVX512F__)
  if constexpr (sizeof(V) == 64)
    return _mm512_stream_si512(reinterpret_cast<__m512i*>(p), (__m512i)v);
#endif
#if defined(__AVX__)
  if constexpr (sizeof(V) == 32)
    return _mm256_stream_si256(reinterpret_cast<__m256i*>(p), (__m256i)v);
#endif
#if defined(__x86_64__)
  if constexpr (sizeof(V) == 16) return _mm_stream_si128(reinterpret_cast<__m128i*>(p), (__m128i)v);
#endif
  store(p, v);
}
FN void stream_fence() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

// Prefetches the cache lines of `bytes` at p. Level: 3 is the first cache, 2 the second.
template <int Level = 2> FN void prefetch(const void* p, int64_t bytes = 1) {
  for (int64_t i = 0; i < bytes; i += kCacheLine)
    __builtin_prefetch(static_cast<const char*>(p) + i, 0, Level);
}

// p[index[0]], p[index[1]], ...
template <class T, int64_t N = kLanes<T>> FN Vec<T, N> gather(const T* p, const int32_t* index) {
#if defined(__AVX512F__)
  constexpr int64_t bytes = N * static_cast<int64_t>(sizeof(T));
  if constexpr (bytes == 64 && sizeof(T) == 4)
    return (Vec<T, N>)_mm512_mask_i32gather_epi32(_mm512_setzero_si512(), 0xffff,
                                                  _mm512_loadu_si512(index), p, 4);
  else if constexpr (bytes == 64 && sizeof(T) == 8)
    return (Vec<T, N>)_mm512_mask_i32gather_epi64(
        _mm512_setzero_si512(), 0xff, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(index)),
        p, 8);
#elif defined(__AVX2__)
  constexpr int64_t bytes = N * static_cast<int64_t>(sizeof(T));
  if constexpr (bytes == 32 && sizeof(T) == 4)
    return (Vec<T, N>)_mm256_mask_i32gather_epi32(
        _mm256_setzero_si256(), reinterpret_cast<const int*>(p),
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(index)), _mm256_set1_epi32(-1), 4);
  else if constexpr (bytes == 32 && sizeof(T) == 8)
    return (Vec<T, N>)_mm256_mask_i32gather_epi64(
        _mm256_setzero_si256(), reinterpret_cast<const long long*>(p),
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(index)), _mm256_set1_epi32(-1), 8);
#endif
  Vec<T, N> v{};
  for (int64_t i = 0; i < N; ++i) v[i] = p[index[i]];
  return v;
}

// ---- lanes ----

// The larger and the smaller of each pair of lanes; b where one of them is NaN.
template <class V> FN V max(V a, V b) { return a > b ? a : b; }
template <class V> FN V min(V a, V b) { return a < b ? a : b; }

namespace detail {
template <class V, class Index, int... I>
FN auto shuffle(V a, V b, Index, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(a, b, Index{}(I)...);
}
}  // namespace detail

// The N lanes index(0), index(1), ... of a and, from kLanesOf<V> on, of b.
template <int64_t N, class V, class Index> FN Vec<ElementOf<V>, N> shuffle(V a, V b, Index index) {
  if constexpr (N == 1) return a[index(0)];
  else return detail::shuffle(a, b, index, std::make_integer_sequence<int, N>{});
}
template <class V, class Index> FN V shuffle(V a, V b, Index index) {
  return shuffle<kLanesOf<V>>(a, b, index);
}

template <class V> FN auto low_half(V v) {
  return shuffle<kLanesOf<V> / 2>(v, v, [](int i) { return i; });
}
template <class V> FN auto high_half(V v) {
  return shuffle<kLanesOf<V> / 2>(v, v, [](int i) { return i + kLanesOf<V> / 2; });
}
template <class V> FN Vec<ElementOf<V>, 2 * kLanesOf<V>> concat(V low, V high) {
  if constexpr (kLanesOf<V> == 1) return Vec<V, 2>{low, high};
  else return shuffle<2 * kLanesOf<V>>(low, high, [](int i) { return i; });
}

// The lanes with even numbers, or with odd ones, of a followed by b.
template <class V> FN V even_lanes(V a, V b) {
  return shuffle(a, b, [](int i) { return 2 * i; });
}
template <class V> FN V odd_lanes(V a, V b) {
  return shuffle(a, b, [](int i) { return 2 * i + 1; });
}
// p[0], p[2], ...; nothing after the last of them is read.
template <int64_t N, class T> FN Vec<T, N> load_every_other(const T* p) {
  return shuffle(load<N>(p), load<N>(p + N - 1),
                 [](int i) { return i < N / 2 ? 2 * i : 2 * i + 1; });
}

// All lanes combined by op, which takes vectors and numbers: first the halves, then quarters ...
template <class V, class Op> FN ElementOf<V> reduce(V v, const Op& op) {
  if constexpr (kLanesOf<V> == 1) {
    return v;
  } else {
    return reduce(op(low_half(v), high_half(v)), op);
  }
}

// ---- conversion ----

namespace detail {
template <class T>
using Wider = std::conditional_t<sizeof(T) == 1, int16_t,
                                 std::conditional_t<sizeof(T) == 2, int32_t, int64_t>>;
}  // namespace detail

// Each lane as a To, as static_cast does. Compilers make vector instructions of conversions to
// twice the width where the result fits a register, so wider steps are taken one by one.
template <class To, class V> FN Vec<To, kLanesOf<V>> convert(V v) {
  using From = ElementOf<V>;
  constexpr int64_t n = kLanesOf<V>;
  if constexpr (same_type<To, From>) {
    return v;
  } else if constexpr (n == 1) {
    return static_cast<To>(v);
  } else if constexpr (n * sizeof(To) > kRegisterBytes && n > 1) {
#if defined(__SSE2__)
    if constexpr (same_type<From, float> && same_type<To, double> && n == 4) {
      const auto high = _mm_movehl_ps((__m128)v, (__m128)v);
      return concat((Vec<double, 2>)_mm_cvtps_pd((__m128)v), (Vec<double, 2>)_mm_cvtps_pd(high));
    }
#endif
    return concat(convert<To>(low_half(v)), convert<To>(high_half(v)));
  } else if constexpr (!is_float<To> && !is_float<From> && sizeof(To) > 2 * sizeof(From)) {
    return convert<To>(convert<detail::Wider<From>>(v));
  } else {
#if defined(__AVX512F__)
    if constexpr (same_type<From, float> && same_type<To, double> && n == 8)
      return (Vec<double, 8>)_mm512_maskz_cvtps_pd(0xff, (__m256)v);
#endif
#if defined(__AVX__)
    if constexpr (same_type<From, float> && same_type<To, double> && n == 4)
      return (Vec<double, 4>)_mm256_cvtps_pd((__m128)v);
#endif
    return __builtin_convertvector(v, Vec<To, n>);
  }
}

// The sum of all lanes, in A: halves are added in the lanes' own type first where that is A.
template <class A, class V> FN A reduce_add(V v) {
  if constexpr (kLanesOf<V> == 1) {
    return static_cast<A>(v);
  } else {
    if constexpr (same_type<A, ElementOf<V>>) return reduce_add<A>(low_half(v) + high_half(v));
    else if constexpr (sizeof(V) <= 16) return reduce_add<A>(convert<A>(v));
    else return reduce_add<A>(convert<A>(low_half(v)) + convert<A>(high_half(v)));
  }
}
template <class V> FN ElementOf<V> reduce_add(V v) { return reduce_add<ElementOf<V>>(v); }

// Keeps a value in a register where the compiler would load it from memory for every use.
template <class V> FN void pin([[maybe_unused]] V& v) {
#if defined(__x86_64__)
  asm("" : "+v"(v));
#elif defined(__aarch64__)
  asm("" : "+w"(v));
#endif
}

}  // namespace taeda::cpu::simd::TAEDA_ISA
