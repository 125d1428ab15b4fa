// Keys of a line, and the lines that are sorted.
#pragma once

#include <algorithm>
#include <utility>

#include "base/thread_pool.h"
#include "kernels/cpu/index/extremes.h"
#include "kernels/sort.h"
#include "kernels/sort_keys.h"

namespace taeda::cpu {

using namespace sort_keys;

template <class T>
[[gnu::optimize("O3"), gnu::noinline]] void write_keys(const T* x, int64_t stride, int64_t n,
                                                       Bits<T> flip, Bits<T>* keys) {
  for (int64_t j = 0; j < n; ++j) keys[j] = static_cast<Bits<T>>(key_of(x[j * stride]) ^ flip);
}

struct Line {
  int64_t x = 0, out = 0;
};
inline Line line_at(const SortLines& l, int64_t index) {
  Line r;
  for (size_t i = l.outer.size(); i-- > 0;) {
    const int64_t at =
        i > 0 ? index % l.outer[i] : index;  // a division costs as much as a few elements
    if (i > 0) index /= l.outer[i];
    r.x += at * l.x_strides[i];
    r.out += at * l.out_strides[i];
  }
  return r;
}
template <class F> void for_each_line(const SortLines& l, F&& f) {
  int64_t lines = 1;
  for (int64_t s : l.outer) lines *= s;
  parallel_for(lines, 4096 / std::max<int64_t>(l.n, 1), std::forward<F>(f));
}

// f(tag of the element type)
template <class F> void visit_sortable(DType dtype, F&& f) {
  visit_real(dtype == DType::Bool ? DType::UInt8 : dtype, "sort", [&](auto tag) {
    if constexpr (!std::is_same_v<typename decltype(tag)::type, bool>) f(tag);
  });
}

// The k first of each line in ascending (descending) order, with their indices; in that order where
// `ordered`.
void first_of_lines(const void* x, void* values, int64_t* indices, const SortLines& l, DType dtype,
                    bool descending, bool ordered);

}  // namespace taeda::cpu
