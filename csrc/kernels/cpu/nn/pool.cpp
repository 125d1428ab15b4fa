#include "kernels/cpu/nn/pool.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/cpu/nn/pool_windows.h"
#include "kernels/cpu/nn/simd/pool.h"

namespace taeda::cpu {
namespace {

template <class T> const simd::PoolLoops<T>& loops() { return typed<T>(TAEDA_PICK(pool_kernels)); }

// The largest element of one window, and where it lies.
template <class T>
void maximum(const Planes& p, const Span& a, const Span& b, const Span& c, const T* x, T* y,
             int64_t* index) {
  T best = std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                                : std::numeric_limits<T>::lowest();
  int64_t at = (a.first * p.in[1] + b.first) * p.in[2] + c.first;
  each_element(p, a, b, c, [&](int64_t e) {
    const T v = x[e];
    if (v > best || v != v) {
      best = v;
      at = e;
    }
  });
  *y = best;
  *index = at;
}

// A window without gaps.
simd::PoolWindow window_of(const Planes& p, const Span& a, const Span& b, const Span& c) {
  return {a.last - a.first, p.in[1] * p.in[2], b.last - b.first, p.in[2], c.last - c.first};
}
int64_t corner(const Planes& p, const Span& a, const Span& b, const Span& c) {
  return (a.first * p.in[1] + b.first) * p.in[2] + c.first;
}
bool is_empty(const Span& a, const Span& b, const Span& c) {
  return a.first >= a.last || b.first >= b.last || c.first >= c.last;
}

// The same of a window without gaps.
template <class T>
void maximum_together(const Planes& p, const Span& a, const Span& b, const Span& c, const T* x,
                      T* y, int64_t* index) {
  if constexpr (std::is_floating_point_v<T>) {
    const int64_t first = corner(p, a, b, c);
    if (p.in_volume <= INT32_MAX && !is_empty(a, b, c) &&
        loops<T>().maximum(x + first, window_of(p, a, b, c), y, index)) {
      *index += first;
      return;
    }
  }
  maximum(p, a, b, c, x, y, index);
}

// The elements of windows beside one another, as places after that where the first of them begins.
struct Taps {
  std::vector<int32_t> list;
  int64_t depth = -1, height = -1, width = -1;  // elements along these dimensions

  void make(const Planes& p, int64_t d, int64_t h, int64_t w) {
    if (d == depth && h == height && w == width) return;
    depth = d;
    height = h;
    width = w;
    list.clear();
    each_element(p, {0, d, d}, {0, h, h}, {0, w, w},
                 [&](int64_t e) { list.push_back(static_cast<int32_t>(e)); });
  }
};

// The maxima of one plane, for a thread that goes from plane to plane.
template <class T> class PlaneMaxima {
 public:
  explicit PlaneMaxima(const Planes& p)
      : p_(p),
        rows_(inside(p, 1)),
        columns_(inside(p, 2)),
        value_(static_cast<size_t>(rows_.last - rows_.first)),
        place_(value_.size()) {}

  // `next`: the plane that is read after this one, or null.
  void run(const T* x, const T* next, T* y, int64_t* index) {
    for (int64_t d = 0; d < p_.out[0]; ++d) {
      const Span a = p_.strided(0, d);
      const int64_t part = p_.in_volume / p_.out[0] / p_.out[1];  // asked for with each row
      for (int64_t h = 0; h < p_.out[1]; ++h) {
        for (int64_t i = 0; next && i < part; i += 64 / sizeof(T))
          __builtin_prefetch(next + (d * p_.out[1] + h) * part + i);
        row(a, h, x, y + h * p_.out[2], index + h * p_.out[2]);
      }
      for (int64_t w = 0; w < p_.out[2]; ++w) {  // when the lines that they are stored to are near
        if (w == columns_.first) w = columns_.last;
        if (w < p_.out[2]) column(a, w, x, y + w, index + w);
      }
      y += p_.out[1] * p_.out[2];
      index += p_.out[1] * p_.out[2];
    }
  }

 private:
  // What a row's windows without padding in the row give, and what no column below does.
  void row(const Span& a, int64_t h, const T* x, T* y, int64_t* index) {
    const Span b = p_.strided(1, h);
    const int64_t first = columns_.first;
    row_taps_.make(p_, a.last - a.first, b.last - b.first, (p_.kernel[2] - 1) * p_.dilation[2] + 1);
    const int64_t many = row_taps_.list.empty() ? 0 : columns_.last - first;
    if (many > 0) {
      const int64_t start = (a.first * p_.in[1] + b.first) * p_.in[2] + columns_.element;
      maxima(row_taps_, x, start, p_.stride[2], many, y + first, index + first);
    }
    const bool in_columns = h >= rows_.first && h < rows_.last;
    for (int64_t w = 0; w < p_.out[2]; ++w) {
      if (w == first && many > 0) w = columns_.last;
      const bool edge = w < first || w >= columns_.last;
      if (w < p_.out[2] && !(edge && in_columns))
        maximum(p_, a, b, p_.strided(2, w), x, y + w, index + w);
    }
  }

  // Number w of all rows of outputs whose windows see no padding above or below.
  void column(const Span& a, int64_t w, const T* x, T* y, int64_t* index) {
    const Span c = p_.strided(2, w);
    column_taps_.make(p_, a.last - a.first, (p_.kernel[1] - 1) * p_.dilation[1] + 1,
                      c.last - c.first);
    const auto rows = static_cast<int64_t>(value_.size());
    if (rows > 0 && !column_taps_.list.empty()) {
      const int64_t start = (a.first * p_.in[1] + rows_.element) * p_.in[2] + c.first;
      maxima(column_taps_, x, start, p_.stride[1] * p_.in[2], rows, value_.data(), place_.data());
    }
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t h = rows_.first + i, at = h * p_.out[2];
      if (column_taps_.list.empty()) {
        maximum(p_, a, p_.strided(1, h), c, x, y + at, index + at);
      } else {
        y[at] = value_[static_cast<size_t>(i)];
        index[at] = place_[static_cast<size_t>(i)];
      }
    }
  }

