// Counting elements into bins.
#include "kernels/histogram.h"

#include "kernels/cuda/index/tables.h"
#include "kernels/cuda/launch.h"

namespace taeda::cuda {
namespace {

constexpr int64_t kSharedBins = 4096;  // counted in shared memory first
using Count = unsigned long long;      // as atomicAdd has it

// out[bin(i)] += 1 for all i < n where bin(i) lies in [0, bins).
template <class F> __global__ void count_shared(int64_t n, int bins, F bin, int64_t* out) {
  auto* counts = static_cast<unsigned*>(dynamic_shared());
  for (int b = static_cast<int>(threadIdx.x); b < bins; b += static_cast<int>(blockDim.x))
    counts[b] = 0;
  __syncthreads();
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += step) {
    const int64_t b = bin(i);
    if (b >= 0 && b < bins) atomicAdd(counts + b, 1u);
  }
  __syncthreads();
  for (int b = static_cast<int>(threadIdx.x); b < bins; b += static_cast<int>(blockDim.x))
    if (counts[b] > 0) atomicAdd(reinterpret_cast<Count*>(out + b), Count{counts[b]});
}
template <class F> void count_bins(int64_t n, int64_t bins, F bin, int64_t* out) {
  if (n == 0) return;
  if (bins <= kSharedBins) {
    launch(count_shared<F>, blocks_for(n), kThreads, static_cast<size_t>(bins) * sizeof(unsigned),
           n, static_cast<int>(bins), bin, out);
    return;
  }
  each(n, [=] __device__(int64_t i) {
    const int64_t b = bin(i);
    if (b >= 0 && b < bins) atomicAdd(reinterpret_cast<Count*>(out + b), Count{1});
  });
}

template <class F> void visit_whole(DType dtype, F&& f) {
  visit_real(dtype, "bincount", [&]<class T>(Tag<T> tag) {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) f(tag);
  });
}

template <class T> void range_as(const T* x, int64_t n, long long* ends) {
  each(1, [=] __device__(int64_t) { ends[0] = ends[1] = static_cast<long long>(x[0]); });
  const int64_t threads = int64_t{blocks_for(n)} * kThreads;
  each(threads, [=] __device__(int64_t t) {
    if (t >= n) return;
    T least = x[t], most = x[t];
    for (int64_t i = t + threads; i < n; i += threads) {
      if (x[i] < least) least = x[i];
      if (x[i] > most) most = x[i];
    }
    atomicMin(ends, static_cast<long long>(least));
    atomicMax(ends + 1, static_cast<long long>(most));
  });
}
std::pair<int64_t, int64_t> range(const void* x, int64_t n, DType dtype) {
  const Workspace memory(2 * sizeof(long long));
  auto* ends = memory.as<long long>();
  visit_whole(dtype, [&]<class T>(Tag<T>) { range_as(static_cast<const T*>(x), n, ends); });
  return {read_back(ends), read_back(ends + 1)};
}

template <class T> void count_as(const T* x, int64_t n, int64_t bins, int64_t* out) {
  count_bins(n, bins, [=] __device__(int64_t i) { return static_cast<int64_t>(x[i]); }, out);
}
void count(const void* x, int64_t n, DType dtype, int64_t bins, int64_t* out) {
  visit_whole(dtype, [&]<class T>(Tag<T>) { count_as(static_cast<const T*>(x), n, bins, out); });
}

template <class T> void even(const T* x, int64_t n, T low, T high, int64_t bins, int64_t* out) {
  count_bins(
      n, bins,
      [=] __device__(int64_t i) {
        return x[i] >= low && x[i] <= high ? even_bin(x[i], low, high, bins) : -1;
      },
      out);
}

template <class T> void between(const T* x, int64_t n, const T* edges, int64_t bins, int64_t* out) {
  count_bins(
      n, bins,
      [=] __device__(int64_t i) {
        const T low = edges[0], high = edges[bins];
        return x[i] >= low && x[i] <= high
                   ? bin_between(x[i], edges, bins, static_cast<T>(bins) / (high - low))
                   : -1;
      },
      out);
}

const CountKernels count_table{range, count};
template <class T> const HistogramKernels<T> histogram_table{even<T>, between<T>};

}  // namespace

void add_histogram_tables(std::vector<DeviceTable>& to) {
  to.insert(to.end(), {device_table(count_table), device_table(histogram_table<float>),
                       device_table(histogram_table<double>)});
}

}  // namespace taeda::cuda
