#include "kernels/cpu/distance.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/cpu/blas.h"

namespace taeda::cpu {
namespace {

// term(i) for i < k, summed up in as many parts as fill a few registers, so that the order of the
// additions does not keep a compiler from making vectors of them.
template <class T, class F> [[gnu::always_inline]] inline T sum_of(int64_t k, const F& term) {
  constexpr int64_t parts = 64 / static_cast<int64_t>(sizeof(T));
  T part[parts] = {};
  int64_t i = 0;
  for (; i + parts <= k; i += parts) {
    for (int64_t j = 0; j < parts; ++j) part[j] += term(i + j);
  }
  T sum = 0;
  for (; i < k; ++i) sum += term(i);
  for (int64_t half = parts / 2; half > 0; half /= 2) {
    for (int64_t j = 0; j < half; ++j) part[j] += part[j + half];
  }
  return sum + part[0];
}

template <class T>
[[gnu::optimize("O3"), gnu::noinline]] T squared_distance(const T* a, const T* b, int64_t k) {
  return sum_of<T>(k, [=](int64_t i) { return (a[i] - b[i]) * (a[i] - b[i]); });
}

template <class T>
[[gnu::optimize("O3"), gnu::noinline]] T absolute_distance(const T* a, const T* b, int64_t k) {
  return sum_of<T>(k, [=](int64_t i) { return std::abs(a[i] - b[i]); });
}

template <class T> T distance(const T* a, const T* b, int64_t k, T p) {
  if (p == 2) return std::sqrt(squared_distance(a, b, k));
  if (p == 1) return absolute_distance(a, b, k);
  T sum = 0;
  if (p == 0) {
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

template <class T> std::vector<T> squared_norms(const T* a, int64_t rows, int64_t k) {
  std::vector<T> norms(static_cast<size_t>(rows));
  for (int64_t i = 0; i < rows; ++i)
    norms[static_cast<size_t>(i)] =
        sum_of<T>(k, [row = a + i * k](int64_t j) { return row[j] * row[j]; });
  return norms;
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

template <class T>
void pair_distances_by_product(const T* a, const T* b, T* out, int64_t batches, int64_t m,
                               int64_t n, int64_t k) {
  gemm_batched<T>(batches, m, n, k, T(-2), {a, k}, m * k, {b, k, Trans::Yes}, n * k, T(0), out, n,
                  m * n);
  const std::vector<T> norms_a = squared_norms(a, batches * m, k),
                       norms_b = squared_norms(b, batches * n, k);
  const int64_t grain = std::max<int64_t>(1, 16384 / n);
  parallel_for(batches * m, grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t first = row / m * n;
      const T norm = norms_a[static_cast<size_t>(row)], *norms = norms_b.data() + first;
      T* line = out + row * n;
      for (int64_t j = 0; j < n; ++j) {
        const T both = norm + norms[j], square = both + line[j];
        // Where most of the digits cancel, or something is not finite, the differences decide.
        const bool good = square >= both / 32 && std::isfinite(both);
        line[j] = std::sqrt(good ? square : squared_distance(a + row * k, b + (first + j) * k, k));
      }
    }
  });
}

template void pair_distances(const float*, const float*, float*, int64_t, int64_t, int64_t, int64_t,
                             double);
template void pair_distances(const double*, const double*, double*, int64_t, int64_t, int64_t,
                             int64_t, double);
template void pair_distances_by_product(const float*, const float*, float*, int64_t, int64_t,
                                        int64_t, int64_t);
template void pair_distances_by_product(const double*, const double*, double*, int64_t, int64_t,
                                        int64_t, int64_t);

}  // namespace taeda::cpu
