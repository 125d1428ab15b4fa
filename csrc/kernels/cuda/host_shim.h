// CUDA C++ for a host compiler, to test kernels without a GPU: the names that kernels use. Blocks
// run one after the other, their threads as fibers that change at barriers and shuffles; what does
// not wait as all threads do ends the process with a message. tests/cuda/host_shim.cpp has the
// fibers. Never part of what is installed.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>

struct CUstream_st;

struct dim3 {
  unsigned x, y, z;
  dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

#define __global__
#define __device__
#define __host__
#define __shared__ static  // one block runs at a time
#define __launch_bounds__(...)
#define __grid_constant__
#define NOT_INLINED [[gnu::noinline]]
#define __forceinline__ [[gnu::always_inline]] inline

inline dim3 threadIdx, blockIdx, blockDim, gridDim;
inline constexpr int warpSize = 32;

namespace taeda::cuda::shim {

struct Launch {
  dim3 grid, block;
  size_t shared;
  std::function<void()> thread;
};
void enqueue(Launch launch, CUstream_st* stream);
void* dynamic_shared();

void block_barrier();
// What the lane `lane` of this warp gives; every lane must ask at the same time.
uint64_t exchange(uint64_t own, int lane);

// What all lanes of this warp give. It stays until the warp has gathered twice again.
const char* gather(const void* own, size_t size);
inline constexpr size_t kMostGathered = 32;
template <class T> class Gathered {
 public:
  explicit Gathered(const T& own) : all_(gather(&own, sizeof own)) {
    static_assert(sizeof(T) <= kMostGathered);
  }
  const T& operator[](int lane) const {
    return *reinterpret_cast<const T*>(all_ + static_cast<size_t>(lane) * kMostGathered);
  }

 private:
  const char* all_;
};

// Copies of this thread (zeros from null) that happen when it waits for their group, and not
// before.
void copy_later(void* to, const void* from, size_t size);
void commit_copies();
void wait_for_copies(size_t most);

template <class T> T shuffle(T own, int lane) {
  static_assert(sizeof(T) <= 8);
  uint64_t bits = 0;
  std::memcpy(&bits, &own, sizeof own);
  bits = exchange(bits, lane);
  std::memcpy(&own, &bits, sizeof own);
  return own;
}
inline int lane() {
  return static_cast<int>((threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) %
                          32);
}

}  // namespace taeda::cuda::shim

inline void __syncthreads() { taeda::cuda::shim::block_barrier(); }
inline int __syncthreads_or(int own) {
  static int any;
  taeda::cuda::shim::block_barrier();
  any = 0;
  taeda::cuda::shim::block_barrier();
  if (own) any = 1;
  taeda::cuda::shim::block_barrier();
  return any;
}
inline void __syncwarp() { taeda::cuda::shim::gather(nullptr, 0); }
inline void __threadfence_system() {}
template <class T> T __shfl_xor_sync(unsigned, T own, int mask) {
  return taeda::cuda::shim::shuffle(own, taeda::cuda::shim::lane() ^ mask);
}
inline bool __any_sync(unsigned, bool own) {
  const taeda::cuda::shim::Gathered<bool> all(own);
  for (int lane = 0; lane < warpSize; ++lane)
    if (all[lane]) return true;
  return false;
}
template <class T> T __shfl_sync(unsigned, T own, int lane) {
  return taeda::cuda::shim::shuffle(own, lane);
}
// Fast forms, which a GPU's units compute to about 2^-21.
inline float __logf(float x) { return std::log(x); }
inline float __expf(float x) { return std::exp(x); }
inline float __tanf(float x) { return std::tan(x); }
inline void __sincosf(float x, float* sine, float* cosine) {
  *sine = std::sin(x);
  *cosine = std::cos(x);
}
inline void sincospi(double x, double* sine, double* cosine) {
  *sine = std::sin(M_PI * x);
  *cosine = std::cos(M_PI * x);
}
template <class T, class U> T atomicMin(T* p, U v) {
  const T old = *p;
  if (v < old) *p = v;
  return old;
}
template <class T, class U> T atomicMax(T* p, U v) {
  const T old = *p;
  if (v > old) *p = v;
  return old;
}
template <class T, class U> T atomicAdd(T* p, U v) {
  const T old = *p;
  *p += v;
  return old;
}