  void maxima(const Taps& taps, const T* x, int64_t start, int64_t step, int64_t n, T* y,
              int64_t* at) const {
    loops<T>().maxima(x, static_cast<int32_t>(start), taps.list.data(),
                      static_cast<int64_t>(taps.list.size()), step, n, y, at);
  }

  const Planes& p_;
  const Reach rows_, columns_;
  Taps row_taps_, column_taps_;
  std::vector<T> value_;
  std::vector<int64_t> place_;
};

template <class T> bool by_rows(const Planes& p) {
  return std::is_floating_point_v<T> && p.in_volume <= INT32_MAX && p.out[2] >= 4;
}

template <bool Adaptive, class T>
void maxima(const PoolShape& s, const T* x, T* y, int64_t* index) {
  const Planes p(s, Adaptive);
  parallel_for(s.planes, p.grain(), [&](int64_t begin, int64_t end) {
    auto each_plane = [&](auto&& f) {
      for (int64_t i = begin; i < end; ++i)
        f(x + i * p.in_volume, y + i * p.out_volume, index + i * p.out_volume);
    };
    if constexpr (!Adaptive && std::is_floating_point_v<T>) {
      if (by_rows<T>(p)) {
        PlaneMaxima<T> plane(p);
        each_plane([&](const T* from, T* to, int64_t* at) {
          const T* next = from + p.in_volume;
          plane.run(from, next < x + end * p.in_volume ? next : nullptr, to, at);
        });
        return;
      }
    }
    each_plane([&](const T* from, T* to, int64_t* at) {
      each_window<Adaptive>(p, [&](int64_t o, const Span& a, const Span& b, const Span& c) {
        if constexpr (Adaptive) maximum_together(p, a, b, c, from, to + o, at + o);
        else maximum(p, a, b, c, from, to + o, at + o);
      });
    });
  });
}

int64_t divisor(AverageRule rule, const Span& a, const Span& b, const Span& c) {
  if (rule.divisor != 0) return rule.divisor;
  if (rule.count_padding) return a.padded * b.padded * c.padded;
  return (a.last - a.first) * (b.last - b.first) * (c.last - c.first);
}

template <class T> void means_by_rows(const Planes& p, AverageRule rule, const T* x, T* y) {
  for (int64_t d = 0; d < p.out[0]; ++d) {
    const Span a = p.strided(0, d);
    for (int64_t h = 0; h < p.out[1]; ++h, y += p.out[2]) {
      const Span b = p.strided(1, h);
      std::fill_n(y, p.out[2], T(0));
      each_row(p, a, b, [&](int64_t line, const Reach& r) {
        loops<T>().add(x + line + r.element, p.stride[2], r.last - r.first, y + r.first);
      });
      for (int64_t w = 0; w < p.out[2]; ++w) {
        const Span c = p.strided(2, w);
        y[w] = is_empty(a, b, c) ? T(0) : y[w] / static_cast<T>(divisor(rule, a, b, c));
      }
    }
  }
}

template <bool Adaptive, class T>
void means(const PoolShape& s, AverageRule rule, const T* x, T* y) {
  const Planes p(s, Adaptive);
  parallel_for(s.planes, p.grain(), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T* from = x + i * p.in_volume;
      if constexpr (!Adaptive && std::is_floating_point_v<T>) {
        if (by_rows<T>(p)) {
          means_by_rows(p, rule, from, y + i * p.out_volume);
          continue;
        }
      }
      each_window<Adaptive>(p, [&](int64_t o, const Span& a, const Span& b, const Span& c) {
        T& to = y[i * p.out_volume + o];
        if (is_empty(a, b, c)) {
          to = 0;
          return;
        }
        T sum = 0;
        bool wide = false;
        if constexpr (Adaptive && std::is_floating_point_v<T>) {
          wide = c.last - c.first >= 4;
          if (wide) sum = loops<T>().sum(from + corner(p, a, b, c), window_of(p, a, b, c));
        }
        if (!wide) each_element(p, a, b, c, [&](int64_t e) { sum += from[e]; });
        to = sum / static_cast<T>(divisor(rule, a, b, c));
      });
    }
  });
}

