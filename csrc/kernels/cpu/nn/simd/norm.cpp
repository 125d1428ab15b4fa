#include "kernels/cpu/nn/simd/norm.h"

#include "kernels/cpu/reduce/simd/row_lanes.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

template <class T> double squares(const T* x, int64_t n, double mean) {
  const T center = static_cast<T>(mean);
  return sum_of<T>(
      n,
      [&](int64_t i) {
        const Lanes<T> d = lanes_at(x + i) - center;
        return d * d;
      },
      [&](int64_t i) { return (x[i] - mean) * (x[i] - mean); });
}

template <class T, bool Weighted>
FN void products(const T* g, const T* w, const T* x, int64_t n, T mean, double* sums) {
  using V = Lanes<T>;
  constexpr int64_t lanes = LanesOf<T>::count;
  double sum_g = 0, sum_x = 0;
  int64_t i = 0;
  while (i + lanes <= n) {
    V sg[2] = {}, sx[2] = {};
    auto add = [&](int64_t at, int k) {
      V u = lanes_at(g + at);
      if constexpr (Weighted) u *= lanes_at(w + at);
      sg[k] += u;
      sx[k] += u * (lanes_at(x + at) - mean);
    };
    const int64_t end = n - i < kSumBlock ? n : i + kSumBlock;
    for (; i + 2 * lanes <= end; i += 2 * lanes) {
      add(i, 0);
      add(i + lanes, 1);
    }
    for (; i + lanes <= end; i += lanes) add(i, 0);
    sg[0] += sg[1];
    sx[0] += sx[1];
    sum_g += add_lanes<double, T, lanes>(sg[0]);
    sum_x += add_lanes<double, T, lanes>(sx[0]);
  }
  for (; i < n; ++i) {
    const double u = Weighted ? static_cast<double>(g[i]) * w[i] : static_cast<double>(g[i]);
    sum_g += u;
    sum_x += u * (x[i] - static_cast<double>(mean));
  }
  sums[0] = sum_g;
  sums[1] = sum_x;
}

template <class T>
void norm_products(const T* g, const T* w, const T* x, int64_t n, T mean, double* sums) {
  w ? products<T, true>(g, w, x, n, mean, sums) : products<T, false>(g, w, x, n, mean, sums);
}

// Also asks for the next row.
template <class T, class F> FN void affine_past(const T* x, int64_t n, T* y, F&& f) {
  constexpr int64_t lanes = LanesOf<T>::count;
  for (int64_t i = 0; i < n; i += lanes) {
    __builtin_prefetch(x + n + i);
    store_past_caches(y + i, f(i));
  }
  fence_stores();
}

template <class T>
void affine(const T* x, int64_t n, T mean, T scale, const T* w, const T* b, T* y, bool past) {
  if (past) {
    auto z = [&](int64_t i) { return (lanes_at(x + i) - mean) * scale; };
    if (w && b)
      affine_past(x, n, y, [&](int64_t i) { return z(i) * lanes_at(w + i) + lanes_at(b + i); });
    else if (w) affine_past(x, n, y, [&](int64_t i) { return z(i) * lanes_at(w + i); });
    else if (b) affine_past(x, n, y, [&](int64_t i) { return z(i) + lanes_at(b + i); });
    else affine_past(x, n, y, z);
    return;
  }
  if (w && b) {
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * scale * w[i] + b[i];
  } else if (w) {
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * scale * w[i];
  } else if (b) {
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * scale + b[i];
  } else {
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * scale;
  }
}

// f(i) are elements i, i + 1, ... as Lanes.
template <class T, class F> FN void store_lines(int64_t n, T* y, F&& f) {
  for (int64_t i = 0; i < n; i += LanesOf<T>::count) store_past_caches(y + i, f(i));
  fence_stores();
}

template <class T>
void scale_shift(const T* x, int64_t n, T mean, T scale, T shift, T* y, bool past) {
  if (past) {
    store_lines(n, y, [&](int64_t i) { return (lanes_at(x + i) - mean) * scale + shift; });
    return;
  }
  for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * scale + shift;
}

