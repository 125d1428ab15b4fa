// Fills of contiguous memory in the order in which PyTorch's CUDA kernels fill it.
#pragma once

#include <algorithm>
#include <limits>

#include "base/random.h"
#include "kernels/cuda/common/convert.h"
#include "kernels/cuda/random/philox.h"
#include "kernels/cuda/random/recorded.h"
#include "kernels/random.h"

namespace taeda::cuda {

// The type that elements are computed in.
template <class T> using Wide = std::conditional_t<same_type<T, double>, double, float>;

// Where a kernel's numbers begin, of which it takes so many words.
inline Place take(Engine& engine, int64_t words) {
  const auto count = static_cast<uint64_t>(words);
  if (is_capturing(current_stream(used_device().index))) [[unlikely]] {
    const RecordedDraws draws = record_draws(engine, count);
    return {0, draws.offset, draws.place};
  }
  return {engine.initial_seed(), engine.take(count)};
}

// The grid of a random kernel, which its numbers depend on: a thread for each element, as far as
// the device can have them at a time.
struct Grid {
  unsigned blocks;
  int64_t rounds;  // how often a thread draws, for as many elements as it gets numbers

  Grid(int64_t n, int each) {
    const DeviceState& device = used_device();
    const int64_t resident =
        device.multiprocessors * (device.threads_per_multiprocessor / int64_t{kThreads});
    blocks = static_cast<unsigned>(std::min(resident, (n + kThreads - 1) / kThreads));
    rounds = (n - 1) / (int64_t{kThreads} * blocks * each) + 1;
  }
};

// Whether PyTorch numbers the bytes of so many elements by 32 bits; if not, it halves them.
template <class T> bool fits_32_bits(int64_t n) {
  return n <= std::numeric_limits<int32_t>::max() / static_cast<int64_t>(sizeof(T));
}

// Each thread draws from its own stream, and its numbers go to elements that are as far apart as
// there are threads.
template <class Draw, class T, class F>
__global__ void __launch_bounds__(kThreads) fill_kernel(uint32_t n, Place place, F f, T* out) {
  const uint32_t threads = gridDim.x * blockDim.x, thread = blockIdx.x * blockDim.x + threadIdx.x;
  Philox philox(place, thread);
  for (uint32_t first = thread; first < n; first += threads * Draw::count) {
    const Draw drawn(philox.next());
#pragma unroll
    for (int k = 0; k < Draw::count; ++k) {
      const uint32_t i = first + static_cast<uint32_t>(k) * threads;
      if (i < n) out[i] = f(drawn.v[k]);
    }
  }
}

// out[i] = f(a number of Draw).
template <class Draw, class T, class F> void fill(Engine& engine, T* out, int64_t n, F f) {
  if (n == 0) return;
  if (!fits_32_bits<T>(n)) {
    fill<Draw>(engine, out, n / 2, f);
    return fill<Draw>(engine, out + n / 2, n - n / 2, f);
  }
  const Grid grid(n, Draw::count);
  launch(fill_kernel<Draw, T, F>, grid.blocks, kThreads, 0, static_cast<uint32_t>(n),
         take(engine, 4 * grid.rounds), f, out);
}

// ---- functions that PyTorch takes in their fast forms ----
__device__ inline float fast_log(float x) { return __logf(x); }
__device__ inline double fast_log(double x) { return std::log(x); }
__device__ inline float fast_exp(float x) { return __expf(x); }
__device__ inline double fast_exp(double x) { return std::exp(x); }
__device__ inline float fast_tan(float x) { return __tanf(x); }
__device__ inline double fast_tan(double x) { return std::tan(x); }

}  // namespace taeda::cuda
