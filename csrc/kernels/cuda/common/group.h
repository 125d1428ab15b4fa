// What the threads of a group find out together. A group is a row of a block: those with one
// threadIdx.y. All threads of the block take part at once.
#pragma once

#include <type_traits>

#include "kernels/cuda/launch.h"

namespace taeda::cuda {

// What all threads of the group have, merged in a fixed order, for all of them. merge(a, b) is
// merge(b, a). blockDim.x is a power of two, and a block has kThreads threads.
template <class A, class Merge> __device__ A group_all(A own, Merge merge) {
  if (blockDim.x == 1) return own;
  if constexpr (std::is_arithmetic_v<A>) {
    if (blockDim.x <= 32) {  // within a warp
      for (unsigned distance = blockDim.x / 2; distance > 0; distance /= 2)
        own = merge(own, __shfl_xor_sync(~0u, own, static_cast<int>(distance)));
      return own;
    }
  }
  __shared__ A all[kThreads];
  A* group = all + threadIdx.y * blockDim.x;
  group[threadIdx.x] = own;
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half)
      group[threadIdx.x] = merge(group[threadIdx.x], group[threadIdx.x + half]);
  }
  __syncthreads();
  const A result = group[0];
  __syncthreads();
  return result;
}
template <class A> __device__ A group_sum(A own) {
  return group_all(own, [](A a, A b) { return a + b; });
}

// The block for groups that share `n` items each: a thread alone where items of neighbouring groups
// are neighbours in memory.
inline dim3 groups_for(int64_t n, bool alone = false) {
  unsigned width = 1;
  while (!alone && width < kThreads && width < n) width *= 2;
  return dim3(width, kThreads / width);
}
inline unsigned blocks_of(int64_t groups, dim3 block) {
  return static_cast<unsigned>((groups + block.y - 1) / block.y);
}
__device__ inline int64_t group_index() { return int64_t{blockIdx.x} * blockDim.y + threadIdx.y; }

}  // namespace taeda::cuda