template <class T>
void gradient(const T* g, const T* w, const T* x, int64_t n, T mean, T scale, T a, T c, T* gx,
              bool past) {
  if (past && !w) {
    store_lines(n, gx, [&](int64_t i) {
      return scale * lanes_at(g + i) - a - (lanes_at(x + i) - mean) * c;
    });
  } else if (w) {
    for (int64_t i = 0; i < n; ++i) gx[i] = scale * (g[i] * w[i]) - a - (x[i] - mean) * c;
  } else {
    for (int64_t i = 0; i < n; ++i) gx[i] = scale * g[i] - a - (x[i] - mean) * c;
  }
}

// R rows at a time: one pass over their elements for gx and for the sums over rows.
template <class T, int R, bool Weighted>
FN void gradient_of_rows(const T* g, const T* x, const T* w, int64_t n, const T* mean,
                         const T* rstd, const T* a, const T* c, T* gx, T* gw, T* gb) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    T sum_w = 0, sum_b = 0;
    for (int r = 0; r < R; ++r) {
      const T u = g[r * n + i], d = x[r * n + i] - mean[r];
      const T v = Weighted ? u * w[i] : u;
      gx[r * n + i] = rstd[r] * v - a[r] - d * c[r];
      sum_w += u * (d * rstd[r]);
      sum_b += u;
    }
    gw[i] += sum_w;
    gb[i] += sum_b;
  }
}

// The same with gx stored past the caches; also asks for the next rows.
template <class T, int R, bool Weighted>
FN void gradient_of_rows_past(const T* g, const T* x, const T* w, int64_t n, const T* mean,
                              const T* rstd, const T* a, const T* c, T* gx, T* gw, T* gb) {
  constexpr int64_t lanes = LanesOf<T>::count;
  for (int64_t i = 0; i < n; i += lanes) {
    Lanes<T> sum_w{}, sum_b{};
    for (int r = 0; r < R; ++r) {
      const int64_t at = r * n + i;
      __builtin_prefetch(g + R * n + at, 0, 2);
      __builtin_prefetch(x + R * n + at, 0, 2);
      const Lanes<T> u = lanes_at(g + at), d = lanes_at(x + at) - mean[r];
      const Lanes<T> v = Weighted ? u * lanes_at(w + i) : u;
      store_past_caches(gx + at, rstd[r] * v - a[r] - d * c[r]);
      sum_w += u * (d * rstd[r]);
      sum_b += u;
    }
    sum_w += lanes_at(gw + i);
    sum_b += lanes_at(gb + i);
    __builtin_memcpy(gw + i, &sum_w, sizeof sum_w);
    __builtin_memcpy(gb + i, &sum_b, sizeof sum_b);
  }
  fence_stores();
}

template <class T, int R>
FN void some_rows_backward(const T* g, const T* x, const T* w, int64_t n, bool centered,
                           const T* mean, const T* rstd, T* gx, T* gw, T* gb, bool past) {
  T a[R], c[R];
  const double count = static_cast<double>(n);
  for (int r = 0; r < R; ++r) {
    double sums[2];
    norm_products(g + r * n, w, x + r * n, n, mean[r], sums);
    const double scale = rstd[r];
    a[r] = centered ? static_cast<T>(scale * sums[0] / count) : T(0);
    c[r] = static_cast<T>(scale * scale * scale * sums[1] / count);
  }
  if (past && w) gradient_of_rows_past<T, R, true>(g, x, w, n, mean, rstd, a, c, gx, gw, gb);
  else if (past) gradient_of_rows_past<T, R, false>(g, x, w, n, mean, rstd, a, c, gx, gw, gb);
  else if (w) gradient_of_rows<T, R, true>(g, x, w, n, mean, rstd, a, c, gx, gw, gb);
  else gradient_of_rows<T, R, false>(g, x, w, n, mean, rstd, a, c, gx, gw, gb);
}

template <class T>
void rows_backward(const T* g, const T* x, const T* w, int64_t rows, int64_t n, bool centered,
                   const T* mean, const T* rstd, T* gx, T* part, double* gw, double* gb,
                   bool past) {
  constexpr int64_t flush = 32;  // rows that are added up in T
  T* const part_w = part;
  T* const part_b = part + n;
  for (int64_t first = 0; first < rows; first += flush) {
    const int64_t end = rows - first < flush ? rows : first + flush;
    for (int64_t i = 0; i < 2 * n; ++i) part[i] = 0;
    int64_t r = first;
    for (; r + 4 <= end; r += 4) {
      some_rows_backward<T, 4>(g + r * n, x + r * n, w, n, centered, mean + r, rstd + r, gx + r * n,
                               part_w, part_b, past);
    }
    for (; r < end; ++r) {
      some_rows_backward<T, 1>(g + r * n, x + r * n, w, n, centered, mean + r, rstd + r, gx + r * n,
                               part_w, part_b, past);
    }
    for (int64_t i = 0; i < n; ++i) gw[i] += part_w[i];
    for (int64_t i = 0; i < n; ++i) gb[i] += part_b[i];
  }
}