template <bool Adaptive, class T>
void means_backward(const PoolShape& s, AverageRule rule, const T* gy, T* gx) {
  const Planes p(s, Adaptive);
  parallel_for(s.planes, p.grain(), [&](int64_t begin, int64_t end) {
    std::fill(gx + begin * p.in_volume, gx + end * p.in_volume, T(0));
    for (int64_t i = begin; i < end; ++i) {
      T* to = gx + i * p.in_volume;
      each_window<Adaptive>(p, [&](int64_t o, const Span& a, const Span& b, const Span& c) {
        if (is_empty(a, b, c)) return;
        const T share = gy[i * p.out_volume + o] / static_cast<T>(divisor(rule, a, b, c));
        each_element(p, a, b, c, [&](int64_t e) { to[e] += share; });
      });
    }
  });
}

}  // namespace

template <class T> void max_pool(const PoolShape& s, const T* x, T* y, int64_t* index) {
  maxima<false>(s, x, y, index);
}
template <class T> void adaptive_max_pool(const PoolShape& s, const T* x, T* y, int64_t* index) {
  if (PoolShape strided; make_strided(s, strided)) maxima<false>(strided, x, y, index);
  else maxima<true>(s, x, y, index);
}

template <class T>
bool scatter_planes(int64_t planes, int64_t in, int64_t out, const T* gy, const int64_t* index,
                    T* gx) {
  std::atomic<bool> inside = true;
  parallel_for(planes, std::max<int64_t>(1, kPoolWork / std::max<int64_t>(1, in + out)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   bool outside = false;
                   for (int64_t o = i * out; o < (i + 1) * out; ++o)
                     outside |= static_cast<uint64_t>(index[o]) >= static_cast<uint64_t>(in);
                   if (outside) {
                     inside = false;
                     continue;
                   }
                   T* to = gx + i * in;
                   std::fill_n(to, in, T(0));
                   for (int64_t o = i * out; o < (i + 1) * out; ++o) to[index[o]] += gy[o];
                 }
               });
  return inside;
}
template <class T> void avg_pool(const PoolShape& s, AverageRule rule, const T* x, T* y) {
  means<false>(s, rule, x, y);
}
template <class T>
void avg_pool_backward(const PoolShape& s, AverageRule rule, const T* gy, T* gx) {
  means_backward<false>(s, rule, gy, gx);
}
template <class T> void adaptive_avg_pool(const PoolShape& s, const T* x, T* y) {
  if (PoolShape strided; make_strided(s, strided)) return means<false>(strided, {false, 0}, x, y);
  const Planes p(s, true);
  if (p.out_volume != 1) return means<true>(s, {false, 0}, x, y);
  // One mean a plane, as the last layers of many networks want: a plain sum of neighbours.
  parallel_for(s.planes, p.grain(), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      y[i] = static_cast<T>(loops<T>().plane_sum(x + i * p.in_volume, p.in_volume) /
                            static_cast<double>(p.in_volume));
    }
  });
}
template <class T> void adaptive_avg_pool_backward(const PoolShape& s, const T* gy, T* gx) {
  means_backward<true>(s, {false, 0}, gy, gx);
}

