// The windows of pooling: which elements of the input each output reads, and walks over them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/cpu/nn/pool.h"

namespace taeda::cpu {

inline constexpr int64_t kPoolWork = 1 << 13;  // elements read that are worth a chunk

// A dimension's window for one output: elements first, first + step, ... below last.
struct Span {
  int64_t first, last;
  int64_t padded;  // elements with those of the padding
};

// Shapes with always three dimensions, outermost first.
struct Planes {
  int64_t in[3], out[3], kernel[3], stride[3], padding[3], dilation[3];
  int64_t in_volume = 1, out_volume = 1, window = 1;
  std::vector<Span> spans[3];  // of all windows, where they are adaptive

  explicit Planes(const PoolShape& s, bool adaptive = false) {
    for (int d = 0; d < 3; ++d) {
      const int from = d - (3 - s.spatial);
      const bool used = from >= 0;
      in[d] = used ? s.in[from] : 1;
      out[d] = used ? s.out[from] : 1;
      const bool given = used && !adaptive;
      kernel[d] = given ? s.kernel[from] : used ? in[d] / std::max<int64_t>(1, out[d]) + 1 : 1;
      stride[d] = given ? s.stride[from] : 1;
      padding[d] = given ? s.padding[from] : 0;
      dilation[d] = given ? s.dilation[from] : 1;
      in_volume *= in[d];
      out_volume *= out[d];
      window *= kernel[d];
      if (!adaptive) continue;
      for (int64_t o = 0; o < out[d]; ++o) {
        const int64_t first = o * in[d] / out[d], last = ((o + 1) * in[d] + out[d] - 1) / out[d];
        spans[d].push_back({first, last, last - first});
      }
    }
  }
  int64_t grain() const {
    return std::max<int64_t>(1, kPoolWork / std::max<int64_t>(1, out_volume * window));
  }

  Span strided(int d, int64_t o) const {
    int64_t first = o * stride[d] - padding[d];
    const int64_t reach = first + (kernel[d] - 1) * dilation[d] + 1;
    // A window may hang over the padded end too; what lies there counts for nothing.
    const int64_t padded = std::min(first + kernel[d], in[d] + padding[d]) - first;
    if (first < 0) first += (-first + dilation[d] - 1) / dilation[d] * dilation[d];
    return {first, std::min(reach, in[d]), padded};
  }
  Span adaptive(int d, int64_t o) const { return spans[d][static_cast<size_t>(o)]; }
};

// Adaptive windows that are narrow and all alike, as those of strided pooling, which takes many of
// them at once. False where they are not.
inline bool make_strided(const PoolShape& s, PoolShape& strided) {
  const int last = s.spatial - 1;
  if (s.out[last] < 4 || s.in[last] > 2 * s.out[last]) return false;
  strided = s;
  for (int d = 0; d < s.spatial; ++d) {
    if (s.out[d] == 0 || s.in[d] == 0 || s.in[d] % s.out[d] != 0) return false;
    strided.kernel[d] = strided.stride[d] = s.in[d] / s.out[d];
    strided.padding[d] = 0;
    strided.dilation[d] = 1;
  }
  return true;
}

// Calls f(output index, spans of the three dimensions) for every window of a plane. span(d, o):
// that of output o along dimension d.
template <class S, class F> void each_window(const Planes& p, S&& span, F&& f) {
  int64_t index = 0;
  for (int64_t d = 0; d < p.out[0]; ++d) {
    const Span a = span(0, d);
    for (int64_t h = 0; h < p.out[1]; ++h) {
      const Span b = span(1, h);
      for (int64_t w = 0; w < p.out[2]; ++w) f(index++, a, b, span(2, w));
    }
  }
}

template <bool Adaptive, class F> void each_window(const Planes& p, F&& f) {
  each_window(
      p, [&](int d, int64_t o) { return Adaptive ? p.adaptive(d, o) : p.strided(d, o); }, f);
}

// Calls f(element index) for every element of a window.
template <class F>
void each_element(const Planes& p, const Span& a, const Span& b, const Span& c, F&& f) {
  for (int64_t d = a.first; d < a.last; d += p.dilation[0]) {
    for (int64_t h = b.first; h < b.last; h += p.dilation[1]) {
      const int64_t row = (d * p.in[1] + h) * p.in[2];
      for (int64_t w = c.first; w < c.last; w += p.dilation[2]) f(row + w);
    }
  }
}

// The outputs o along a dimension whose windows have their element number `tap` inside the input.
struct Reach {
  int64_t first, last;  // outputs [first, last)
  int64_t element;      // that the first of them reads
};
inline Reach reach(const Planes& p, int d, int64_t tap) {
  const int64_t shift = tap * p.dilation[d] - p.padding[d], step = p.stride[d];
  const int64_t first = shift < 0 ? (-shift + step - 1) / step : 0;
  const int64_t last = shift >= p.in[d] ? 0 : (p.in[d] - 1 - shift) / step + 1;
  return {first, std::min(last, p.out[d]), first * step + shift};
}
// The outputs [first, last) whose windows see no padding along a dimension.
inline Reach inside(const Planes& p, int d) {
  Reach r = reach(p, d, 0);
  r.first = std::min(r.first, p.out[d]);
  r.last = std::max(reach(p, d, p.kernel[d] - 1).last, r.first);
  return r;
}

// Calls f(row of the input, tap, outputs) for every row of elements that a row of outputs reads,
// in the order in which a window is read.
template <class F> void each_row(const Planes& p, const Span& a, const Span& b, F&& f) {
  for (int64_t d = a.first; d < a.last; d += p.dilation[0]) {
    for (int64_t h = b.first; h < b.last; h += p.dilation[1]) {
      for (int64_t tap = 0; tap < p.kernel[2]; ++tap) {
        const Reach r = reach(p, 2, tap);
        if (r.first < r.last) f((d * p.in[1] + h) * p.in[2], r);
      }
    }
  }
}

}  // namespace taeda::cpu
