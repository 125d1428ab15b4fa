// Mixed precision: many gradients in one launch, and the scale that stays on the device.
#include "kernels/amp.h"

#include "kernels/cuda/common/vector.h"
#include "kernels/cuda/nn/tables.h"

namespace taeda::cuda {
namespace {

constexpr int kPerLaunch = 256;

struct Gradients {
  ScaledGradient all[kPerLaunch];
};

template <class T, int N>
__device__ __forceinline__ bool unscale_at(const ScaledGradient& g, int64_t i, T factor) {
  char* p = static_cast<char*>(g.data) + i * size_of(g.dtype);
  Neighbours<T, N> v;
  if constexpr (N > 1) v = load_mixed<T, N>(p, g.dtype);
  else v = {load<T>(p, g.dtype)};
  bool finite = true;
#pragma unroll
  for (int j = 0; j < N; ++j) {
    finite &= std::isfinite(v.v[j]);
    v.v[j] *= factor;
  }
  if constexpr (N > 1) store_mixed(p, g.dtype, v);
  else store(p, g.dtype, v.v[0]);
  return finite;
}

template <class T>
__global__ void unscale_all(const __grid_constant__ Gradients grads, const float* factor,
                            float* found) {
  constexpr int vector = 16 / sizeof(T);
  const ScaledGradient& g = grads.all[blockIdx.y];
  const T by = T(*factor);
  const int64_t step = int64_t{gridDim.x} * blockDim.x,
                first = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const auto address = reinterpret_cast<uintptr_t>(g.data);
  const int64_t vectors = address % 16 == 0 ? g.n / vector : 0;
  bool finite = true;
  for (int64_t i = first; i < vectors; i += step)
    finite &= unscale_at<T, vector>(g, i * vector, by);
  for (int64_t i = vectors * vector + first; i < g.n; i += step)
    finite &= unscale_at<T, 1>(g, i, by);
  if (!finite) *found = 1;  // the same number, whoever writes it
}

__global__ void update_scale(float* scale, int32_t* tracker, const float* found, ScaleRule rule) {
  plain::update_scale(scale, tracker, *found, rule);
}

// The gradients that are computed in T, as many as a launch takes at a time.
template <class T>
void unscale_in(std::span<const ScaledGradient> grads, const float* factor, float* found) {
  Gradients part;
  unsigned count = 0;
  int64_t longest = 0;
  const auto run = [&] {
    if (longest > 0) {
      const dim3 grid(blocks_for((longest + 3) / 4), count);
      launch(unscale_all<T>, grid, kThreads, 0, part, factor, found);
    }
    count = 0;
    longest = 0;
  };
  for (const ScaledGradient& g : grads) {
    if ((g.dtype == DType::Float64) != same_type<T, double>) continue;
    part.all[count++] = g;
    longest = std::max(longest, g.n);
    if (count == kPerLaunch) run();
  }
  run();
}

void unscale(std::span<const ScaledGradient> grads, const float* factor, float* found) {
  unscale_in<float>(grads, factor, found);
  unscale_in<double>(grads, factor, found);
}
void update(float* scale, int32_t* tracker, const float* found, const ScaleRule& rule) {
  launch(update_scale, 1, 1, 0, scale, tracker, found, rule);
}

const AmpKernels table{unscale, update};

}  // namespace

void add_amp_tables(std::vector<DeviceTable>& to) { to.push_back(device_table(table)); }

}  // namespace taeda::cuda
