#include "kernels/cpu/index_move.h"

#include <cstring>

#include "base/thread_pool.h"

namespace taeda::cpu {
namespace {

template <class T> void move_line(T* dst, int64_t ds, const T* src, int64_t ss, int64_t n) {
  if (ds == 1 && ss == 1) {
    std::memcpy(dst, src, static_cast<size_t>(n) * sizeof(T));
  } else if (ds == 1 && ss == 0) {
    std::fill_n(dst, n, *src);
  } else if (ds == 1 && ss == -1) {
    for (int64_t i = 0; i < n; ++i) dst[i] = src[-i];
  } else {
    for (int64_t i = 0; i < n; ++i) dst[i * ds] = src[i * ss];
  }
}

}  // namespace

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
  int64_t line = n.back(), line_d = d.back(), line_s = s.back(), lines = 1;
  n.pop_back();
  for (int64_t k : n) lines *= k;
  visit_bytes(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    parallel_for(lines, std::max<int64_t>(1, 32768 / line), [&](int64_t begin, int64_t end) {
      for (int64_t l = begin; l < end; ++l) {
        int64_t rest = l, to = 0, from = 0;
        for (size_t i = n.size(); i-- > 0;) {
          int64_t at = rest % n[i];
          rest /= n[i];
          to += at * d[i];
          from += at * s[i];
        }
        move_line(static_cast<T*>(dst) + to, line_d, static_cast<const T*>(src) + from, line_s,
                  line);
      }
    });
  });
}

}  // namespace taeda::cpu
