#include "kernels/cpu/nn/simd/softmax.h"

#include "kernels/cpu/nn/simd/exp.h"
#include "kernels/cpu/reduce/simd/rows.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

// What is taken from the elements of a row: its largest, unless all are minus infinity.
template <class T> FN T finite_center(T most) {
  constexpr T highest = static_cast<T>(sizeof(T) == 4 ? __FLT_MAX__ : __DBL_MAX__);
  return most < -highest ? -highest : most;
}

// ---- along rows ----

constexpr int64_t kBuffered = 8192;  // elements of a row whose exponentials fit a buffer

// Large results: three steps at once, each a row behind the one before, so that memory is read and
// written while exponentials are computed. These are the largest element of row r + 1, the sum of
// the exponentials of row r, and the result of row r - 1, whose exponentials softmax keeps in a
// buffer until their sum is known. Rows begin at a cache line and fill whole registers.
template <bool Log, class T> void rows_streamed(int64_t rows, int64_t size, const T* x, T* y) {
  constexpr int64_t ahead = 2048;
  alignas(kCacheLine) T buffer[Log ? 1 : kBuffered];
  for (int64_t i = 0; !Log && i < size; ++i) buffer[i] = 0;
  T center = 0, scale = 0, shift = 0;
  auto result = [&](const T* row, int64_t i) {
    if constexpr (Log) return load(row + i) - center - shift;
    else return load(buffer + i) * scale;
  };
  T most = largest(x, size);
  for (int64_t r = 0; r < rows; ++r) {
    const T* const row = x + r * size;
    const T* const next = r + 1 < rows ? row + size : row;
    const T* const before = r > 0 ? row - size : row;
    T* const to = r > 0 ? y + (r - 1) * size : y;  // the first row's are overwritten by the next's
    auto best = broadcast<Vec<T>>(-static_cast<T>(__builtin_inf()));
    const T new_center = finite_center(most);
    const double total = sum_over<T>(size, [&](int64_t i, auto lanes) {
      if constexpr (lanes == 1) {
        return T(0);  // there is no tail
      } else {
        prefetch(next + i + ahead);
        best = max(load(next + i), best);
        const auto d = load(row + i) - new_center;
        const auto e = Log ? exp_term(d) : exp_or_zero(d);
        stream(to + i, result(before, i));
        if constexpr (!Log) store(buffer + i, e);
        return e;
      }
    });
    center = most;
    scale = static_cast<T>(1.0 / total);
    shift = static_cast<T>(__builtin_log(total));
    most = reduce(best, [](auto a, auto b) { return max(a, b); });
  }
  const int64_t last = (rows - 1) * size;
  for (int64_t i = 0; i < size; i += kLanes<T>) stream(y + last + i, result(x + last, i));
  stream_fence();
}

// Three passes over each row: its largest element, the exponentials and their sum, the quotients.
template <class T> void softmax_rows(int64_t rows, int64_t size, const T* x, T* y, bool streamed) {
  if (streamed && size <= kBuffered) return rows_streamed<false>(rows, size, x, y);
  for (int64_t r = 0; r < rows; ++r, x += size, y += size) {
    const T most = largest(x, size);
    const double total = sum_over<T>(size, [&](int64_t i, auto lanes) {
      const auto v = exp_or_zero(load<lanes>(x + i) - most);
      store(y + i, v);
      return v;
    });
    const T scale = static_cast<T>(1.0 / total);
    map_row(size, y, false, [&](int64_t i, auto lanes) { return load<lanes>(y + i) * scale; });
  }
}

// The largest element of a row and the sum of exp(x - largest), in one pass through memory: block
// by block, the sum so far being rescaled where a block has a larger element.
template <class T> FN void max_and_sum(const T* x, int64_t n, T& most, double& total) {
  most = -static_cast<T>(__builtin_inf());
  total = 0;
  for (int64_t begin = 0; begin < n; begin += kSumBlock) {
    const int64_t m = n - begin < kSumBlock ? n - begin : kSumBlock;
    const T* p = x + begin;
    const T best = largest(p, m);
    if (best > most) {
      total *= __builtin_exp(static_cast<double>(most) - static_cast<double>(best));
      most = best;
    }
    const T center = finite_center(most);
    prefetch<3>(p + 2 * kSumBlock, kSumBlock * static_cast<int64_t>(sizeof(T)));
    total += sum_over<T>(
        m, [&](int64_t i, auto lanes) { return exp_term(load<lanes>(p + i) - center); });
  }
}

template <class T>
void log_softmax_rows(int64_t rows, int64_t size, const T* x, T* y, bool streamed) {
  if (streamed && size <= kBuffered) return rows_streamed<true>(rows, size, x, y);
  for (int64_t r = 0; r < rows; ++r, x += size, y += size) {
    T most;
    double total;
    if (size <= kBuffered) {  // in the same order as rows_streamed, to the same bits
      most = largest(x, size);
      const T center = finite_center(most);
      total = sum_over<T>(
          size, [&](int64_t i, auto lanes) { return exp_term(load<lanes>(x + i) - center); });
    } else {
      max_and_sum(x, size, most, total);
    }
    const T shift = static_cast<T>(__builtin_log(total));
    map_row(size, y, streamed,
            [&](int64_t i, auto lanes) { return load<lanes>(x + i) - most - shift; });
  }
  if (streamed) stream_fence();
}

