#include "kernels/cpu/distance.h"

#include <algorithm>
#include <cmath>

#include "base/thread_pool.h"

namespace taeda::cpu {
namespace {

template <class T> T distance(const T* a, const T* b, int64_t k, T p) {
  T sum = 0;
  if (p == 2) {
    for (int64_t i = 0; i < k; ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
    return std::sqrt(sum);
  }
  if (p == 1) {
    for (int64_t i = 0; i < k; ++i) sum += std::abs(a[i] - b[i]);
  } else if (p == 0) {
    for (int64_t i = 0; i < k; ++i) sum += static_cast<T>(a[i] != b[i]);
  } else if (std::isinf(p)) {
    for (int64_t i = 0; i < k; ++i) {
      const T d = std::abs(a[i] - b[i]);
      sum = d > sum || d != d ? d : sum;
    }
  } else {
    for (int64_t i = 0; i < k; ++i) sum += std::pow(std::abs(a[i] - b[i]), p);
    return std::pow(sum, 1 / p);
  }
  return sum;
}

}  // namespace

template <class T>
void pair_distances(const T* a, const T* b, T* out, int64_t batches, int64_t m, int64_t n,
                    int64_t k, double p) {
  const int64_t grain = std::max<int64_t>(1, 32768 / std::max<int64_t>(1, n * k));
  parallel_for(batches * m, grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const T* others = b + row / m * n * k;
      for (int64_t j = 0; j < n; ++j)
        out[row * n + j] = distance(a + row * k, others + j * k, k, static_cast<T>(p));
    }
  });
}

template void pair_distances(const float*, const float*, float*, int64_t, int64_t, int64_t, int64_t,
                             double);
template void pair_distances(const double*, const double*, double*, int64_t, int64_t, int64_t,
                             int64_t, double);

}  // namespace taeda::cpu
