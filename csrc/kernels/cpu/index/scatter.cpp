#include "kernels/cpu/index/scatter.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/cpu/index/element_sum.h"
#include "kernels/cpu/index/simd/combine.h"

namespace taeda::cpu {
namespace {

constexpr int64_t kGrain = 16384;

// Lines of n elements, `rows` of them beside one another. An element's place in the target is its
// offset and what the index says of it, times `stride`.
struct Lines {
  const int64_t* index = nullptr;
  int64_t target = 0, other = 0;  // offsets of the first element
  int64_t rows = 1, row_index = 0, row_target = 0, row_other = 0;
  int64_t n = 1, step_index = 0, step_target = 0, step_other = 0;
  int64_t stride = 0;

  bool dense() const {  // each line by itself
    return step_index == 1 && step_other == 1 && step_target == 0 && stride == 1;
  }
  bool whole_rows() const { return step_index == 0 && step_target == 1 && step_other == 1; }
};

// The index's dimensions: `dim`, the last one where that is another, and all others, of which those
// that lie as one are put together.
struct Walk {
  struct Axis {
    int64_t n = 1, index = 0, target = 0, other = 0;
  };
  std::vector<Axis> outer;
  Axis dim, last;
  bool along_dim = true;
  int64_t outer_count = 1;
};

Walk walk_of(const ScatterLayout& l) {
  Walk w;
  const size_t nd = l.sizes.size();
  if (nd == 0) return w;
  const auto axis = [&l](size_t d) {
    return Walk::Axis{l.sizes[d], l.index_strides[d], l.target_strides[d], l.other_strides[d]};
  };
  w.dim = axis(l.dim);
  size_t last = nd;  // the last dimension that is worth a loop, if it is not dim
  for (size_t d = nd; d-- > 0 && d != l.dim;) {
    if (l.sizes[d] == 1) continue;
    last = d;
    w.last = axis(d);
    w.along_dim = false;
    break;
  }
  for (size_t d = 0; d < nd; ++d) {
    if (d == l.dim || d == last) continue;
    const Walk::Axis a = axis(d);
    if (a.n == 1) continue;
    w.outer_count *= a.n;
    if (!w.outer.empty()) {
      Walk::Axis& b = w.outer.back();
      if (b.index == a.n * a.index && b.target == a.n * a.target && b.other == a.n * a.other) {
        b = {b.n * a.n, a.index, a.target, a.other};
        continue;
      }
    }
    w.outer.push_back(a);
  }
  return w;
}

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// f(lines) for lines along dim (where nothing comes after it), or along the last dimension at the
// places of dim in order. `Cut`: places of dim may be shared out too, as nothing meets.
template <bool Cut, class F> void for_lines(const ScatterLayout& l, F&& f) {
  Walk w = walk_of(l);
  if (w.outer_count == 0 || w.dim.n == 0 || w.last.n == 0) return;
  const int64_t stride = w.dim.target;
  Walk::Axis line = w.along_dim ? w.dim : w.last, row = w.dim;
  bool apart = Cut;  // rows do not meet
  (w.along_dim ? line : row).target = 0;
  if (w.along_dim || row.n == 1) {
    row = {};
    apart = true;
    if (!w.outer.empty()) {
      row = w.outer.back();
      w.outer.pop_back();
      w.outer_count /= row.n;
    }
    if (line.n == 1) std::swap(line, row);
  }
  // Rows, and parts of lines, that are dealt out.
  const bool cut_line = Cut || line.target != 0, cut_rows = apart;
  int64_t part = line.n, rows = row.n;
  if (cut_line) {
    part =
        std::min(part, w.along_dim || Cut
                           ? kGrain
                           : std::clamp<int64_t>(kGrain / row.n, std::max<int64_t>(256, line.n / 8),
                                                 std::max<int64_t>(line.n, 256)));
  }
  if (cut_rows) rows = std::clamp<int64_t>(kGrain / part, 1, row.n);
  const int64_t parts = ceil_div(line.n, part), groups = ceil_div(row.n, rows);
  parallel_for(w.outer_count * groups * parts, std::max<int64_t>(1, kGrain / (part * rows)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t t = begin; t < end; ++t) {
                   int64_t rest = t;
                   const int64_t from = rest % parts * part;
                   rest /= parts;
                   const int64_t first = rest % groups * rows;
                   rest /= groups;
                   Lines x{.index = l.index + from * line.index + first * row.index,
                           .target = from * line.target + first * row.target,
                           .other = from * line.other + first * row.other,
                           .rows = std::min(rows, row.n - first),
                           .row_index = row.index,
                           .row_target = row.target,
                           .row_other = row.other,
                           .n = std::min(part, line.n - from),
                           .step_index = line.index,
                           .step_target = line.target,
                           .step_other = line.other,
                           .stride = stride};
                   for (size_t d = w.outer.size(); d-- > 0;) {
                     const int64_t at = rest % w.outer[d].n;
                     rest /= w.outer[d].n;
                     x.index += at * w.outer[d].index;
                     x.target += at * w.outer[d].target;
                     x.other += at * w.outer[d].other;
                   }
                   f(x);
                 }
               });
}

template <class T>
constexpr bool kComplex = std::is_same_v<T, cfloat> || std::is_same_v<T, cdouble>;

template <ScatterMode Mode, class T> T combined(T a, T b) {
  if constexpr (Mode == ScatterMode::Add) {
    return sum_of(a, b);
  } else if constexpr (Mode == ScatterMode::Multiply) {
    if constexpr (std::is_same_v<T, bool>) return a && b;
    else return static_cast<T>(a * b);
  } else if constexpr (kComplex<T>) {
    return b;  // refused by the caller
  } else if constexpr (Mode == ScatterMode::Max) {
    return a != a || a > b ? a : b;
  } else {
    return a != a || a < b ? a : b;
  }
}

template <class T> void copy_row(T* to, const T* from, int64_t n) {
  if (n >= 16) {
    std::memcpy(to, from, static_cast<size_t>(n) * sizeof(T));
  } else {
    for (int64_t j = 0; j < n; ++j) to[j] = from[j];
  }
}

// f(target element, element of the dense side), one by one. Returns false at the first index that
// lies outside of `size` places.
template <class T, class U, class F>
bool each_element(T* target, U* other, const Lines& l, int64_t size, F&& f) {
  const auto places = static_cast<uint64_t>(size);
  for (int64_t r = 0; r < l.rows; ++r) {
    T* t = target + l.target + r * l.row_target;
    U* o = other + l.other + r * l.row_other;
    const int64_t* index = l.index + r * l.row_index;
    if (l.dense()) {
#pragma GCC unroll 4
      for (int64_t j = 0; j < l.n; ++j) {
        const int64_t at = index[j];
        if (static_cast<uint64_t>(at) >= places) return false;
        f(t[at], o[j]);
      }
    } else {
#pragma GCC unroll 4
      for (int64_t j = 0; j < l.n; ++j) {
        const int64_t at = index[j * l.step_index];
        if (static_cast<uint64_t>(at) >= places) return false;
        f(t[j * l.step_target + at * l.stride], o[j * l.step_other]);
      }
    }
  }
  return true;
}

template <ScatterMode Mode> simd::Combine row_combination(DType dtype) {
  using namespace simd;
  const Combination mode = Mode == ScatterMode::Add        ? kAdd
                           : Mode == ScatterMode::Multiply ? kMultiply
                           : Mode == ScatterMode::Max      ? kMax
                                                           : kMin;
  return TAEDA_PICK(index_kernels).combine[mode][static_cast<int>(dtype)];
}

// f(row of the target, row of the dense side); see each_element. The next row's first lines are
// asked for: nobody could guess where they are.
template <class T, class U, class F>
bool each_row(T* target, U* other, const Lines& l, int64_t size, F&& f) {
  constexpr int64_t line = 64 / sizeof(T);
  const int64_t asked = std::min(l.n, 16 * line);
  for (int64_t r = 0; r < l.rows; ++r) {
    if (r + 1 < l.rows) {
      const T* next =
          target + l.target + (r + 1) * l.row_target + l.index[(r + 1) * l.row_index] * l.stride;
      for (int64_t j = 0; j < asked; j += line) __builtin_prefetch(next + j);
    }
    const int64_t at = l.index[r * l.row_index];
    if (static_cast<uint64_t>(at) >= static_cast<uint64_t>(size)) return false;
    f(target + l.target + r * l.row_target + at * l.stride, other + l.other + r * l.row_other);
  }
  return true;
}

template <ScatterMode Mode>
bool scatter_with(void* target, const void* src, const ScatterLayout& l, DType dtype) {
  const simd::Combine combine = row_combination<Mode>(dtype);
  std::atomic<bool> outside{false};
  visit_all(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto* to = static_cast<T*>(target);
    auto* from = static_cast<const T*>(src);
    for_lines<false>(l, [&](const Lines& x) {
      const bool within =
          x.whole_rows() && x.n >= 16
              ? each_row(to, from, x, l.size, [&](T* t, const T* o) { combine(t, o, x.n); })
              : each_element(to, from, x, l.size,
                             [](T& t, const T& o) { t = combined<Mode, T>(t, o); });
      if (!within) outside.store(true, std::memory_order_relaxed);
    });
  });
  return !outside;
}

}  // namespace

