// The inner loop of convolution where channels lie side by side: some rows of the left side, each a
// constant step after the one before, times a panel of columns, with the sums in registers.
#pragma once

#include <cstdint>

#include "kernels/cpu/simd/pick.h"

namespace taeda::cpu::simd {

// c[r * c_row + j] = (start ? start[j] : c[r * c_row + j]) + the sum, over runs i < runs and p <
// count, of a[a_at[i] + r * a_row + p * a_step] * b[b_at[i] + p * b_step + j].
template <class T> struct RunProduct {
  int64_t runs, count;
  const T* a;
  const int64_t* a_at;
  int64_t a_row, a_step;
  const T* b;
  const int64_t* b_at;
  int64_t b_step;
  const T* start;
  T* c;
  int64_t c_row;
};

template <class T> struct NhwcLoops {
  int64_t widths[3];  // of panels, the widest first
  int64_t rows[3];    // the most of one product, for each of them
  using Product = void (*)(int64_t rows, const RunProduct<T>& x);
  Product product[3];  // for each of them
};

struct NhwcKernels {
  NhwcLoops<float> f32;
  NhwcLoops<double> f64;
};

TAEDA_TABLES(NhwcKernels, nhwc_kernels)

}  // namespace taeda::cpu::simd
