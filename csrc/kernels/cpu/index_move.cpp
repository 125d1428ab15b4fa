#include "kernels/cpu/index_move.h"

#include "base/thread_pool.h"
#include "kernels/cpu/pointwise.h"

namespace taeda::cpu {

void move_strided(void* dst, DimsRef dst_strides, const void* src, DimsRef src_strides,
                  DimsRef sizes, DType dtype) {
  // Dimensions that continue one another are joined.
  Dims n, d, s;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) return;
    if (sizes[i] == 1) continue;
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
  if (n.empty()) {
    n = {1};
    d = {1};
    s = {1};
  }
  // Lines along the last dimension, long ones in several parts.
  const int64_t line = n.back(), part = std::min<int64_t>(line, 32768);
  const auto item = static_cast<int64_t>(itemsize(dtype));
  const int64_t line_d = d.back() * item, line_s = s.back() * item;
  const int64_t parts = (line + part - 1) / part;
  const Cast move = loops().cast[static_cast<int>(dtype)][static_cast<int>(dtype)];
  n.pop_back();
  int64_t lines = 1;
  for (int64_t k : n) lines *= k;
  parallel_for(lines * parts, std::max<int64_t>(1, 32768 / part), [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      const int64_t first = p % parts * part;
      int64_t rest = p / parts, to = first * line_d, from = first * line_s;
      for (size_t i = n.size(); i-- > 0;) {
        const int64_t at = rest % n[i];
        rest /= n[i];
        to += at * d[i] * item;
        from += at * s[i] * item;
      }
      move(static_cast<char*>(dst) + to, line_d, 0, static_cast<const char*>(src) + from, line_s, 0,
           std::min(part, line - first), 1);
    }
  });
}

}  // namespace taeda::cpu
