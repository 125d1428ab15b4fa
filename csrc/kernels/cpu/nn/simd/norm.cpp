#include "kernels/cpu/nn/simd/norm.h"

#include "kernels/cpu/reduce/simd/rows.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

// ---- along rows ----

template <class T> double row_sum(const T* x, int64_t n) { return sum(x, n); }

template <class T> double squares(const T* x, int64_t n, double mean) {
  const T center = static_cast<T>(mean);
  return sum_over<T>(n, [&](int64_t i, auto lanes) {
    const auto d = load<lanes>(x + i) - center;
    return d * d;
  });
}

template <class T>
void products(const T* g, const T* w, const T* x, int64_t n, T mean, double* sums) {
  sums_over<T, 2>(n, sums, [&](int64_t i, auto lanes, auto* term) {
    auto u = load<lanes>(g + i);
    if (w) u *= load<lanes>(w + i);
    term[0] = u;
    term[1] = u * (load<lanes>(x + i) - mean);
  });
}

template <class T>
void affine(const T* x, int64_t n, T mean, T scale, const T* w, const T* b, T* y, bool streamed) {
  map_row(n, y, streamed, [&](int64_t i, auto lanes) {
    if (streamed) prefetch<3>(x + n + i);  // the next row
    auto z = (load<lanes>(x + i) - mean) * scale;
    if (w) z *= load<lanes>(w + i);
    if (b) z += load<lanes>(b + i);
    return z;
  });
  if (streamed) stream_fence();
}

template <class T>
void scale_shift(const T* x, int64_t n, T mean, T scale, T shift, T* y, bool streamed) {
  map_row(n, y, streamed,
          [&](int64_t i, auto lanes) { return (load<lanes>(x + i) - mean) * scale + shift; });
  if (streamed) stream_fence();
}

template <class T>
void gradient(const T* g, const T* w, const T* x, int64_t n, T mean, T scale, T a, T c, T* gx,
              bool streamed) {
  map_row(n, gx, streamed, [&](int64_t i, auto lanes) {
    auto u = load<lanes>(g + i);
    if (w) u *= load<lanes>(w + i);
    return scale * u - a - (load<lanes>(x + i) - mean) * c;
  });
  if (streamed) stream_fence();
}

// The gradients of R rows in one pass over their elements, once the sums over each row are known.
// (Four rows at a time would contend for the same sets of the first cache.)
template <class T, int R>
FN void rows_gradient(const T* g, const T* x, const T* w, int64_t n, bool centered, const T* mean,
                      const T* rstd, T* gx, T* gw, T* gb, bool streamed) {
  T a[R], c[R];
  const double count = static_cast<double>(n);
  for (int r = 0; r < R; ++r) {
    double sums[2];
    products(g + r * n, w, x + r * n, n, mean[r], sums);
    const double scale = rstd[r];
    a[r] = centered ? static_cast<T>(scale * sums[0] / count) : T(0);
    c[r] = static_cast<T>(scale * scale * scale * sums[1] / count);
  }
  // A cache line of each row at a time: of several rows, parts of lines would leave the processor's
  // buffers for non-temporal stores half filled.
  auto columns = [&](int64_t i, auto lanes, auto vectors) {
    using V = Vec<T, lanes>;
    V sum_w[vectors], sum_b[vectors];
    for (int k = 0; k < vectors; ++k) {
      sum_w[k] = load<lanes>(gw + i + k * lanes);
      sum_b[k] = load<lanes>(gb + i + k * lanes);
    }
    for (int r = 0; r < R; ++r) {
      if (streamed) {
        prefetch(g + (R + r) * n + i);
        prefetch(x + (R + r) * n + i);
      }
      for (int k = 0; k < vectors; ++k) {
        const int64_t column = i + k * lanes, at = r * n + column;
        const V u = load<lanes>(g + at), d = load<lanes>(x + at) - mean[r];
        const V weighted = w ? u * load<lanes>(w + column) : u;
        const V v = rstd[r] * weighted - a[r] - d * c[r];
        if (streamed) stream(gx + at, v);
        else store(gx + at, v);
        sum_w[k] += u * (d * rstd[r]);
        sum_b[k] += u;
      }
    }
    for (int k = 0; k < vectors; ++k) {
      store(gw + i + k * lanes, sum_w[k]);
      store(gb + i + k * lanes, sum_b[k]);
    }
  };
  constexpr int64_t line = kCacheLine / static_cast<int64_t>(sizeof(T)), lanes = kLanes<T>;
  int64_t i = 0;
  for (; i + line <= n; i += line) columns(i, Lanes<lanes>{}, Lanes<line / lanes>{});
  for (; i < n; ++i) columns(i, Lanes<1>{}, Lanes<1>{});
}