template <bool Log, class T>
void rows_backward(int64_t rows, int64_t size, const T* g, const T* y, T* gx, bool streamed) {
  for (int64_t r = 0; r < rows; ++r, g += size, y += size, gx += size) {
    const T total = static_cast<T>(Log ? sum(g, size) : dot(g, y, size));
    map_row(size, gx, streamed, [&](int64_t i, auto lanes) {
      const auto u = load<lanes>(g + i), v = load<lanes>(y + i);
      if constexpr (Log) return u - exp_or_zero(v) * total;
      else return v * (u - total);
    });
  }
  if (streamed) stream_fence();
}

// ---- cross entropy: what a row needs of its softmax, and the softmax scaled ----

template <class T> void entropy_stats(int64_t rows, int64_t size, const T* x, double* stats) {
  for (int64_t r = 0; r < rows; ++r, x += size, stats += 2) {
    T m;
    max_and_sum(x, size, m, stats[1]);
    stats[0] = m;
  }
}

template <class T>
void scaled_softmax(const T* x, int64_t size, const double* stats, double scale, T* y,
                    bool streamed) {
  const T m = static_cast<T>(stats[0]), factor = static_cast<T>(scale / stats[1]);
  map_row(size, y, streamed, [&](int64_t i, auto lanes) {
    if (streamed) prefetch<3>(x + i + 1024);
    return exp_or_zero(load<lanes>(x + i) - m) * factor;
  });
  if (streamed) stream_fence();
}

// ---- down columns ----

template <class T>
FN void column_maxima(int64_t size, int64_t step, int64_t width, const T* x, T* best) {
  for (int64_t j = 0; j < width; ++j) best[j] = -static_cast<T>(__builtin_inf());
  for (int64_t k = 0; k < size; ++k) {
    map_row(width, best, false, [&](int64_t j, auto lanes) {
      return max(load<lanes>(x + k * step + j), load<lanes>(best + j));
    });
  }
}

template <class T>
void softmax_columns(int64_t size, int64_t step, int64_t width, const T* x, T* y) {
  constexpr int64_t group = 32;  // rows that are added up in T
  T best[kSoftmaxColumns], part[kSoftmaxColumns], scale[kSoftmaxColumns];
  double total[kSoftmaxColumns] = {};
  column_maxima(size, step, width, x, best);
  // Row by row, not eight rows deep: a load from the next row of x would alias the store to this
  // row of y where rows are a multiple of 4 KB apart.
  for (int64_t first = 0; first < size; first += group) {
    const int64_t end = size - first < group ? size : first + group;
    for (int64_t j = 0; j < width; ++j) part[j] = 0;
    for (int64_t k = first; k < end; ++k) {
      map_row(width, y + k * step, false, [&](int64_t j, auto lanes) {
        const auto e = exp_or_zero(load<lanes>(x + k * step + j) - load<lanes>(best + j));
        store(part + j, load<lanes>(part + j) + e);
        return e;
      });
    }
    for (int64_t j = 0; j < width; ++j) total[j] += part[j];
  }
  for (int64_t j = 0; j < width; ++j) scale[j] = static_cast<T>(1.0 / total[j]);
  map_columns(size, step, width, y, [&](int64_t k, int64_t j, auto lanes) {
    return load<lanes>(y + k * step + j) * load<lanes>(scale + j);
  });
}

template <class T>
void log_softmax_columns(int64_t size, int64_t step, int64_t width, const T* x, T* y) {
  T best[kSoftmaxColumns], shift[kSoftmaxColumns];
  double total[kSoftmaxColumns];
  column_maxima(size, step, width, x, best);
  sum_columns<T, 1>(size, width, {total}, [&](int64_t k, int64_t j, auto lanes, auto* term) {
    *term = exp_term(load<lanes>(x + k * step + j) - load<lanes>(best + j));
  });
  for (int64_t j = 0; j < width; ++j) shift[j] = static_cast<T>(__builtin_log(total[j]));
  map_columns(size, step, width, y, [&](int64_t k, int64_t j, auto lanes) {
    return load<lanes>(x + k * step + j) - load<lanes>(best + j) - load<lanes>(shift + j);
  });
}

template <bool Log, class T>
void columns_backward(int64_t size, int64_t step, int64_t width, const T* g, const T* y, T* gx) {
  double sums[kSoftmaxColumns];
  T total[kSoftmaxColumns];
  sum_columns<T, 1>(size, width, {sums}, [&](int64_t k, int64_t j, auto lanes, auto* term) {
    *term = load<lanes>(g + k * step + j);
    if constexpr (!Log) *term *= load<lanes>(y + k * step + j);
  });
  for (int64_t j = 0; j < width; ++j) total[j] = static_cast<T>(sums[j]);
  map_columns(size, step, width, gx, [&](int64_t k, int64_t j, auto lanes) {
    const auto u = load<lanes>(g + k * step + j), v = load<lanes>(y + k * step + j);
    if constexpr (Log) return u - exp_or_zero(v) * load<lanes>(total + j);
    else return v * (u - load<lanes>(total + j));
  });
}

template <class T>
constexpr SoftmaxLoops<T> softmax_loops = {
    {softmax_rows<T>, softmax_columns<T>, rows_backward<false, T>, columns_backward<false, T>},
    {log_softmax_rows<T>, log_softmax_columns<T>, rows_backward<true, T>,
     columns_backward<true, T>},
    entropy_stats<T>,
    scaled_softmax<T>};

}  // namespace

extern constinit const ForFloats<SoftmaxLoops> softmax_kernels = {softmax_loops<float>,
                                                                  softmax_loops<double>};

}  // namespace taeda::cpu::simd::TAEDA_ISA
