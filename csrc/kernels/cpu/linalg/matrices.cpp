// What surrounds factors: checks, permutations, determinants.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/cpu/linalg/lapack_routines.h"

namespace taeda::cpu {
namespace {

template <class T> void identity(MatrixBatch s, T* a) {
  const int64_t size = s.rows * s.cols;
  std::fill_n(a, s.count * size, T(0));
  for (int64_t i = 0; i < s.count; ++i) {
    for (int64_t d = 0; d < std::min(s.rows, s.cols); ++d) a[i * size + d * (s.rows + 1)] = T(1);
  }
}

template <class T>
void det(int64_t batch, int64_t n, const T* lu, const int32_t* pivots, T* result) {
  for (int64_t i = 0; i < batch; ++i) {
    T d(1);
    for (int64_t k = 0; k < n; ++k) {
      d *= lu[(i * n + k) * n + k];
      if (pivots[i * n + k] != k + 1) d = -d;
    }
    result[i] = d;
  }
}

template <class T>
void slogdet(int64_t batch, int64_t n, const T* lu, const int32_t* pivots, T* sign,
             RealOf<T>* log) {
  using R = RealOf<T>;
  for (int64_t i = 0; i < batch; ++i) {
    T s(1);
    R logs(0);
    for (int64_t k = 0; k < n; ++k) {
      const T u = lu[(i * n + k) * n + k];
      const R r = std::abs(u);
      s *= r == R(0) ? T(0) : u / r;
      logs += std::log(r);
      if (pivots[i * n + k] != k + 1) s = -s;
    }
    sign[i] = s;
    log[i] = logs;
  }
}

std::optional<MatrixFailure> find_failure(int64_t batch, const int32_t* info) {
  for (int64_t i = 0; i < batch; ++i) {
    if (info[i]) return MatrixFailure{i, info[i]};
  }
  return std::nullopt;
}

std::optional<int64_t> find_not_finite(DType dtype, int64_t n, const void* x) {
  return visit_floating(dtype, "linalg", [&]<class T>(Tag<T>) -> std::optional<int64_t> {
    const auto* v = static_cast<const T*>(x);
    for (int64_t i = 0; i < n; ++i) {
      if (!std::isfinite(v[i])) [[unlikely]]
        return i;
    }
    return std::nullopt;
  });
}

std::optional<int32_t> find_bad_pivot(int64_t n, int64_t rows, const int32_t* pivots) {
  for (int64_t i = 0; i < n; ++i) {
    if (pivots[i] < 1 || pivots[i] > rows) return pivots[i];
  }
  return std::nullopt;
}

void row_order(int64_t batch, int64_t k, int64_t rows, const int32_t* pivots, int64_t* order) {
  for (int64_t i = 0; i < batch; ++i, pivots += k, order += rows) {
    std::iota(order, order + rows, 0);
    for (int64_t r = 0; r < k; ++r) std::swap(order[r], order[pivots[r] - 1]);
  }
}

Halvings halve(int64_t n, double bound, const double* norm, int64_t* halvings, double* scale) {
  Halvings all{0, 0};
  for (int64_t i = 0; i < n; ++i) {
    const double x = norm[i];
    const int64_t s =
        std::isfinite(x) && x > bound ? static_cast<int64_t>(std::ceil(std::log2(x / bound))) : 0;
    halvings[i] = s;
    scale[i] = std::ldexp(1.0, static_cast<int>(-s));
    all.most = std::max(all.most, s);
    if (std::isfinite(x)) all.largest = std::max(all.largest, x * scale[i]);
  }
  return all;
}

}  // namespace
}  // namespace taeda::cpu

TAEDA_LINALG_TABLE(MatrixKernels, cpu::identity<T>, cpu::det<T>, cpu::slogdet<T>)

const taeda::LinalgKernels taeda::LinalgKernels::cpu = {
    cpu::find_failure, cpu::find_not_finite, cpu::find_bad_pivot, cpu::row_order, cpu::halve};