namespace {
// Where the windows along one dimension begin. False where one would reach out of the plane.
template <class T>
bool window_starts(T sample, int64_t in, int64_t out, int64_t kernel, int64_t* to) {
  if (!(std::abs(sample) < T(1 << 20))) return false;
  const int64_t last = in - kernel;
  const T step =
      out > 1 ? static_cast<T>(static_cast<double>(last) / static_cast<double>(out - 1)) : T(0);
  const auto shift = static_cast<int64_t>(sample * step);
  bool inside = true;
  for (int64_t i = 0; i + 1 < out; ++i) {
    to[i] = static_cast<int64_t>((static_cast<T>(i) + sample) * step) - shift;
    inside &= to[i] >= 0 && to[i] <= last;
  }
  to[out - 1] = last;
  return inside;
}
}  // namespace

template <class T>
bool fractional_max_pool(const PoolShape& s, const T* x, const T* samples, T* y, int64_t* index) {
  PoolShape dense = s;
  for (int d = 0; d < s.spatial; ++d) {
    dense.stride[d] = dense.dilation[d] = 1;
    dense.padding[d] = 0;
  }
  const Planes p(dense);
  std::atomic<bool> inside{true};
  parallel_for(s.planes, p.grain(), [&](int64_t begin, int64_t end) {
    std::vector<int64_t> starts[3];
    for (int d = 0; d < 3; ++d) starts[d].resize(static_cast<size_t>(p.out[d]));
    const auto span = [&](int d, int64_t o) {
      const int64_t first = starts[d][static_cast<size_t>(o)];
      return Span{first, first + p.kernel[d], p.kernel[d]};
    };
    for (int64_t i = begin; i < end; ++i) {
      for (int d = 0; d < s.spatial; ++d) {
        const T sample = samples[i * s.spatial + (s.spatial == 2 ? 1 - d : d)];
        const int at = 3 - s.spatial + d;
        if (!window_starts(sample, p.in[at], p.out[at], p.kernel[at], starts[at].data()))
          return inside.store(false, std::memory_order_relaxed);
      }
      each_window(p, span, [&](int64_t o, const Span& a, const Span& b, const Span& c) {
        o += i * p.out_volume;
        maximum(p, a, b, c, x + i * p.in_volume, y + o, index + o);
      });
    }
  });
  return inside;
}

#define TAEDA_POOL(T)                                                                       \
  template void max_pool<T>(const PoolShape&, const T*, T*, int64_t*);                      \
  template void adaptive_max_pool<T>(const PoolShape&, const T*, T*, int64_t*);             \
  template bool fractional_max_pool<T>(const PoolShape&, const T*, const T*, T*, int64_t*); \
  template bool scatter_planes<T>(int64_t, int64_t, int64_t, const T*, const int64_t*, T*); \
  template void avg_pool<T>(const PoolShape&, AverageRule, const T*, T*);                   \
  template void avg_pool_backward<T>(const PoolShape&, AverageRule, const T*, T*);          \
  template void adaptive_avg_pool<T>(const PoolShape&, const T*, T*);                       \
  template void adaptive_avg_pool_backward<T>(const PoolShape&, const T*, T*);
template void max_pool<int64_t>(const PoolShape&, const int64_t*, int64_t*, int64_t*);
template void adaptive_max_pool<int64_t>(const PoolShape&, const int64_t*, int64_t*, int64_t*);
template void avg_pool<int64_t>(const PoolShape&, AverageRule, const int64_t*, int64_t*);
TAEDA_POOL(float)
TAEDA_POOL(double)

}  // namespace taeda::cpu
