// Neighbouring elements that one instruction loads or stores, as numbers to compute with.
#pragma once

#include <bit>

#include "kernels/cuda/common/convert.h"

namespace taeda::cuda {

// What elements of S are computed in.
template <class S> using Number = std::conditional_t<is_half_type<S>, float, S>;

template <class S> inline constexpr int kPack = 16 / static_cast<int>(sizeof(S));

template <class S, int N> struct alignas(sizeof(S) * N) Pack {
  S v[N];
};

// The compiler would cut a load of eight 16-bit elements in two; four words it loads at once.
struct alignas(16) Words {
  uint32_t w[4];
};
template <class S, int N> __device__ __forceinline__ Pack<S, N> load_pack(const S* p) {
  if constexpr (sizeof(S) * N == sizeof(Words))
    return std::bit_cast<Pack<S, N>>(*reinterpret_cast<const Words*>(p));
  else return *reinterpret_cast<const Pack<S, N>*>(p);
}
template <class S, int N> __device__ __forceinline__ void store_pack(S* p, const Pack<S, N>& all) {
  if constexpr (sizeof(S) * N == sizeof(Words))
    *reinterpret_cast<Words*>(p) = std::bit_cast<Words>(all);
  else *reinterpret_cast<Pack<S, N>*>(p) = all;
}

// Halves take one instruction of a GPU each way.
template <class S> __device__ __forceinline__ Number<S> number(S s) {
#ifdef __CUDA_ARCH__
  if constexpr (same_type<S, Half>) {
    float v;
    asm("cvt.f32.f16 %0, %1;" : "=f"(v) : "h"(s.bits));
    return v;
  }
#endif
  return static_cast<Number<S>>(s);
}
template <class S> __device__ __forceinline__ S rounded(Number<S> v) {
#ifdef __CUDA_ARCH__
  if constexpr (same_type<S, Half>) {
    S s;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(s.bits) : "f"(v));
    return s;
  } else if constexpr (same_type<S, BFloat16>) {
    S s;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(s.bits) : "f"(v));
    return s;
  }
#endif
  return S(v);
}

template <class S, int N>
__device__ __forceinline__ void numbers(const Pack<S, N>& all, Number<S> (&to)[N]) {
#pragma unroll
  for (int j = 0; j < N; ++j) to[j] = number(all.v[j]);
}
// N neighbours from memory that is aligned for vectors, or where N is 1, for elements.
template <class S, int N>
__device__ __forceinline__ void load_numbers(const S* p, Number<S> (&to)[N]) {
  constexpr int n = N < kPack<S> ? N : kPack<S>;
#pragma unroll
  for (int first = 0; first < N; first += n) {
    const auto part = load_pack<S, n>(p + first);
#pragma unroll
    for (int j = 0; j < n; ++j) to[first + j] = number(part.v[j]);
  }
}
template <class S, int N>
__device__ __forceinline__ void store_numbers(S* p, const Number<S> (&v)[N]) {
  Pack<S, N> all;
#pragma unroll
  for (int j = 0; j < N; ++j) all.v[j] = rounded<S>(v[j]);
  store_pack<S, N>(p, all);
}

// Whether all of them begin where vectors may.
template <class... P> bool aligned(const P*... p) {
  return ((reinterpret_cast<uintptr_t>(p) % sizeof(Words) == 0) && ...);
}

}  // namespace taeda::cuda
