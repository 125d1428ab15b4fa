#include "kernels/cpu/simd/rows.h"

#include "kernels/cpu/simd/lanes.h"
#include "kernels/functors_scalar.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

using taeda::TAEDA_ISA::exp;
using taeda::TAEDA_ISA::exp_or_zero;
using taeda::TAEDA_ISA::exp_power;

// ---- sums in lanes
// -------------------------------------------------------------------------------------------------

// Where many terms make a sum, a block of them is added up in T, in 64 bytes' worth of lanes, and
// the blocks in double.
constexpr int64_t kSumBlock = 512;
template <class T> struct LanesOf {
  static constexpr int64_t count = 64 / sizeof(T);
  typedef T type __attribute__((vector_size(64), aligned(sizeof(T)), may_alias));
};
template <class T> using Lanes = typename LanesOf<T>::type;
template <class T> constexpr T kMost = static_cast<T>(sizeof(T) == 4 ? __FLT_MAX__ : __DBL_MAX__);

// The sum of f(i), which gives elements i, i + 1, ... as Lanes, and of g(i), which gives one.
template <class T, class F, class G> FN double sum_of(int64_t n, F&& f, G&& g) {
  constexpr int64_t lanes = LanesOf<T>::count;
  double sum = 0;
  int64_t i = 0;
  while (i + lanes <= n) {
    Lanes<T> s[4] = {};
    const int64_t end = n - i < kSumBlock ? n : i + kSumBlock;
    for (; i + 4 * lanes <= end; i += 4 * lanes) {
      for (int k = 0; k < 4; ++k) s[k] += f(i + k * lanes);
    }
    for (; i + lanes <= end; i += lanes) s[0] += f(i);
    s[0] = (s[0] + s[1]) + (s[2] + s[3]);
    sum += add_lanes<double, T, lanes>(s[0]);
  }
  for (; i < n; ++i) sum += g(i);
  return sum;
}
template <class T> FN const Lanes<T>& lanes_at(const T* x) {
  return *reinterpret_cast<const Lanes<T>*>(x);
}

template <class T> double sum(const T* x, int64_t n) {
  return sum_of<T>(
      n, [&](int64_t i) { return lanes_at(x + i); }, [&](int64_t i) { return double{x[i]}; });
}

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

