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
struct alignas(16) VectorWords {
  uint32_t w[4];
};
template <class S, int N> __device__ __forceinline__ Pack<S, N> load_pack(const S* p) {
  if constexpr (sizeof(S) * N == sizeof(VectorWords))
    return std::bit_cast<Pack<S, N>>(*reinterpret_cast<const VectorWords*>(p));
  else return *reinterpret_cast<const Pack<S, N>*>(p);
}
template <class S, int N> __device__ __forceinline__ void store_pack(S* p, const Pack<S, N>& all) {
  if constexpr (sizeof(S) * N == sizeof(VectorWords))
    *reinterpret_cast<VectorWords*>(p) = std::bit_cast<VectorWords>(all);
  else *reinterpret_cast<Pack<S, N>*>(p) = all;
}

template <class S> __device__ __forceinline__ Number<S> number(S s) {
  return convert<Number<S>>(s);
}
template <class S> __device__ __forceinline__ S rounded(Number<S> v) { return convert<S>(v); }

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

// N neighbours as Ts, from memory where they are Ss that begin where vectors may.
template <class T, int N> struct Neighbours {
  T v[N];
};
template <class S, class T, int N>
__device__ __forceinline__ Neighbours<T, N> load_vector(const char* p) {
  constexpr int n = N < kPack<S> ? N : kPack<S>;
  Neighbours<T, N> all;
#pragma unroll
  for (int first = 0; first < N; first += n) {
    const auto part = load_pack<S, n>(reinterpret_cast<const S*>(p) + first);
#pragma unroll
    for (int j = 0; j < n; ++j)
      all.v[first + j] = convert<T>(element<S>(reinterpret_cast<const char*>(part.v + j)));
  }
  return all;
}
template <class S, class T, int N>
__device__ __forceinline__ void store_vector(char* p, const Neighbours<T, N>& all) {
  constexpr int n = N < kPack<S> ? N : kPack<S>;
#pragma unroll
  for (int first = 0; first < N; first += n) {
    Pack<S, n> part;
#pragma unroll
    for (int j = 0; j < n; ++j) part.v[j] = convert<S>(all.v[first + j]);
    store_pack<S, n>(reinterpret_cast<S*>(p) + first, part);
  }
}
// The same of elements that are stored as Ts, or as either half type where T is float.
template <class T, int N>
__device__ __forceinline__ Neighbours<T, N> load_mixed(const char* p, DType d) {
  if constexpr (same_type<T, float>) {
    if (d == DType::Float16) return load_vector<Half, T, N>(p);
    if (d == DType::BFloat16) return load_vector<BFloat16, T, N>(p);
  }
  return load_vector<T, T, N>(p);
}
template <class T, int N>
__device__ __forceinline__ void store_mixed(char* p, DType d, const Neighbours<T, N>& all) {
  if constexpr (same_type<T, float>) {
    if (d == DType::Float16) return store_vector<Half>(p, all);
    if (d == DType::BFloat16) return store_vector<BFloat16>(p, all);
  }
  store_vector<T>(p, all);
}

// Whether vectors of n elements of `size` bytes may begin there.
inline bool is_aligned(const void* p, int64_t n, int64_t size) {
  const int64_t bytes = n * size < 16 ? n * size : 16;
  return reinterpret_cast<uintptr_t>(p) % static_cast<uintptr_t>(bytes) == 0;
}
// Whether all of them begin where vectors may.
template <class... P> bool aligned(const P*... p) {
  return ((reinterpret_cast<uintptr_t>(p) % sizeof(VectorWords) == 0) && ...);
}

}  // namespace taeda::cuda