bool gather(void* out, const void* x_data, const ScatterLayout& l, DType dtype) {
  std::atomic<bool> outside{false};
  visit_bytes(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto* to = static_cast<T*>(out);
    auto* from = static_cast<const T*>(x_data);
    for_lines<true>(l, [&](const Lines& x) {
      const bool within =
          x.whole_rows() && x.n > 1
              ? each_row(from, to, x, l.size, [&](const T* t, T* o) { copy_row(o, t, x.n); })
              : each_element(from, to, x, l.size, [](const T& t, T& o) { o = t; });
      if (!within) outside.store(true, std::memory_order_relaxed);
    });
  });
  return !outside;
}

bool scatter(void* target, const void* src, const ScatterLayout& l, DType dtype, ScatterMode mode) {
  switch (mode) {
    case ScatterMode::Add: return scatter_with<ScatterMode::Add>(target, src, l, dtype);
    case ScatterMode::Multiply: return scatter_with<ScatterMode::Multiply>(target, src, l, dtype);
    case ScatterMode::Max: return scatter_with<ScatterMode::Max>(target, src, l, dtype);
    case ScatterMode::Min: return scatter_with<ScatterMode::Min>(target, src, l, dtype);
    case ScatterMode::Copy: break;
  }
  std::atomic<bool> outside{false};
  visit_bytes(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto* to = static_cast<T*>(target);
    auto* from = static_cast<const T*>(src);
    for_lines<false>(l, [&](const Lines& x) {
      const bool within =
          x.whole_rows() && x.n > 1
              ? each_row(to, from, x, l.size, [&](T* t, const T* o) { copy_row(t, o, x.n); })
              : each_element(to, from, x, l.size, [](T& t, const T& o) { t = o; });
      if (!within) outside.store(true, std::memory_order_relaxed);
    });
  });
  return !outside;
}

}  // namespace taeda::cpu
