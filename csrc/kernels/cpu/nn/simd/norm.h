// Inner loops of the normalisations. Blocks of terms are summed in T, the blocks in double.
#pragma once

#include "kernels/cpu/simd/pick.h"

namespace taeda::cpu::simd {

constexpr int64_t kColumns = 256;  // the most columns of one call that sums them

template <class T> struct NormLoops {
  // Along n elements.
  double (*sum)(const T* x, int64_t n);
  double (*squares)(const T* x, int64_t n, double mean);  // sum of (x - mean)^2
  // sums[0] = sum of g w, sums[1] = sum of g w (x - mean); w may be null for ones.
  void (*products)(const T* g, const T* w, const T* x, int64_t n, T mean, double* sums);
  // (x - mean) * scale * w + b with w and b an element each, or null; and with one scale and shift
  // for all. `streamed`: y is written by non-temporal stores; each row of it begins at a cache
  // line.
  void (*affine)(const T* x, int64_t n, T mean, T scale, const T* w, const T* b, T* y,
                 bool streamed);
  void (*scale_shift)(const T* x, int64_t n, T mean, T scale, T shift, T* y, bool streamed);
  // gx = scale * g * w - a - (x - mean) * c; w may be null.
  void (*gradient)(const T* g, const T* w, const T* x, int64_t n, T mean, T scale, T a, T c, T* gx,
                   bool streamed);
  // Rows of n elements, each normalised by itself, w null or n elements: gx, and the sums over the
  // rows of g (x - mean) rstd and of g, added to gw and gb. `part` has room for 2 n elements.
  void (*rows_backward)(const T* g, const T* x, const T* w, int64_t rows, int64_t n, bool centered,
                        const T* mean, const T* rstd, T* gx, T* part, double* gw, double* gb,
                        bool streamed);

  // Down `rows` rows that are `step` apart, for `width` columns; at most kColumns where they are
  // summed. The sums start at 0.
  void (*column_sums)(const T* x, int64_t rows, int64_t step, int64_t width, double* sums);
  void (*column_squares)(const T* x, int64_t rows, int64_t step, int64_t width, const double* mean,
                         double* sums);
  void (*column_products)(const T* g, const T* x, int64_t rows, int64_t step, int64_t width,
                          const T* mean, double* sum_g, double* sum_gx);
  void (*column_affine)(const T* x, int64_t rows, int64_t step, int64_t width, const T* mean,
                        const T* scale, const T* shift, T* y);
  void (*column_gradient)(const T* g, const T* x, int64_t rows, int64_t step, int64_t width,
                          const T* mean, const T* scale, const T* a, const T* c, T* gx);
};

TAEDA_TABLES(ForFloats<NormLoops>, norm_kernels)

}  // namespace taeda::cpu::simd
