#include "kernels/cuda/common/sort.h"

#ifndef TAEDA_HOST_SHIM
#include <cub/device/device_radix_sort.cuh>
#else
#include <algorithm>
#include <numeric>
#include <vector>
#endif

#include "kernels/cuda/launch.h"

namespace taeda::cuda {

#ifndef TAEDA_HOST_SHIM
template <class K, class V>
void sort_pairs(int64_t n, int bits, const K* keys, K* sorted_keys, const V* values,
                V* sorted_values) {
  const StreamHandle stream = current_stream(used_device().index);
  size_t bytes = 0;
  const auto run = [&](void* workspace) {
    const cudaError_t result =
        cub::DeviceRadixSort::SortPairs(workspace, bytes, keys, sorted_keys, values, sorted_values,
                                        static_cast<int>(n), 0, bits, stream);
    check(result == cudaSuccess, "cuda: sorting: ", cudaGetErrorString(result));
  };
  run(nullptr);  // asks for the workspace's size
  const Workspace workspace(bytes);
  run(workspace.as<void>());
}
#else
namespace {
template <class K, class V>
__global__ void sort_all(int64_t n, const K* keys, K* sorted_keys, const V* values,
                         V* sorted_values) {
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [=](int64_t a, int64_t b) { return keys[a] < keys[b]; });
  for (int64_t i = 0; i < n; ++i) {
    sorted_keys[i] = keys[order[static_cast<size_t>(i)]];
    sorted_values[i] = values[order[static_cast<size_t>(i)]];
  }
}
}  // namespace
template <class K, class V>
void sort_pairs(int64_t n, int, const K* keys, K* sorted_keys, const V* values, V* sorted_values) {
  launch(sort_all<K, V>, 1, 1, 0, n, keys, sorted_keys, values, sorted_values);
}
#endif

template void sort_pairs(int64_t, int, const uint32_t*, uint32_t*, const uint32_t*, uint32_t*);
template void sort_pairs(int64_t, int, const uint64_t*, uint64_t*, const int64_t*, int64_t*);

}  // namespace taeda::cuda
