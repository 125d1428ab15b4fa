// What the threads of a group find out together. A group is a row of a block: those with one
// threadIdx.y. All threads of the block take part at once.
#pragma once

#include <cstring>
#include <type_traits>

#include "kernels/cuda/launch.h"

namespace taeda::cuda {

inline constexpr unsigned kWarp = 32;

// What the lane at `distance` (a power of two) has. A: a number, or a plain struct of 32-bit words.
template <class A> __device__ __forceinline__ A across(A own, unsigned distance) {
  if constexpr (std::is_arithmetic_v<A>) {
    return static_cast<A>(__shfl_xor_sync(~0u, own, static_cast<int>(distance)));
  } else {
    static_assert(sizeof(A) % sizeof(uint32_t) == 0 && std::is_trivially_copyable_v<A>);
    uint32_t words[sizeof(A) / sizeof(uint32_t)];
    std::memcpy(words, &own, sizeof own);
#pragma unroll
    for (uint32_t& word : words) word = __shfl_xor_sync(~0u, word, static_cast<int>(distance));
    std::memcpy(&own, words, sizeof own);
    return own;
  }
}

// What all threads of the group have, merged in a fixed order, for all of them. merge(a, b) is
// merge(b, a). blockDim.x is a power of two, and a block has whole warps.
template <class A, class Merge> __device__ A group_all(A own, Merge merge) {
  for (unsigned distance = (blockDim.x < kWarp ? blockDim.x : kWarp) / 2; distance > 0;
       distance /= 2)
    own = merge(own, across(own, distance));
  if (blockDim.x <= kWarp) return own;
  __shared__ A of_warps[1024 / kWarp];
  const unsigned self = threadIdx.y * blockDim.x + threadIdx.x;
  const unsigned first = threadIdx.y * blockDim.x / kWarp, warps = blockDim.x / kWarp;
  if (self % kWarp == 0) of_warps[self / kWarp] = own;
  __syncthreads();
  A all = of_warps[first];
#pragma unroll 1
  for (unsigned warp = 1; warp < warps; ++warp) all = merge(all, of_warps[first + warp]);
  __syncthreads();
  return all;
}
// What the group's first thread has.
template <class A> __device__ A group_first(A own) {
  static_assert(sizeof(A) % sizeof(uint32_t) == 0 && std::is_trivially_copyable_v<A>);
  if (blockDim.x > kWarp) {
    __shared__ A of_groups[1024 / kWarp];
    if (threadIdx.x == 0) of_groups[threadIdx.y] = own;
    __syncthreads();
    own = of_groups[threadIdx.y];
    __syncthreads();
    return own;
  }
  const unsigned self = threadIdx.y * blockDim.x + threadIdx.x;
  const unsigned first = self % kWarp / blockDim.x * blockDim.x;
  uint32_t words[sizeof(A) / sizeof(uint32_t)];
  std::memcpy(words, &own, sizeof own);
#pragma unroll
  for (uint32_t& word : words) word = __shfl_sync(~0u, word, static_cast<int>(first));
  std::memcpy(&own, words, sizeof own);
  return own;
}
template <class A> __device__ A group_sum(A own) {
  return group_all(own, [](A a, A b) { return a + b; });
}

// Two sums that are wanted at once.
template <class T> struct Pair {
  T a, b;
  __device__ friend Pair operator+(Pair x, Pair y) { return {x.a + y.a, x.b + y.b}; }
};

// The block for groups that share `n` items each.
inline dim3 groups_for(int64_t n) {
  unsigned width = 1;
  while (width < kThreads && width < n) width *= 2;
  return dim3(width, kThreads / width);
}
inline unsigned blocks_of(int64_t groups, dim3 block) {
  return static_cast<unsigned>((groups + block.y - 1) / block.y);
}
__device__ inline int64_t group_index() { return int64_t{blockIdx.x} * blockDim.y + threadIdx.y; }

}  // namespace taeda::cuda
