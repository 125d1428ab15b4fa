// Inner loops of softmax and of the normalisations. Sums are kept in a fixed number of
// lanes, whatever an instruction set's width, and longer ones in double.
#pragma once

#include <cstdint>

namespace taeda::cpu::simd {

constexpr int64_t kColumns = 256;  // the most columns that one call below works on side by side

template <class T> struct SoftmaxLoops {
  // `past`: y is so large that it is stored past the caches; each row of it begins a line of
  // theirs.
  using Rows = void (*)(int64_t rows, int64_t size, const T* x, T* y, bool past);
  using Columns = void (*)(int64_t size, int64_t step, int64_t width, const T* x, T* y);
  using RowsBackward = void (*)(int64_t rows, int64_t size, const T* g, const T* y, T* gx,
                                bool past);
  using ColumnsBackward = void (*)(int64_t size, int64_t step, int64_t width, const T* g,
                                   const T* y, T* gx);
  // Rows that lie one after the other; and `width` lines side by side, whose elements are `step`
  // apart.
  struct Pair {
    Rows rows;
    Columns columns;
    RowsBackward rows_backward;
    ColumnsBackward columns_backward;
  };
  Pair softmax, log_softmax;
  // stats[2 r], stats[2 r + 1]: the largest m of row r, and the sum of exp(x - m).
  void (*entropy_stats)(int64_t rows, int64_t size, const T* x, double* stats);
  // y = scale * softmax(x) of one row with these stats. Here y may begin anywhere.
  void (*scaled_softmax)(const T* x, int64_t size, const double* stats, double scale, T* y,
                         bool past);
};

template <class T> struct NormLoops {
  // Along n elements.
  double (*sum)(const T* x, int64_t n);
  double (*squares)(const T* x, int64_t n, double mean);  // sum of (x - mean)^2
  // sums[0] = sum of g w, sums[1] = sum of g w (x - mean); w may be null for ones.
  void (*products)(const T* g, const T* w, const T* x, int64_t n, T mean, double* sums);
  // (x - mean) * scale * w + b with w and b an element each, or null; and with one scale and shift
  // for all. `past` as in SoftmaxLoops.
  void (*affine)(const T* x, int64_t n, T mean, T scale, const T* w, const T* b, T* y, bool past);
  void (*scale_shift)(const T* x, int64_t n, T mean, T scale, T shift, T* y, bool past);
  // gx = scale * g * w - a - (x - mean) * c; w may be null.
  void (*gradient)(const T* g, const T* w, const T* x, int64_t n, T mean, T scale, T a, T c, T* gx,
                   bool past);
  // Rows of n elements, each normalised by itself, w null or n elements: gx, and the sums over the
  // rows of g (x - mean) rstd and of g, added to gw and gb. `part` has room for 2 n elements.
  void (*rows_backward)(const T* g, const T* x, const T* w, int64_t rows, int64_t n, bool centered,
                        const T* mean, const T* rstd, T* gx, T* part, double* gw, double* gb,
                        bool past);
  // gw += g (x - mean) scale, gb += g, element by element.
  void (*add_affine_gradient)(const T* g, const T* x, int64_t n, T mean, T scale, double* gw,
                              double* gb);

  // Down `rows` rows that are `step` apart, for `width` (at most kColumns) columns at once. The
  // sums start at 0.
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

struct RowKernels {
  SoftmaxLoops<float> softmax_f32;
  SoftmaxLoops<double> softmax_f64;
  NormLoops<float> norm_f32;
  NormLoops<double> norm_f64;
};

namespace v2 {
extern const RowKernels row_kernels;
}
namespace v3 {
extern const RowKernels row_kernels;
}
namespace v4 {
extern const RowKernels row_kernels;
}
namespace base {
extern const RowKernels row_kernels;
}

}  // namespace taeda::cpu::simd
