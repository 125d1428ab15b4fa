#include "kernels/cpu/nn/simd/softmax.h"

#include "kernels/cpu/reduce/simd/row_lanes.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

using taeda::TAEDA_ISA::exp;
using taeda::TAEDA_ISA::exp_or_zero;
using taeda::TAEDA_ISA::exp_power;

template <class T> constexpr T kMost = static_cast<T>(sizeof(T) == 4 ? __FLT_MAX__ : __DBL_MAX__);

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

template <class T> double dot(const T* a, const T* b, int64_t n) {
  return sum_of<T>(
      n, [&](int64_t i) { return lanes_at(a + i) * lanes_at(b + i); },
      [&](int64_t i) { return static_cast<double>(a[i]) * b[i]; });
}

// The same for sums of such exponentials, to which small ones need not contribute all their digits:
// 2^(n + j / 16) from a register of 16 powers, and a short polynomial.
#if defined(__AVX512F__)
FN Narrow<float, 16>::type exp_summand(Narrow<float, 16>::type x) {
  using F = Narrow<float, 16>::type;
  constexpr __mmask16 all = 0xffff;
  constexpr F powers = {1.0f,        1.04427378f, 1.09050773f, 1.13878863f,
                        1.18920712f, 1.24185781f, 1.29683955f, 1.35425555f,
                        1.41421356f, 1.47682615f, 1.54221083f, 1.61049033f,
                        1.68179283f, 1.75625216f, 1.83400809f, 1.91520656f};
  x = (F)_mm512_maskz_max_ps(all, (__m512)(F{} - 200.0f), (__m512)x);  // keeps NaN
  const F shifted = x * 23.0831207f + 12582912.0f, k = shifted - 12582912.0f;
  const F r = x * 23.0831207f - k;
  const F p = (r * 1.3551e-5f + 9.3843e-4f) * r + 4.33216988e-2f;
  const F power = (F)_mm512_maskz_permutexvar_ps(all, (__m512i)shifted, (__m512)powers);
  return (F)_mm512_maskz_scalef_ps(all, (__m512)(power * r * p + power), (__m512)(k * 0.0625f));
}
#else
FN Narrow<float, 16>::type exp_summand(Narrow<float, 16>::type x) { return exp_lanes(x); }
#endif
FN Narrow<double, 8>::type exp_summand(Narrow<double, 8>::type x) { return exp_lanes(x); }

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
        m, [&](int64_t i) { return exp_summand(lanes_at(p + i) - center); },
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
            e = exp_summand(lanes_at(p + i) - center);
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
  T part[kSoftmaxColumns];
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
  T best[kSoftmaxColumns], scale[kSoftmaxColumns];
  double total[kSoftmaxColumns];
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
  T best[kSoftmaxColumns], shift[kSoftmaxColumns];
  double total[kSoftmaxColumns];
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
  double total[kSoftmaxColumns] = {};
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
  double total[kSoftmaxColumns] = {};
  for (int64_t k = 0; k < size; ++k) {
    for (int64_t j = 0; j < width; ++j) total[j] += g[k * step + j];
  }
  for (int64_t k = 0; k < size; ++k) {
    for (int64_t j = 0; j < width; ++j) {
      gx[k * step + j] = g[k * step + j] - exp(y[k * step + j]) * static_cast<T>(total[j]);
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

}  // namespace

extern constinit const SoftmaxKernels softmax_kernels = {softmax_loops<float>,
                                                         softmax_loops<double>};

}  // namespace taeda::cpu::simd::TAEDA_ISA
