// Samples whose distributions are in memory.
#include "kernels/cuda/common/group.h"
#include "kernels/cuda/random/doubles.h"
#include "kernels/cuda/random/fill.h"
#include "kernels/cuda/random/tables.h"
#include "kernels/deviates.h"

namespace taeda::cuda {
namespace {

// The first i < n for which bad(i), or n; waits for the device.
template <class F> int64_t find_first(int64_t n, F bad) {
  using Index = unsigned long long;
  const Workspace room(sizeof(Index));
  Index* const first = room.as<Index>();
  each(1, [=] __device__(int64_t) { *first = static_cast<Index>(n); });
  each(n, [=] __device__(int64_t i) {
    if (bad(i)) atomicMin(first, static_cast<Index>(i));
  });
  return static_cast<int64_t>(read_back(first));
}

template <class T> std::optional<T> find_improbable(const T* p, int64_t n) {
  const int64_t at =
      find_first(n, [=] __device__(int64_t i) { return !(p[i] >= T(0) && p[i] <= T(1)); });
  if (at == n) return std::nullopt;
  return read_back(p + at);
}

// A group for each row of weights.
template <class T>
__global__ void look_kernel(const T* weights, int64_t rows, int64_t n, int* fine, int* some) {
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    int bad = 0, positive = 0;
    for (int64_t j = threadIdx.x; j < n; j += blockDim.x) {
      const T w = weights[row * n + j];
      bad |= !(w >= T(0) && w <= std::numeric_limits<T>::max());
      positive |= w > T(0);
    }
    bad = group_sum(bad);
    positive = group_sum(positive);
    if (threadIdx.x == 0 && bad) *fine = 0;
    if (threadIdx.x == 0 && !positive) *some = 0;
  }
}
template <class T>
std::pair<bool, bool> look_at_weights(const T* weights, int64_t rows, int64_t n) {
  const Workspace room(2 * sizeof(int));
  int* const found = room.as<int>();
  each(2, [=] __device__(int64_t i) { found[i] = 1; });
  if (rows > 0)
    launch(look_kernel<T>, blocks_for(rows * kThreads), kThreads, 0, weights, rows, n, found,
           found + 1);
  int answer[2];
  read_back(answer, found, sizeof answer);
  return {answer[0] != 0, answer[1] != 0};
}

// How many uniforms it takes until their product falls below exp(-rate) (Knuth, TAOCP vol. 2,
// 3.4.1), begun at exp(rate), less one.
__device__ float poisson_by_products(Philox& philox, float rate) {
  float product = std::exp(rate);
  for (float count = 0;;) {
    const Uniform<float> u(philox.next());
#pragma unroll
    for (int k = 0; k < 4; ++k, ++count) {
      product *= u.v[k];
      if (!(product > 1)) return count;
    }
  }
}
template <class T> __global__ void poisson_kernel(int64_t n, Place place, const T* rates, T* out) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= n) return;
  Philox philox(place, static_cast<uint64_t>(i));
  const T rate = rates[i];
  if (rate < T(64)) {
    out[i] = static_cast<T>(poisson_by_products(philox, static_cast<float>(rate)));
  } else {
    Doubles doubles{philox};
    out[i] = static_cast<T>(poisson_by_rejection(doubles, static_cast<double>(rate)));
  }
}
template <class T> bool poisson(Engine& engine, T* out, const T* rates, int64_t n) {
  if (n == 0) return true;
  if (find_first(n, [=] __device__(int64_t i) { return !(rates[i] >= T(0)); }) < n) return false;
  launch(poisson_kernel<T>, static_cast<unsigned>((n + kThreads - 1) / kThreads), kThreads, 0, n,
         take(engine, 20), rates, out);
  return true;
}

// cumulative (rows, n): of each row of weights, the shares up to each element. A block for each
// row, of whose threads each adds up a part.
template <class T>
__global__ void cumulate_kernel(const T* weights, int64_t rows, int64_t n, T* cumulative) {
  __shared__ double sums[kThreads];
  const int64_t part = (n + kThreads - 1) / kThreads, first = threadIdx.x * part;
  const int64_t last = first + part < n ? first + part : n;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    double sum = 0;
    for (int64_t j = first; j < last; ++j) sum += static_cast<double>(weights[row * n + j]);
    sums[threadIdx.x] = sum;
    __syncthreads();
    double before = 0, all = 0;
    for (unsigned t = 0; t < kThreads; ++t) {
      if (t == threadIdx.x) before = all;
      all += sums[t];
    }
    sum = 0;  // once more, so that the last of a part is where the next one begins
    for (int64_t j = first; j < last; ++j) {
      sum += static_cast<double>(weights[row * n + j]);
      cumulative[row * n + j] = static_cast<T>((before + sum) / all);
    }
    __syncthreads();
  }
}
// The first of n ascending numbers that is not below x, or the last of them.
template <class T> __device__ int64_t search(const T* numbers, int64_t n, float x) {
  int64_t low = 0, high = n - 1;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (numbers[middle] < static_cast<T>(x)) low = middle + 1;
    else high = middle;
  }
  return low;
}
template <class T>
void multinomial(Engine& engine, int64_t* out, const T* weights, int64_t rows, int64_t categories,
                 int64_t samples) {
  const int64_t n = rows * samples;
  if (n == 0) return;
  const Workspace room(static_cast<size_t>(rows * categories) * sizeof(T));
  T* const cumulative = room.as<T>();
  launch(cumulate_kernel<T>, blocks_for(rows * kThreads), kThreads, 0, weights, rows, categories,
         cumulative);
  const Workspace drawn(static_cast<size_t>(n) * sizeof(float));
  float* const u = drawn.as<float>();
  fill<Uniform<float>>(engine, u, n, [=] __device__(float x) { return x; });
  each(n, [=] __device__(int64_t i) {
    out[i] = search(cumulative + i / samples * categories, categories, u[i]);
  });
}

template <class T>
const SampleKernels<T> table{find_improbable<T>, poisson<T>, look_at_weights<T>, multinomial<T>};

}  // namespace

void add_sample_tables(std::vector<DeviceTable>& to) {
  to.insert(to.end(), {device_table(table<float>), device_table(table<double>)});
}

}  // namespace taeda::cuda
