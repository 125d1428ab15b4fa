// Which elements the windows of a pool read.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/pool.h"

namespace taeda {

// The elements of a dimension that an output reads: first, first + dilation, ... below last.
struct PoolSpan {
  int64_t first, last;
  int64_t padded;  // how many with those of the padding
};

// A shape of always three dimensions, outermost first.
struct PoolWindows {
  int64_t in[3], out[3], kernel[3], stride[3], padding[3], dilation[3];
  int64_t in_volume = 1, out_volume = 1, window = 1;
  int64_t channels = 1;            // elements at each position that an index counts
  std::vector<PoolSpan> spans[3];  // of all outputs, where windows are not all alike

  explicit PoolWindows(const PoolShape& s) {
    for (int d = 0; d < 3; ++d) {
      const int from = d - (3 - s.spatial);
      const bool used = from >= 0, given = used && !s.adaptive;
      in[d] = used ? s.in[from] : 1;
      out[d] = used ? s.out[from] : 1;
      const int64_t share = in[d] / std::max<int64_t>(1, out[d]);
      // Adaptive windows that are all alike are those of a strided pool; narrow ones along a row.
      const bool alike = !s.adaptive || (share > 0 && in[d] == share * out[d] &&
                                         (d < 2 || (out[d] >= 4 && share <= 2)));
      kernel[d] = given ? s.kernel[from] : share + !alike;
      stride[d] = given ? s.stride[from] : std::max<int64_t>(1, share);
      padding[d] = given ? s.padding[from] : 0;
      dilation[d] = given ? s.dilation[from] : 1;
      in_volume *= in[d];
      out_volume *= out[d];
      window *= kernel[d];
      for (int64_t o = 0; !alike && o < out[d]; ++o) {
        const int64_t first = o * in[d] / out[d], end = ((o + 1) * in[d] + out[d] - 1) / out[d];
        spans[d].push_back({first, end, end - first});
      }
    }
    if (s.channels_last) channels = in[2];
  }
  // Elements from the first to the last one that a window, or all of them, read with the padding.
  int64_t extent(int d) const { return (kernel[d] - 1) * dilation[d] + 1; }
  int64_t whole_extent(int d) const { return (out[d] - 1) * stride[d] + extent(d); }

  PoolSpan span(int d, int64_t o) const {
    if (!spans[d].empty()) return spans[d][static_cast<size_t>(o)];
    int64_t first = o * stride[d] - padding[d];
    const int64_t last = std::min(first + extent(d), in[d]);
    // A window may hang over the padded end too; what lies there counts for nothing.
    const int64_t padded = std::min(first + kernel[d], in[d] + padding[d]) - first;
    if (first < 0) first += (-first + dilation[d] - 1) / dilation[d] * dilation[d];
    return {first, last, padded};
  }
  int64_t row(int64_t d, int64_t h) const { return (d * in[1] + h) * in[2]; }
};

// Where the windows along one dimension begin. False where one would reach out of the plane.
template <class T>
bool fractional_spans(T sample, int64_t in, int64_t kernel, std::vector<PoolSpan>& spans) {
  if (!(std::abs(sample) < T(1 << 20))) return false;
  const int64_t last = in - kernel, out = static_cast<int64_t>(spans.size());
  const T step =
      out > 1 ? static_cast<T>(static_cast<double>(last) / static_cast<double>(out - 1)) : T(0);
  const auto shift = static_cast<int64_t>(sample * step);
  bool inside = true;
  for (int64_t i = 0; i < out; ++i) {
    int64_t first = static_cast<int64_t>((static_cast<T>(i) + sample) * step) - shift;
    if (i + 1 == out) first = last;
    spans[static_cast<size_t>(i)] = {first, first + kernel, kernel};
    inside &= first >= 0 && first <= last;
  }
  return inside;
}

}  // namespace taeda
