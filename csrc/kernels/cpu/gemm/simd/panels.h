// The inner loops of our matrix products: some rows of the left side, read where they lie or from a
// copy, times a panel of columns of the right side, with the sums in registers.
#pragma once

#include <cstdint>

namespace taeda::cpu::simd {

// What becomes of the sums s: c[r, j] = alpha * s + (start ? start[j] : of_rows ? of_rows[r] : beta
// * c[r, j]); c is not read where beta is 0.
template <class T> struct Finish {
  T alpha, beta;
  const T* start = nullptr;
  const T* of_rows = nullptr;
};

template <class T> struct PanelLoops {
  int64_t rows;  // the most of one product
  int64_t half;  // columns of a narrow panel; a wide one has twice as many

  // s[r, j] = sum over p < k of a[r * a_row + p * a_step] * b[p * b_row + j], for r < m <= rows and
  // the columns of a wide or a narrow panel. An element is summed in the same order in all of them.
  void (*product)(int64_t k, int64_t m, bool wide, const T* a, int64_t a_row, int64_t a_step,
                  const T* b, int64_t b_row, Finish<T> finish, T* c, int64_t ldc);
  // m rows of x', as groups of `rows` of them (the last one may have fewer): to[group][p][r] =
  // x[p * stride + group * rows + r].
  void (*copy_rows)(int64_t k, int64_t m, const T* x, int64_t stride, T* to);
  // to[p][j] = x[p * stride + j] for j < n, and zero up to the panel's width.
  void (*copy_panel)(int64_t k, int64_t n, bool wide, const T* x, int64_t stride, T* to);
};

struct PanelKernels {
  PanelLoops<float> f32;
  PanelLoops<double> f64;
};

namespace v2 {
extern const PanelKernels panel_kernels;
}
namespace v3 {
extern const PanelKernels panel_kernels;
}
namespace v4 {
extern const PanelKernels panel_kernels;
}
namespace base {
extern const PanelKernels panel_kernels;
}

}  // namespace taeda::cpu::simd
