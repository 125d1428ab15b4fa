// Starting kernels: the one place where compiling for a GPU, by nvcc, and for the host, by any
// compiler with TAEDA_HOST_SHIM, differ.
#pragma once

#include <cstdlib>
#include <tuple>
#include <utility>

#ifdef TAEDA_HOST_SHIM
#include "kernels/cuda/host_shim.h"
#else
#include <cuda_runtime.h>
#define NOT_INLINED __noinline__
#endif

#include "kernels/cuda/runtime/device.h"

namespace taeda::cuda {

#ifdef TAEDA_HOST_SHIM
template <class... P>
void start(void (*kernel)(P...), dim3 grid, dim3 block, size_t shared, StreamHandle stream,
           std::tuple<P...>& arguments) {
  shim::enqueue({grid, block, shared, [kernel, arguments] { std::apply(kernel, arguments); }},
                stream);
}
inline void* dynamic_shared() { return shim::dynamic_shared(); }
#else
template <class... P>
void start(void (*kernel)(P...), dim3 grid, dim3 block, size_t shared, StreamHandle stream,
           std::tuple<P...>& arguments) {
  void* pointers[sizeof...(P)];
  size_t n = 0;
  std::apply([&](P&... p) { ((pointers[n++] = &p), ...); }, arguments);
  const void* function = reinterpret_cast<const void*>(kernel);
  cudaError_t result = cudaSuccess;
  if (shared > size_t{48} << 10)  // more has to be asked for
    result = cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(shared));
  if (result == cudaSuccess)
    result = cudaLaunchKernel(function, grid, block, pointers, shared, stream);
  if (result != cudaSuccess) [[unlikely]]
    fail("cuda: starting a kernel: ", cudaGetErrorString(result), " (", int{result}, ")");
}
__device__ inline void* dynamic_shared() {
  extern __shared__ __align__(1024) char all[];
  return all;
}
#endif

// Whether every kernel is waited for, so that errors are raised where they are made.
inline bool is_blocking() {
  static const bool blocking = std::getenv("CUDA_LAUNCH_BLOCKING");
  return blocking;
}

// Starts a kernel on the used device's current stream, and returns at once.
template <class... P, class... A>
void launch(void (*kernel)(P...), dim3 grid, dim3 block, size_t shared, A&&... a) {
  const int device = used_device().index;
  const StreamHandle stream = current_stream(device);
  std::tuple<P...> arguments(std::forward<A>(a)...);
  start(kernel, grid, block, shared, stream, arguments);
  if (is_blocking()) [[unlikely]]
    synchronize_stream(device, stream);
}

inline constexpr unsigned kThreads = 256;
// Blocks that so many threads need, no more than the device can hold a few times over: kernels walk
// over the rest in strides of the grid.
inline unsigned blocks_for(int64_t threads, unsigned block = kThreads) {
  const int64_t most = int64_t{used_device().multiprocessors} * 32;
  const int64_t wanted = (threads + block - 1) / block;
  return static_cast<unsigned>(wanted < most ? wanted : most);
}

// As many as there are threads to: memory that is read and written once streams 3 % faster so than
// by strides of the grid.
inline unsigned blocks_for_all(int64_t threads) {
  return static_cast<unsigned>((threads + kThreads - 1) / kThreads);
}

template <class F> __global__ void run_each(int64_t n, F f) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += step) f(i);
}
// f(i) for all i < n.
template <class F> void each(int64_t n, F f) {
  if (n > 0) launch(run_each<F>, blocks_for(n), kThreads, 0, n, f);
}

}  // namespace taeda::cuda
