// New tensors' values.
#pragma once

#include <complex>
#include <type_traits>

#include "base/half.h"
#include "base/thread_pool.h"
#include "kernels/kernels.h"

namespace taeda {

// Matrices (planes * rows, columns) of elements of `item` bytes. What lies above the diagonal, or
// below it unless `lower`, becomes 0; diagonal 1 is the one above the main one.
struct TriangleShape {
  int64_t all_rows, rows, columns, item, diagonal;
  bool lower;
};

struct CreationKernels {
  // y[i] = start + i * step, wrapping around.
  KernelFn<void(int64_t n, uint64_t start, uint64_t step, uint64_t* y)> range;
  // Null x: y already holds the values.
  KernelFn<void(const TriangleShape& s, const void* x, void* y)> triangle;
  // Row and column of every element of such a triangle, row by row: y[0 .. count) and y[count ..
  // 2 count). `s` is one matrix, of elements that no array needs to hold.
  KernelFn<void(const TriangleShape& s, int64_t count, int64_t* y)> triangle_indices;

  static const CreationKernels cpu;
};

// y[i] = f(i) in host memory, for what no device has a kernel for.
template <class T, class F> void tabulate_values(int64_t n, T* y, F&& f) {
  using Half16 =
      std::integral_constant<bool, std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>>;
  parallel_for(n, 32768, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if constexpr (requires { typename T::value_type; })
        y[i] = T(static_cast<typename T::value_type>(f(i)));
      else if constexpr (Half16::value) y[i] = T(static_cast<float>(f(i)));
      else y[i] = static_cast<T>(f(i));
    }
  });
}

}  // namespace taeda
