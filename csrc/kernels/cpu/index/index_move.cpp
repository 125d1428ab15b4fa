#include "kernels/cpu/index/index_move.h"

#include <algorithm>
#include <cstdlib>

#include "base/thread_pool.h"
#include "kernels/cpu/pointwise/pointwise.h"

namespace taeda::cpu {

namespace {

// Short lines that lie side by side on both sides become elements of that size, whose dtype is
// returned.
DType with_lines_as_elements(Dims& n, Dims& d, Dims& s, const void* dst, const void* src,
                             DType dtype) {
  const auto item = static_cast<int64_t>(itemsize(dtype));
  if (n.size() < 2 || d.back() != 1 || s.back() != 1) return dtype;
  const int64_t line = n.back(), bytes = line * item;
  if (bytes > 16 || (bytes & (bytes - 1)) != 0) return dtype;
  auto all =
      static_cast<int64_t>(reinterpret_cast<uintptr_t>(dst) | reinterpret_cast<uintptr_t>(src));
  for (size_t i = 0; i + 1 < n.size(); ++i) all |= (d[i] | s[i]) * item;
  if (all % bytes != 0) return dtype;
  for (Dims* dims : {&n, &d, &s}) dims->pop_back();
  for (size_t i = 0; i < n.size(); ++i) {
    d[i] /= line;
    s[i] /= line;
  }
  return dtype_of_size(bytes);
}

}  // namespace

void move_strided(void* dst, DimsRef dst_strides, const void* src, DimsRef src_strides,
                  DimsRef sizes, DType dtype) {
  // From the longest step in dst to the shortest. Dimensions that continue one another are joined.
  Dims order;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) return;
    if (sizes[i] > 1) order.push_back(static_cast<int64_t>(i));
  }
  auto step = [&](int64_t i) { return std::abs(dst_strides[static_cast<size_t>(i)]); };
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t i, int64_t j) { return step(i) > step(j); });
  Dims n, d, s;
  for (const int64_t dim : order) {
    const auto i = static_cast<size_t>(dim);
    if (!n.empty() && d.back() == dst_strides[i] * sizes[i] &&
        s.back() == src_strides[i] * sizes[i]) {
      n.back() *= sizes[i];
      d.back() = dst_strides[i];
      s.back() = src_strides[i];
    } else {
      n.push_back(sizes[i]);
      d.push_back(dst_strides[i]);
      s.push_back(src_strides[i]);
    }
  }
  dtype = with_lines_as_elements(n, d, s, dst, src, dtype);
  if (n.empty()) {
    n = {1};
    d = {1};
    s = {1};
  }
  if (n.size() == 1) {
    n.insert(0, 1);
    d.insert(0, 0);
    s.insert(0, 0);
  }
  // Tiles of the last two dimensions: several lines, or a part of a long one.
  constexpr int64_t most = 32768;
  const auto item = static_cast<int64_t>(itemsize(dtype));
  const size_t last = n.size() - 1;
  const int64_t line = n[last], rows = n[last - 1], part = std::min(line, most);
  const int64_t together = std::clamp<int64_t>(most / part, 1, rows);
  const int64_t parts = (line + part - 1) / part, groups = (rows + together - 1) / together;
  const auto kind = static_cast<uint8_t>(dtype);
  int64_t planes = 1;
  for (size_t i = 0; i + 2 < n.size(); ++i) planes *= n[i];
  const int64_t grain = std::max<int64_t>(1, most / (part * together));
  parallel_for(planes * groups * parts, grain, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t first = t % parts * part, row = t / parts % groups * together;
      int64_t rest = t / parts / groups, to = first * d[last] + row * d[last - 1],
              from = first * s[last] + row * s[last - 1];
      for (size_t i = last - 1; i-- > 0;) {
        const int64_t at = rest % n[i];
        rest /= n[i];
        to += at * d[i];
        from += at * s[i];
      }
      cast_rows(kind, kind, static_cast<char*>(dst) + to * item, d[last] * item, d[last - 1] * item,
                static_cast<const char*>(src) + from * item, s[last] * item, s[last - 1] * item,
                std::min(part, line - first), std::min(together, rows - row));
    }
  });
}

}  // namespace taeda::cpu
