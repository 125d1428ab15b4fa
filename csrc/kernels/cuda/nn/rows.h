// Rows that groups of threads walk over, by packs of neighbours.
#pragma once

#include "kernels/cuda/common/group.h"
#include "kernels/cuda/common/vector.h"

namespace taeda::cuda {

// Threads of a row that is held; and packs that a thread loads before it uses any.
inline constexpr unsigned kMostHeld = 512;
inline constexpr int kAhead = 4;

// The packs of a row that a thread has: every blockDim.x-th.
template <class S, int N, int V> struct Packs {
  Pack<S, N> v[V];
  __device__ __forceinline__ void load(const S* row, int64_t first, int64_t packs) {
#pragma unroll
    for (int k = 0; k < V; ++k) {
      const int64_t i = first + k * int64_t{blockDim.x};
      v[k] = i < packs ? load_pack<S, N>(row + i * N) : Pack<S, N>{};
    }
  }
  // f(index of the first element, elements) of each that is there.
  template <class F> __device__ __forceinline__ void each(int64_t first, int64_t packs, F f) const {
#pragma unroll
    for (int k = 0; k < V; ++k) {
      const int64_t i = first + k * int64_t{blockDim.x};
      if (i >= packs) continue;
      Number<S> all[N];
      numbers<S, N>(v[k], all);
      f(i * N, all);
    }
  }
};

// A block for rows of so many packs, of which a thread takes V.
inline dim3 block_for(int64_t packs, int V) {
  unsigned width = 1;
  while (width < kMostHeld && (width < kWarp ? width < packs : int64_t{width} * V < packs))
    width *= 2;
  return dim3(width, std::max(kThreads / width, 1u));
}

}  // namespace taeda::cuda
