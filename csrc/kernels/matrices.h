// What surrounds factors: checks, permutations, determinants. As in linalg.h, matrices are stored
// by columns, those of a batch one after the other.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "kernels/linalg.h"

namespace taeda {

template <class T> struct MatrixKernels {
  KernelFn<void(MatrixBatch shape, T* a)> identity;
  // Determinants of n x n matrices from their LU factors; or their signs (of absolute value 1) and
  // the logarithms of their absolute values.
  KernelFn<void(int64_t batch, int64_t n, const T* lu, const int32_t* pivots, T* det)> det;
  KernelFn<void(int64_t batch, int64_t n, const T* lu, const int32_t* pivots, T* sign,
                RealOf<T>* log)>
      slogdet;

  static const MatrixKernels cpu;
};

struct MatrixFailure {
  int64_t matrix;
  int32_t code;
};
struct Halvings {
  int64_t most;
  double largest;
};
struct LinalgKernels {
  // The first `info` that is not 0.
  KernelFn<std::optional<MatrixFailure>(int64_t batch, const int32_t* info)> find_failure;
  // The first of n numbers (float32 or float64) that is NaN or infinite.
  KernelFn<std::optional<int64_t>(DType dtype, int64_t n, const void* x)> find_not_finite;
  // The first of n pivots outside of [1, rows].
  KernelFn<std::optional<int32_t>(int64_t n, int64_t rows, const int32_t* pivots)> find_bad_pivot;
  // The order in which the permutations of k pivots each take rows: row order[i] of a is row i of
  // L U.
  KernelFn<void(int64_t batch, int64_t k, int64_t rows, const int32_t* pivots, int64_t* order)>
      row_order;
  // How often each of n norms is halved until it is at most `bound`, and the factor that does it.
  // Returns how often the largest is, and the largest norm after it. What is not finite stays.
  KernelFn<Halvings(int64_t n, double bound, const double* norm, int64_t* halvings, double* scale)>
      halve;

  static const LinalgKernels cpu;
};

namespace plain {

template <class T> void identity(MatrixBatch s, T* a) {
  const int64_t size = s.rows * s.cols;
  std::fill_n(a, s.count * size, T(0));
  for (int64_t i = 0; i < s.count; ++i) {
    for (int64_t d = 0; d < std::min(s.rows, s.cols); ++d) a[i * size + d * (s.rows + 1)] = T(1);
  }
}

// The upper triangle of a Hermitian matrix from the lower one, in squares that stay in the first
// cache.
template <class T> void mirror(int64_t n, T* x) {
  constexpr int64_t side = 16;
  for (int64_t left = 0; left < n; left += side) {
    for (int64_t top = 0; top <= left; top += side) {
      for (int64_t col = left; col < std::min(left + side, n); ++col) {
        for (int64_t row = top; row < std::min(top + side, col); ++row) {
          const T below = x[row * n + col];
          if constexpr (std::is_floating_point_v<T>) x[col * n + row] = below;
          else x[col * n + row] = std::conj(below);
        }
      }
    }
  }
}

template <class T> void clear_triangle(int64_t n, bool upper, T* x) {
  for (int64_t col = 0; col < n; ++col) {
    T* c = x + col * n;
    if (upper) std::fill_n(c, col, T(0));
    else std::fill(c + col + 1, c + n, T(0));
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

inline std::optional<MatrixFailure> find_failure(int64_t batch, const int32_t* info) {
  for (int64_t i = 0; i < batch; ++i) {
    if (info[i]) return MatrixFailure{i, info[i]};
  }
  return std::nullopt;
}

inline std::optional<int64_t> find_not_finite(DType dtype, int64_t n, const void* x) {
  return visit_floating(dtype, "linalg", [&]<class T>(Tag<T>) -> std::optional<int64_t> {
    const auto* v = static_cast<const T*>(x);
    for (int64_t i = 0; i < n; ++i) {
      if (!std::isfinite(v[i])) [[unlikely]]
        return i;
    }
    return std::nullopt;
  });
}

inline std::optional<int32_t> find_bad_pivot(int64_t n, int64_t rows, const int32_t* pivots) {
  for (int64_t i = 0; i < n; ++i) {
    if (pivots[i] < 1 || pivots[i] > rows) return pivots[i];
  }
  return std::nullopt;
}

inline void row_order(int64_t batch, int64_t k, int64_t rows, const int32_t* pivots,
                      int64_t* order) {
  for (int64_t i = 0; i < batch; ++i, pivots += k, order += rows) {
    std::iota(order, order + rows, 0);
    for (int64_t r = 0; r < k; ++r) std::swap(order[r], order[pivots[r] - 1]);
  }
}

inline Halvings halve(int64_t n, double bound, const double* norm, int64_t* halvings,
                      double* scale) {
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

}  // namespace plain

template <class T>
const MatrixKernels<T> MatrixKernels<T>::cpu = {plain::identity<T>, plain::det<T>,
                                                plain::slogdet<T>};
inline const LinalgKernels LinalgKernels::cpu = {plain::find_failure, plain::find_not_finite,
                                                 plain::find_bad_pivot, plain::row_order,
                                                 plain::halve};

}  // namespace taeda