template <class T>
void rows_backward(const T* g, const T* x, const T* w, int64_t rows, int64_t n, bool centered,
                   const T* mean, const T* rstd, T* gx, T* part, double* gw, double* gb,
                   bool streamed) {
  constexpr int64_t flush = 32;  // rows that are added up in T
  T* const part_w = part;
  T* const part_b = part + n;
  for (int64_t first = 0; first < rows; first += flush) {
    const int64_t end = rows - first < flush ? rows : first + flush;
    for (int64_t i = 0; i < 2 * n; ++i) part[i] = 0;
    int64_t r = first;
    auto run = [&]<int R>() {
      for (; r + R <= end; r += R) {
        rows_gradient<T, R>(g + r * n, x + r * n, w, n, centered, mean + r, rstd + r, gx + r * n,
                            part_w, part_b, streamed);
      }
    };
    run.template operator()<2>();
    run.template operator()<1>();
    for (int64_t i = 0; i < n; ++i) gw[i] += part_w[i];
    for (int64_t i = 0; i < n; ++i) gb[i] += part_b[i];
  }
  if (streamed) stream_fence();
}

// ---- down columns ----

template <class T>
void column_sums(const T* x, int64_t rows, int64_t step, int64_t width, double* sums) {
  sum_columns<T, 1>(rows, width, {sums}, [&](int64_t r, int64_t j, auto lanes, auto* term) {
    *term = load<lanes>(x + r * step + j);
  });
}

template <class T>
void column_squares(const T* x, int64_t rows, int64_t step, int64_t width, const double* mean,
                    double* sums) {
  T center[kColumns];
  for (int64_t j = 0; j < width; ++j) center[j] = static_cast<T>(mean[j]);
  sum_columns<T, 1>(rows, width, {sums}, [&](int64_t r, int64_t j, auto lanes, auto* term) {
    const auto d = load<lanes>(x + r * step + j) - load<lanes>(center + j);
    *term = d * d;
  });
}

template <class T>
void column_products(const T* g, const T* x, int64_t rows, int64_t step, int64_t width,
                     const T* mean, double* sum_g, double* sum_gx) {
  sum_columns<T, 2>(rows, width, {sum_g, sum_gx},
                    [&](int64_t r, int64_t j, auto lanes, auto* term) {
                      term[0] = load<lanes>(g + r * step + j);
                      term[1] = term[0] * (load<lanes>(x + r * step + j) - load<lanes>(mean + j));
                    });
}

template <class T>
void column_affine(const T* x, int64_t rows, int64_t step, int64_t width, const T* mean,
                   const T* scale, const T* shift, T* y) {
  map_columns(rows, step, width, y, [&](int64_t r, int64_t j, auto lanes) {
    return (load<lanes>(x + r * step + j) - load<lanes>(mean + j)) * load<lanes>(scale + j) +
           load<lanes>(shift + j);
  });
}

template <class T>
void column_gradient(const T* g, const T* x, int64_t rows, int64_t step, int64_t width,
                     const T* mean, const T* scale, const T* a, const T* c, T* gx) {
  map_columns(rows, step, width, gx, [&](int64_t r, int64_t j, auto lanes) {
    return load<lanes>(scale + j) * load<lanes>(g + r * step + j) - load<lanes>(a + j) -
           (load<lanes>(x + r * step + j) - load<lanes>(mean + j)) * load<lanes>(c + j);
  });
}

template <class T>
constexpr NormLoops<T> norm_loops = {row_sum<T>,         squares<T>,       products<T>,
                                     affine<T>,          scale_shift<T>,   gradient<T>,
                                     rows_backward<T>,   column_sums<T>,   column_squares<T>,
                                     column_products<T>, column_affine<T>, column_gradient<T>};

}  // namespace

extern constinit const ForFloats<NormLoops> norm_kernels = {norm_loops<float>, norm_loops<double>};

}  // namespace taeda::cpu::simd::TAEDA_ISA
