#include "kernels/pool.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <limits>
#include <optional>
#include <type_traits>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/cpu/common/table.h"
#include "kernels/cpu/nn/simd/norm.h"
#include "kernels/cpu/nn/simd/pool.h"
#include "kernels/cpu/reduce/simd/reduce.h"
#include "kernels/pool_windows.h"

namespace taeda::cpu {
namespace {

template <class T> const auto& pool_loops() {
  if constexpr (std::is_integral_v<T>) return TAEDA_PICK(pool_kernels).i64;
  else return typed<T>(TAEDA_PICK(pool_kernels));
}

constexpr int64_t kPoolWork = 1 << 13;  // elements read that are worth a chunk
int64_t grain_of(const PoolWindows& p) {
  return kPoolWork / std::max<int64_t>(1, p.out_volume * p.window);
}

// f(spans along the outer two dimensions, index of the first output) for every row of outputs.
template <class F> void each_output_row(const PoolWindows& p, F&& f) {
  for (int64_t d = 0; d < p.out[0]; ++d) {
    for (int64_t h = 0; h < p.out[1]; ++h)
      f(p.span(0, d), p.span(1, h), (d * p.out[1] + h) * p.out[2]);
  }
}

// ---- maxima ----

template <class T>
constexpr T kLeast = std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                                          : std::numeric_limits<T>::lowest();

template <class T>
void window_maximum(const PoolWindows& p, const PoolSpan& a, const PoolSpan& b, const PoolSpan& c,
                    const T* x, T* y, int64_t* index) {
  const auto count = [&](const PoolSpan& s, int d) {
    const int64_t n = s.last - s.first, step = p.dilation[d];
    return step == 1 ? n : (n + step - 1) / step;
  };
  const int64_t corner = p.row(a.first, b.first) + c.first;
  const simd::PoolWindow window{count(a, 0), p.dilation[0] * p.row(1, 0),
                                count(b, 1), p.dilation[1] * p.in[2],
                                count(c, 2), p.dilation[2]};
  *y = kLeast<T>;
  *index = 0;
  if (window.depth > 0 && window.height > 0 && window.width > 0)
    pool_loops<T>().maximum(x + corner, window, y, index);
  *index += corner;
  if (p.channels != 1) *index /= p.channels;
}

template <class T> void maxima_by_window(const PoolWindows& p, const T* x, T* y, int64_t* index) {
  each_output_row(p, [&](const PoolSpan& a, const PoolSpan& b, int64_t o) {
    for (int64_t w = 0; w < p.out[2]; ++w, ++o)
      window_maximum(p, a, b, p.span(2, w), x, y + o, index + o);
  });
}

// Windows that are all alike: of a row of outputs at once those that see no padding to the left and
// right, of a column those that see none above and below; the others one by one.
template <class T> class LineMaxima {
 public:
  explicit LineMaxima(const PoolWindows& p) : p_(p) {
    for (int d = 1; d < 3; ++d) {
      const int64_t room = p.in[d] + p.padding[d] - p.extent(d), step = p.stride[d];
      first_[d] = std::min((p.padding[d] + step - 1) / step, p.out[d]);
      last_[d] = std::max(first_[d], room < 0 ? 0 : std::min(room / step + 1, p.out[d]));
    }
    values_.resize(static_cast<size_t>(last_[1] - first_[1]));
    indices_.resize(values_.size());
  }

  // `next`: the plane that is read after this one, or null.
  void run(const T* x, const T* next, T* y, int64_t* index) {
    const int64_t n = p_.out[2], part = p_.in_volume / p_.out[0] / p_.out[1];
    for (int64_t d = 0; d < p_.out[0]; ++d, y += p_.out[1] * n, index += p_.out[1] * n) {
      const PoolSpan a = p_.span(0, d);
      const auto one = [&](int64_t h, int64_t w) {
        window_maximum(p_, a, p_.span(1, h), p_.span(2, w), x, y + h * n + w, index + h * n + w);
      };
      for (int64_t h = 0; h < p_.out[1]; ++h) {
        for (int64_t i = 0; next && i < part; i += 64 / sizeof(T))
          __builtin_prefetch(next + (d * p_.out[1] + h) * part + i);
        const int64_t first = h * n + first_[2];
        const bool done = line(a, 2, h, x, y + first, index + first);
        for (int64_t w = done ? n : first_[2]; w < last_[2]; ++w) one(h, w);
        if (h < first_[1] || h >= last_[1]) outside(2, [&](int64_t w) { one(h, w); });
      }
      outside(2, [&](int64_t w) {  // when the lines that they are stored to are near
        const bool done = line(a, 1, w, x, values_.data(), indices_.data());
        for (int64_t h = first_[1]; h < last_[1]; ++h) {
          if (!done) one(h, w);
          else y[h * n + w] = values_[static_cast<size_t>(h - first_[1])];
          if (done) index[h * n + w] = indices_[static_cast<size_t>(h - first_[1])];
        }
      });
    }
  }

 private:
  // f(o) for the outputs along dimension d whose windows see padding.
  template <class F> void outside(int d, F&& f) const {
    for (int64_t o = 0; o < first_[d]; ++o) f(o);
    for (int64_t o = last_[d]; o < p_.out[d]; ++o) f(o);
  }

  // The outputs of row or column number `o`, along dimension d, whose windows see no padding along
  // it. False where they are too few.
  bool line(const PoolSpan& a, int d, int64_t o, const T* x, T* y, int64_t* index) {
    const int64_t count = last_[d] - first_[d];
    const PoolSpan across = p_.span(3 - d, o);
    if (count * static_cast<int64_t>(sizeof(T)) < 16 || a.last <= a.first ||
        across.last <= across.first)
      return false;
    const int64_t from = first_[d] * p_.stride[d] - p_.padding[d];
    const int64_t start =
        p_.row(a.first, d == 2 ? across.first : from) + (d == 2 ? from : across.first);
    Taps& taps = taps_[d];
    taps.set(p_, a.last - a.first, d == 2 ? across.last - across.first : p_.extent(1),
             d == 2 ? p_.extent(2) : across.last - across.first);
    const int64_t step = p_.stride[d] * (d == 2 ? 1 : p_.in[2]);
    pool_loops<T>().maxima(
        x + start,
        {taps.offsets.data(), taps.indices.data(), std::ssize(taps.offsets), step,
         p_.channels == 1 ? step : 0, static_cast<int32_t>(start / p_.channels)},
        count, y, index);
    return true;
  }

  // The elements of a window of this extent, as offsets from its first one and as they are counted.
  struct Taps {
    std::vector<int32_t> offsets, indices;
    std::array<int64_t, 3> extent{};

    void set(const PoolWindows& p, int64_t d, int64_t h, int64_t w) {
      if (extent == std::array{d, h, w}) return;
      extent = {d, h, w};
      offsets.clear();
      indices.clear();
      for (int64_t i = 0; i < d; i += p.dilation[0]) {
        for (int64_t j = 0; j < h; j += p.dilation[1]) {
          for (int64_t k = 0; k < w; k += p.dilation[2]) {
            offsets.push_back(static_cast<int32_t>(p.row(i, j) + k));
            indices.push_back(static_cast<int32_t>((p.row(i, j) + k) / p.channels));
          }
        }
      }
    }
  };

  const PoolWindows& p_;
  int64_t first_[3] = {}, last_[3] = {};  // outputs without padding along rows and columns
  Taps taps_[3];
  std::vector<T> values_;
  std::vector<int64_t> indices_;
};

// ---- averages ----

// Sums along columns first, then along the row of those sums; the gradient the other way round.
template <class T> class Averages {
 public:
  Averages(const PoolWindows& p, PoolAverage rule)
      : p_(p),
        rule_(rule),
        alike_(p.spans[2].empty()),
        counts_(static_cast<size_t>(p.out[2])),
        shares_(counts_.size()) {
    const int64_t reached = alike_ ? p.whole_extent(2) : 0;
    sums_.resize(static_cast<size_t>(std::max(p.padding[2] + p.in[2], reached)));
    for (int64_t w = 0; w < p.out[2]; ++w)
      counts_[static_cast<size_t>(w)] =
          static_cast<T>(rule.divisor != 0 ? rule.divisor : count(p.span(2, w)));
  }

  void forward(const T* x, T* y) {
    each_output_row(p_, [&](const PoolSpan& a, const PoolSpan& b, int64_t o) {
      T* to = y + o;
      const T* const sums = sum_rows(a, b, x);
      std::fill_n(to, p_.out[2], T(0));
      for (int64_t k = 0; alike_ && k < p_.kernel[2]; ++k)
        pool_loops<T>().add(sums + k, p_.stride[2], p_.out[2], to);
      if constexpr (std::is_floating_point_v<T>) {
        for (int64_t w = 0; !alike_ && w < p_.out[2]; ++w) {
          const PoolSpan c = p_.span(2, w);
          to[w] = static_cast<T>(
              typed<T>(TAEDA_PICK(norm_kernels)).sum(sums + c.first, c.last - c.first));
        }
      }
      divide(a, b, to, to);
    });
  }

  void backward(const T* gy, T* gx) {
    std::fill_n(gx, p_.in_volume, T(0));
    each_output_row(p_, [&](const PoolSpan& a, const PoolSpan& b, int64_t o) {
      divide(a, b, gy + o, shares_.data());
      std::fill(sums_.begin(), sums_.end(), T(0));
      for (int64_t k = 0; alike_ && k < p_.kernel[2]; ++k)
        pool_loops<T>().spread(shares_.data(), p_.stride[2], p_.out[2], sums_.data() + k);
      for (int64_t w = 0; !alike_ && w < p_.out[2]; ++w) {
        const PoolSpan c = p_.span(2, w);
        for (int64_t i = c.first; i < c.last; ++i)
          sums_[static_cast<size_t>(i)] += shares_[static_cast<size_t>(w)];
      }
      each_row(a, b, [&](int64_t row) { pool_loops<T>().add(columns(), 1, p_.in[2], gx + row); });
    });
  }

 private:
  T* columns() { return sums_.data() + p_.padding[2]; }  // those of the input
  template <class F> void each_row(const PoolSpan& a, const PoolSpan& b, F&& f) const {
    for (int64_t d = a.first; d < a.last; ++d) {
      for (int64_t h = b.first; h < b.last; ++h) f(p_.row(d, h));
    }
  }
  // Of the rows of a window: those themselves, where there is but one and no padding.
  const T* sum_rows(const PoolSpan& a, const PoolSpan& b, const T* x) {
    const int64_t rows = b.last - b.first, n = p_.in[2];
    if (a.last - a.first == 1 && rows == 1 && std::ssize(sums_) == n)
      return x + p_.row(a.first, b.first);
    std::fill(sums_.begin(), sums_.end(), T(0));
    if constexpr (std::is_floating_point_v<T>) {
      if (a.last - a.first == 1) {
        typed<T>(TAEDA_PICK(row_sums))(x + p_.row(a.first, b.first), rows, n, n, columns());
        return sums_.data();
      }
    }
    each_row(a, b, [&](int64_t row) { pool_loops<T>().add(x + row, 1, n, columns()); });
    return sums_.data();
  }
  int64_t count(const PoolSpan& s) const {
    return std::max<int64_t>(1, rule_.count_padding ? s.padded : s.last - s.first);
  }
  void divide(const PoolSpan& a, const PoolSpan& b, const T* sums, T* to) const {
    const int64_t rows = rule_.divisor != 0 ? 1 : count(a) * count(b);
    pool_loops<T>().divide(sums, counts_.data(), static_cast<T>(rows), p_.out[2], to);
  }

  const PoolWindows& p_;
  const PoolAverage rule_;
  const bool alike_;  // all windows along a row
  std::vector<T> sums_, counts_, shares_;
};

template <class T> void max_pool(const PoolShape& s, const T* x, T* y, int64_t* index) {
  const PoolWindows p(s);
  const bool by_lines =
      p.spans[1].empty() && p.spans[2].empty() && p.in_volume <= INT32_MAX && p.out[2] >= 4;
  parallel_for(s.planes, grain_of(p), [&](int64_t begin, int64_t end) {
    std::optional<LineMaxima<T>> lines;
    if (by_lines) lines.emplace(p);
    for (int64_t i = begin; i < end; ++i) {
      const T* from = x + i * p.in_volume;
      T* to = y + i * p.out_volume;
      int64_t* at = index + i * p.out_volume;
      if (lines) lines->run(from, i + 1 < end ? from + p.in_volume : nullptr, to, at);
      else maxima_by_window(p, from, to, at);
    }
  });
}

template <class T>
bool fractional_max_pool(const PoolShape& s, const T* x, const T* samples, T* y, int64_t* index) {
  PoolShape adaptive = s;
  adaptive.adaptive = true;
  const PoolWindows shape(adaptive);
  std::atomic<bool> inside{true};
  parallel_for(s.planes, grain_of(shape), [&](int64_t begin, int64_t end) {
    PoolWindows p = shape;
    for (int d = 0; d < 3; ++d) p.spans[d].resize(static_cast<size_t>(p.out[d]), {0, 1, 1});
    for (int64_t i = begin; i < end; ++i) {
      for (int d = 0; d < s.spatial; ++d) {
        const T sample = samples[i * s.spatial + (s.spatial == 2 ? 1 - d : d)];
        if (!fractional_spans(sample, s.in[d], s.kernel[d], p.spans[3 - s.spatial + d]))
          return inside.store(false, std::memory_order_relaxed);
      }
      maxima_by_window(p, x + i * p.in_volume, y + i * p.out_volume, index + i * p.out_volume);
    }
  });
  return inside;
}

template <class T>
bool scatter(int64_t planes, int64_t in, int64_t out, int64_t channels, const T* gy,
             const int64_t* index, T* gx) {
  std::atomic<bool> inside = true;
  const int64_t grain = std::max<int64_t>(1, kPoolWork / std::max<int64_t>(1, in + out));
  parallel_each(planes, grain / channels + 1, [&](int64_t i) {
    const int64_t begin = i * out * channels, end = begin + out * channels;
    bool outside = false;
    for (int64_t o = begin; o < end; ++o)
      outside |= static_cast<uint64_t>(index[o]) >= static_cast<uint64_t>(in);
    if (outside) return inside.store(false, std::memory_order_relaxed);
    T* to = gx + i * in * channels;
    std::fill_n(to, in * channels, T(0));
    if (channels == 1) {
      for (int64_t o = begin; o < end; ++o) to[index[o]] += gy[o];
    } else {
      for (int64_t o = begin; o < end; o += channels)
        for (int64_t c = 0; c < channels; ++c) to[index[o + c] * channels + c] += gy[o + c];
    }
  });
  return inside;
}

template <class T> void avg_pool(const PoolShape& s, PoolAverage rule, const T* x, T* y) {
  const PoolWindows p(s);
  parallel_for(s.planes, grain_of(p), [&](int64_t begin, int64_t end) {
    if constexpr (std::is_floating_point_v<T>) {
      if (s.adaptive && p.out_volume == 1) {  // as the last layers of many networks do
        const auto sum = typed<T>(TAEDA_PICK(norm_kernels)).sum;
        for (int64_t i = begin; i < end; ++i)
          y[i] = static_cast<T>(sum(x + i * p.in_volume, p.in_volume) /
                                static_cast<double>(p.in_volume));
        return;
      }
    }
    Averages<T> averages(p, rule);
    for (int64_t i = begin; i < end; ++i)
      averages.forward(x + i * p.in_volume, y + i * p.out_volume);
  });
}

template <class T>
void avg_pool_backward(const PoolShape& s, PoolAverage rule, const T* gy, T* gx) {
  const PoolWindows p(s);
  parallel_for(s.planes, grain_of(p), [&](int64_t begin, int64_t end) {
    Averages<T> averages(p, rule);
    for (int64_t i = begin; i < end; ++i)
      averages.backward(gy + i * p.out_volume, gx + i * p.in_volume);
  });
}

}  // namespace
}  // namespace taeda::cpu

TAEDA_FLOAT_KERNELS(PoolKernels, cpu::max_pool<T>, cpu::fractional_max_pool<T>, cpu::scatter<T>,
                    cpu::avg_pool<T>, cpu::avg_pool_backward<T>)
template struct taeda::PoolKernels<int64_t>;