template <class T> double dot(const T* a, const T* b, int64_t n) {
  return sum_of<T>(
      n, [&](int64_t i) { return lanes_at(a + i) * lanes_at(b + i); },
      [&](int64_t i) { return static_cast<double>(a[i]) * b[i]; });
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

// Asks for n elements that will be read soon.
template <class T> FN void ask_for(const T* x, int64_t n) {
  for (int64_t i = 0; i < n; i += LanesOf<T>::count) __builtin_prefetch(x + i);
}

// NaN is passed over: it comes back through the exponentials.
template <class T> FN T largest(const T* x, int64_t n) {
  using V = Lanes<T>;
  constexpr int64_t lanes = LanesOf<T>::count;
  T best = -static_cast<T>(__builtin_inf());
  int64_t i = 0;
  if (n >= lanes) {
    V m[4];
    for (V& v : m) v = best - V{};
    auto take = [&](int64_t at, int k) {
      const V& v = lanes_at(x + at);
      m[k] = v > m[k] ? v : m[k];
    };
    for (; i + 4 * lanes <= n; i += 4 * lanes) {
      for (int k = 0; k < 4; ++k) take(i + k * lanes, k);
    }
    for (; i + lanes <= n; i += lanes) take(i, 0);
    for (int k = 1; k < 4; ++k) m[0] = m[k] > m[0] ? m[k] : m[0];
    best = fold_lanes<T, lanes>(m[0], [](auto a, auto b) { return b > a ? b : a; });
  }
  for (; i < n; ++i) best = x[i] > best ? x[i] : best;
  return best;
}

// exp_or_zero of each lane.
FN Narrow<float, 16>::type exp_lanes(Narrow<float, 16>::type x) {
  using F = Narrow<float, 16>::type;
  using U = Narrow<uint32_t, 16>::type;
  U bits;
#if defined(__AVX512F__)
  const F q = exp_power(x, bits), n = (F)(bits + 0x4b400001u) - 12582913.0f;
  const __mmask16 counts = _mm512_cmp_ps_mask(n, F{} - 127.0f, _CMP_NLE_UQ);  // NaN too
  return (F)_mm512_maskz_scalef_ps(counts, q, n);
#else
  using I = Narrow<int32_t, 16>::type;
  const F q = exp_power(x < -1000.0f ? F{} - 1000.0f : x, bits);
  const I n = (I)(bits + 127u);
  return q * (F)((U)(n > 0 ? n : I{}) << 23);
#endif
}
FN Narrow<double, 8>::type exp_lanes(Narrow<double, 8>::type x) {
  double e[8];
  for (int j = 0; j < 8; ++j) e[j] = exp(x[j]);
  __builtin_memcpy(&x, e, sizeof x);
  return x;
}

// ---- softmax
// -------------------------------------------------------------------------------------------------------

template <class T> FN void exp_and_sum(const T* x, int64_t n, T center, T* e, double& total) {
  total += sum_of<T>(
      n,
      [&](int64_t i) {
        const auto v = exp_lanes(lanes_at(x + i) - center);
        __builtin_memcpy(e + i, &v, sizeof v);
        return v;
      },
      [&](int64_t i) { return double{e[i] = exp_or_zero(x[i] - center)}; });
}

// One block more of a row. `most` is the largest element so far, `center` what was taken from the
// block's elements: that, or any number where there are only minus infinities.
template <class T> FN void next_block(const T* x, int64_t n, T& most, T& center, double& total) {
  const T best = largest(x, n);
  if (best > most) {
    total *= __builtin_exp(static_cast<double>(most) - static_cast<double>(best));
    most = best;
  }
  center = most < -kMost<T> ? -kMost<T> : most;
}

// The largest of a row, and the sum of exp(x - largest), in one pass through memory.
template <class T> FN void max_and_sum(const T* x, int64_t n, T& most, double& total) {
  constexpr int64_t ahead = 2 * kSumBlock;
  most = -static_cast<T>(__builtin_inf());
  total = 0;
  for (int64_t begin = 0; begin < n; begin += kSumBlock) {
    const int64_t m = n - begin < kSumBlock ? n - begin : kSumBlock;
    const T* p = x + begin;
    T center;
    next_block(p, m, most, center, total);
    ask_for(p + ahead, kSumBlock);
    total += sum_of<T>(
        m, [&](int64_t i) { return exp_lanes(lanes_at(p + i) - center); },
        [&](int64_t i) { return double{exp_or_zero(p[i] - center)}; });
  }
}

// Large results, vector by vector: while the exponentials of one row are computed, the row before
// is stored, whose exponentials were held back in the places of these, and the next row's largest
// element is found.
constexpr int64_t kHeld = 8192;  // elements of a row that are held back
template <class T> void softmax_rows_past(int64_t rows, int64_t size, const T* x, T* y) {
  constexpr int64_t lanes = LanesOf<T>::count, ahead = 4 * kSumBlock;
  // Half a page away from x within the pages: where their addresses end alike, the processor lets
  // what it reads wait for what it wrote.
  constexpr uintptr_t page = 4096;
  alignas(page) char memory[kHeld * sizeof(T) + page];
  T* held =
      reinterpret_cast<T*>(memory + (reinterpret_cast<uintptr_t>(x) + page / 2) % page / 64 * 64);
  for (int64_t i = 0; i < size; ++i) held[i] = 0;  // what the first row stores, and overwrites
  T before = 0, most = largest(x, size);
  for (int64_t r = 0; r < rows; ++r) {
    const T* p = x + r * size;
    const T* next = r + 1 < rows ? p + size : p;
    T* to = r > 0 ? y + (r - 1) * size : y;
    Lanes<T> best = Lanes<T>{} - static_cast<T>(__builtin_inf());
    const double total = sum_of<T>(
        size,
        [&](int64_t i) {
          __builtin_prefetch(next + i + ahead, 0, 2);
          best = lanes_at(next + i) > best ? lanes_at(next + i) : best;
          const auto e = exp_lanes(lanes_at(p + i) - most);
          store_past_caches(to + i, lanes_at(held + i) * before);
          __builtin_memcpy(held + i, &e, sizeof e);
          return e;
        },
        [](int64_t) { return 0.0; });
    before = static_cast<T>(1.0 / total);
    most = fold_lanes<T, lanes>(best, [](auto a, auto b) { return b > a ? b : a; });
  }
  for (int64_t i = 0; i < size; i += lanes)
    store_past_caches(y + (rows - 1) * size + i, lanes_at(held + i) * before);
  fence_stores();
}

// Of log_softmax nothing is held back.
template <class T, bool Store, bool Take>
FN void log_softmax_row_past(const T* x, int64_t size, T* y, T& most, T& shift) {
  constexpr int64_t ahead = 4 * kSumBlock;
  T best = -static_cast<T>(__builtin_inf());
  double total = 0;
  for (int64_t begin = 0; begin < size; begin += kSumBlock) {
    const int64_t n = size - begin < kSumBlock ? size - begin : kSumBlock;
    const T* p = x + begin;
    T* to = y + begin - size;
    T center;
    if constexpr (Take) next_block(p, n, best, center, total);
    total += sum_of<T>(
        n,
        [&](int64_t i) {
          Lanes<T> e{};
          if constexpr (Take) {
            __builtin_prefetch(p + i + ahead, 0, 2);
            e = exp_lanes(lanes_at(p + i) - center);
          }
          if constexpr (Store) store_past_caches(to + i, lanes_at(p - size + i) - most - shift);
          return e;
        },
        [](int64_t) { return 0.0; });
  }
  most = best;
  shift = static_cast<T>(__builtin_log(total));
}
template <class T> void log_softmax_rows_past(int64_t rows, int64_t size, const T* x, T* y) {
  T most = 0, shift = 0;
  log_softmax_row_past<T, false, true>(x, size, y, most, shift);
  for (int64_t r = 1; r < rows; ++r)
    log_softmax_row_past<T, true, true>(x + r * size, size, y + r * size, most, shift);
  log_softmax_row_past<T, true, false>(x + rows * size, size, y + rows * size, most, shift);
  fence_stores();
}

template <class T> void softmax_rows(int64_t rows, int64_t size, const T* x, T* y, bool past) {
  if (past && size <= kHeld) {
    softmax_rows_past(rows, size, x, y);
    return;
  }
  for (int64_t r = 0; r < rows; ++r, x += size, y += size) {
    double total = 0;
    exp_and_sum(x, size, largest(x, size), y, total);
    const T scale = static_cast<T>(1.0 / total);
    for (int64_t i = 0; i < size; ++i) y[i] *= scale;
  }
}

template <class T> void log_softmax_rows(int64_t rows, int64_t size, const T* x, T* y, bool past) {
  if (past) {
    log_softmax_rows_past(rows, size, x, y);
    return;
  }
  for (int64_t r = 0; r < rows; ++r, x += size, y += size) {
    T m;
    double total;
    max_and_sum(x, size, m, total);
    const T shift = static_cast<T>(__builtin_log(total));
    for (int64_t i = 0; i < size; ++i) y[i] = x[i] - m - shift;
  }
}

// ---- cross entropy: what a row needs of its softmax, and the softmax scaled

template <class T> void entropy_stats(int64_t rows, int64_t size, const T* x, double* stats) {
  for (int64_t r = 0; r < rows; ++r, x += size, stats += 2) {
    T m;
    max_and_sum(x, size, m, stats[1]);
    stats[0] = m;
  }
}

template <class T>
void scaled_softmax(const T* x, int64_t size, const double* stats, double scale, T* y, bool past) {
  constexpr int64_t lanes = LanesOf<T>::count, ahead = 1024;
  const T m = static_cast<T>(stats[0]), factor = static_cast<T>(scale / stats[1]);
  int64_t i = 0;
  if (past) {
    for (; i < size && reinterpret_cast<uintptr_t>(y + i) % 64 != 0; ++i)
      y[i] = exp_or_zero(x[i] - m) * factor;
    for (; i + lanes <= size; i += lanes) {
      __builtin_prefetch(x + i + ahead);
      store_past_caches(y + i, exp_lanes(lanes_at(x + i) - m) * factor);
    }
    fence_stores();
  }
  for (; i < size; ++i) y[i] = exp_or_zero(x[i] - m) * factor;
}

// gx[i] = f(i), a block at a time past the caches.
template <class T, class F> FN void put_past(int64_t n, T* gx, F&& f) {
  constexpr int64_t lanes = LanesOf<T>::count;
  alignas(64) T some[kSumBlock];
  for (int64_t begin = 0; begin < n; begin += kSumBlock) {
    const int64_t m = n - begin < kSumBlock ? n - begin : kSumBlock;
    for (int64_t i = 0; i < m; ++i) some[i] = f(begin + i);
    for (int64_t i = 0; i < m; i += lanes) store_past_caches(gx + begin + i, lanes_at(some + i));
  }
  fence_stores();
}

template <class T>
void softmax_rows_backward(int64_t rows, int64_t size, const T* g, const T* y, T* gx, bool past) {
  for (int64_t r = 0; r < rows; ++r, g += size, y += size, gx += size) {
    const T d = static_cast<T>(dot(g, y, size));
    auto slope = [&](int64_t i) { return y[i] * (g[i] - d); };
    if (past) {
      put_past(size, gx, slope);
      continue;
    }
    for (int64_t i = 0; i < size; ++i) gx[i] = slope(i);
  }
}

template <class T>
void log_softmax_rows_backward(int64_t rows, int64_t size, const T* g, const T* y, T* gx,
                               bool past) {
  for (int64_t r = 0; r < rows; ++r, g += size, y += size, gx += size) {
    const T t = static_cast<T>(sum(g, size));
    auto slope = [&](int64_t i) { return g[i] - exp(y[i]) * t; };
    if (past) {
      put_past(size, gx, slope);
      continue;
    }
    for (int64_t i = 0; i < size; ++i) gx[i] = slope(i);
  }
}

template <class T>
FN void column_maxima(int64_t size, int64_t step, int64_t width, const T* x, T* best) {
  for (int64_t j = 0; j < width; ++j) best[j] = -static_cast<T>(__builtin_inf());
  for (int64_t k = 0; k < size; ++k) {
    for (int64_t j = 0; j < width; ++j)
      best[j] = x[k * step + j] > best[j] ? x[k * step + j] : best[j];
  }
}

// total[j] = sum of f(k, j), which may also keep the terms, over all k.
template <class T, class F> FN void sum_columns(int64_t size, int64_t width, double* total, F&& f) {
  constexpr int64_t group = 32;  // terms that are added up in T
  T part[kColumns];
  for (int64_t j = 0; j < width; ++j) total[j] = 0;
  for (int64_t first = 0; first < size; first += group) {
    const int64_t end = size - first < group ? size : first + group;
    for (int64_t j = 0; j < width; ++j) part[j] = 0;
    for (int64_t k = first; k < end; ++k) {
#pragma GCC ivdep
      for (int64_t j = 0; j < width; ++j) part[j] += f(k, j);
    }
    for (int64_t j = 0; j < width; ++j) total[j] += part[j];
  }
}

template <class T>
void softmax_columns(int64_t size, int64_t step, int64_t width, const T* x, T* y) {
  T best[kColumns], scale[kColumns];
  double total[kColumns];
  column_maxima(size, step, width, x, best);
  sum_columns<T>(size, width, total, [&](int64_t k, int64_t j) {
    return y[k * step + j] = exp_or_zero(x[k * step + j] - best[j]);
  });
  for (int64_t j = 0; j < width; ++j) scale[j] = static_cast<T>(1.0 / total[j]);
  for (int64_t k = 0; k < size; ++k) {
    for (int64_t j = 0; j < width; ++j) y[k * step + j] *= scale[j];
  }
}

template <class T>
void log_softmax_columns(int64_t size, int64_t step, int64_t width, const T* x, T* y) {
  T best[kColumns], shift[kColumns];
  double total[kColumns];
  column_maxima(size, step, width, x, best);
  sum_columns<T>(size, width, total,
                 [&](int64_t k, int64_t j) { return exp_or_zero(x[k * step + j] - best[j]); });
  for (int64_t j = 0; j < width; ++j) shift[j] = static_cast<T>(__builtin_log(total[j]));
  for (int64_t k = 0; k < size; ++k) {
    for (int64_t j = 0; j < width; ++j) y[k * step + j] = x[k * step + j] - best[j] - shift[j];
  }
}

template <class T>
void softmax_columns_backward(int64_t size, int64_t step, int64_t width, const T* g, const T* y,
                              T* gx) {
  double total[kColumns] = {};
  for (int64_t k = 0; k < size; ++k) {
    for (int64_t j = 0; j < width; ++j)
      total[j] += static_cast<double>(g[k * step + j]) * y[k * step + j];
  }
  for (int64_t k = 0; k < size; ++k) {
    for (int64_t j = 0; j < width; ++j) {
      gx[k * step + j] = y[k * step + j] * (g[k * step + j] - static_cast<T>(total[j]));
    }
  }
}

template <class T>
void log_softmax_columns_backward(int64_t size, int64_t step, int64_t width, const T* g, const T* y,
                                  T* gx) {
  double total[kColumns] = {};
  for (int64_t k = 0; k < size; ++k) {
    for (int64_t j = 0; j < width; ++j) total[j] += g[k * step + j];
  }
  for (int64_t k = 0; k < size; ++k) {
    for (int64_t j = 0; j < width; ++j) {
      gx[k * step + j] = g[k * step + j] - exp(y[k * step + j]) * static_cast<T>(total[j]);
    }
  }
}

// ---- normalisation
// -------------------------------------------------------------------------------------------------

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
constexpr SoftmaxLoops<T> softmax_loops = {
    {softmax_rows<T>, softmax_columns<T>, softmax_rows_backward<T>, softmax_columns_backward<T>},
    {log_softmax_rows<T>, log_softmax_columns<T>, log_softmax_rows_backward<T>,
     log_softmax_columns_backward<T>},
    entropy_stats<T>,
    scaled_softmax<T>};

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

extern constinit const RowKernels row_kernels = {softmax_loops<float>, softmax_loops<double>,
                                                 norm_loops<float>, norm_loops<double>};

}  // namespace taeda::cpu::simd::TAEDA_ISA