template <class T>
void add_affine_gradient(const T* g, const T* x, int64_t n, T mean, T scale, double* gw,
                         double* gb) {
  const double mu = mean, s = scale;
  for (int64_t i = 0; i < n; ++i) gw[i] += static_cast<double>(g[i]) * (x[i] - mu) * s;
  for (int64_t i = 0; i < n; ++i) gb[i] += g[i];
}

template <int64_t N> struct Rows {
  static constexpr int64_t count = N;
};
// f(first, Rows) for groups of 8 rows, whose sums are taken in T, and for those that are left.
template <class F> FN void row_groups(int64_t rows, F&& f) {
  int64_t r = 0;
  for (; r + 8 <= rows; r += 8) f(r, Rows<8>{});
  for (; r < rows; ++r) f(r, Rows<1>{});
}

template <class T>
void column_sums(const T* x, int64_t rows, int64_t step, int64_t width, double* sums) {
  for (int64_t j = 0; j < width; ++j) sums[j] = 0;
  row_groups(rows, [&](int64_t first, auto group) {
    const T* p = x + first * step;
    for (int64_t j = 0; j < width; ++j) {
      T s = 0;
      for (int64_t r = 0; r < group.count; ++r) s += p[r * step + j];
      sums[j] += s;
    }
  });
}

template <class T>
void column_squares(const T* x, int64_t rows, int64_t step, int64_t width, const double* mean,
                    double* sums) {
  for (int64_t j = 0; j < width; ++j) sums[j] = 0;
  row_groups(rows, [&](int64_t first, auto group) {
    const T* p = x + first * step;
    for (int64_t j = 0; j < width; ++j) {
      const T center = static_cast<T>(mean[j]);
      T s = 0;
      for (int64_t r = 0; r < group.count; ++r)
        s += (p[r * step + j] - center) * (p[r * step + j] - center);
      sums[j] += s;
    }
  });
}

template <class T>
void column_products(const T* g, const T* x, int64_t rows, int64_t step, int64_t width,
                     const T* mean, double* sum_g, double* sum_gx) {
  for (int64_t j = 0; j < width; ++j) sum_g[j] = sum_gx[j] = 0;
  row_groups(rows, [&](int64_t first, auto group) {
    const T *p = g + first * step, *q = x + first * step;
    for (int64_t j = 0; j < width; ++j) {
      T s = 0, sx = 0;
      for (int64_t r = 0; r < group.count; ++r) {
        s += p[r * step + j];
        sx += p[r * step + j] * (q[r * step + j] - mean[j]);
      }
      sum_g[j] += s;
      sum_gx[j] += sx;
    }
  });
}

template <class T>
void column_affine(const T* x, int64_t rows, int64_t step, int64_t width, const T* mean,
                   const T* scale, const T* shift, T* y) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t j = 0; j < width; ++j)
      y[r * step + j] = (x[r * step + j] - mean[j]) * scale[j] + shift[j];
  }
}

template <class T>
void column_gradient(const T* g, const T* x, int64_t rows, int64_t step, int64_t width,
                     const T* mean, const T* scale, const T* a, const T* c, T* gx) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t j = 0; j < width; ++j) {
      gx[r * step + j] = scale[j] * g[r * step + j] - a[j] - (x[r * step + j] - mean[j]) * c[j];
    }
  }
}

template <class T>
constexpr NormLoops<T> norm_loops = {sum<T>,
                                     squares<T>,
                                     norm_products<T>,
                                     affine<T>,
                                     scale_shift<T>,
                                     gradient<T>,
                                     rows_backward<T>,
                                     add_affine_gradient<T>,
                                     column_sums<T>,
                                     column_squares<T>,
                                     column_products<T>,
                                     column_affine<T>,
                                     column_gradient<T>};

}  // namespace

extern constinit const NormKernels norm_kernels = {norm_loops<float>, norm_loops<double>};

}  // namespace taeda::cpu::simd::TAEDA_ISA
