// Neighbouring elements, read and written together: 16 bytes at a time where they are aligned.
#pragma once

#include "kernels/cuda/common/convert.h"

namespace taeda::cuda {

template <class T, int N> struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) Neighbours {
  T v[N];
};

template <class S, class T, int N>
__device__ __forceinline__ Neighbours<T, N> load_vector(const char* p) {
  const auto stored = *reinterpret_cast<const Neighbours<S, N>*>(p);
  Neighbours<T, N> all;
  for (int j = 0; j < N; ++j)
    all.v[j] = convert<T>(element<S>(reinterpret_cast<const char*>(stored.v + j)));
  return all;
}
template <class S, class T, int N>
__device__ __forceinline__ void store_vector(char* p, const Neighbours<T, N>& all) {
  Neighbours<S, N> stored;
  for (int j = 0; j < N; ++j) stored.v[j] = convert<S>(all.v[j]);
  *reinterpret_cast<Neighbours<S, N>*>(p) = stored;
}

// Of elements that are stored as Ts, or as either half type where T is float.
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

// Whether vectors of N elements of `size` bytes can begin there.
inline bool is_aligned(const void* p, int64_t n, int64_t size) {
  const int64_t bytes = n * size < 16 ? n * size : 16;
  return reinterpret_cast<uintptr_t>(p) % static_cast<uintptr_t>(bytes) == 0;
}

}  // namespace taeda::cuda
