#include "kernels/cpu/scatter.h"

#include <atomic>

#include "base/thread_pool.h"
#include "kernels/cpu/index.h"

namespace taeda::cpu {
namespace {

constexpr int64_t kGrain = 16384;
constexpr int64_t kNear = 32768;  // bytes that the nearest cache holds

// The dimensions as (outer..., dim, last): all but `dim` may be shared out between threads.
struct Walk {
  Dims outer, outer_index, outer_target, outer_other;
  int64_t n = 1, n_index = 0, n_target = 0, n_other = 0;              // along dim
  int64_t last = 1, last_index = 0, last_target = 0, last_other = 0;  // the last other dimension
  int64_t outer_count = 1;
};

Walk walk_of(const ScatterLayout& l) {
  Walk w;
  size_t nd = l.sizes.size();
  if (nd == 0) return w;
  w.n = l.sizes[l.dim];
  w.n_index = l.index_strides[l.dim];
  w.n_target = l.target_strides[l.dim];
  w.n_other = l.other_strides[l.dim];
  size_t last = nd;  // the last dimension that is not dim, where it comes after dim
  if (l.dim != nd - 1) {
    last = nd - 1;
    w.last = l.sizes[last];
    w.last_index = l.index_strides[last];
    w.last_target = l.target_strides[last];
    w.last_other = l.other_strides[last];
  }
  for (size_t d = 0; d < nd; ++d) {
    if (d == l.dim || d == last) continue;
    w.outer.push_back(l.sizes[d]);
    w.outer_index.push_back(l.index_strides[d]);
    w.outer_target.push_back(l.target_strides[d]);
    w.outer_other.push_back(l.other_strides[d]);
    w.outer_count *= l.sizes[d];
  }
  return w;
}

// f(index, target offset, other offset, count, index stride, target stride, other stride, stride
// along dim), for lines that run along dim (where nothing comes after it) or along the last
// dimension at one place of dim. `Cut`: lines along dim may be cut too, as nothing meets.
template <bool Cut, class F> void for_each_line(const ScatterLayout& l, F&& f) {
  Walk w = walk_of(l);
  if (w.outer_count == 0 || w.n == 0 || w.last == 0) return;
  const bool along_dim = w.last == 1;
  const int64_t length = along_dim ? w.n : w.last;
  const int64_t part = along_dim
                           ? (Cut ? kGrain : w.n)
                           : std::clamp<int64_t>(kGrain / w.n, std::max<int64_t>(256, w.last / 8),
                                                 std::max<int64_t>(w.last, 256));
  const int64_t parts = (length + part - 1) / part;
  const int64_t work = std::min(part, length) * (along_dim ? 1 : w.n);
  parallel_for(w.outer_count * parts, std::max<int64_t>(1, kGrain / work),
               [&](int64_t begin, int64_t end) {
                 for (int64_t t = begin; t < end; ++t) {
                   int64_t rest = parts > 1 ? t / parts : t, i = 0, x = 0, o = 0;
                   for (size_t d = w.outer.size(); d-- > 0;) {
                     const int64_t at = d > 0 ? rest % w.outer[d] : rest;
                     if (d > 0) rest /= w.outer[d];
                     i += at * w.outer_index[d];
                     x += at * w.outer_target[d];
                     o += at * w.outer_other[d];
                   }
                   const int64_t from = parts > 1 ? t % parts * part : 0,
                                 count = std::min(part, length - from);
                   if (along_dim) {
                     f(l.index + i + from * w.n_index, x, o + from * w.n_other, count, w.n_index,
                       int64_t(0), w.n_other, w.n_target);
                     continue;
                   }
                   i += from * w.last_index;
                   x += from * w.last_target;
                   o += from * w.last_other;
                   for (int64_t k = 0; k < w.n; ++k) {
                     f(l.index + i + k * w.n_index, x, o + k * w.n_other, count, w.last_index,
                       w.last_target, w.last_other, w.n_target);
                   }
                 }
               });
}

// Asks for a line of few bytes that is about to be met in any order, which nothing could foresee.
template <class T> void ask_for(const T* line, int64_t size, int64_t times) {
  constexpr int64_t step = 64 / static_cast<int64_t>(sizeof(T));
  if (size > kNear / static_cast<int64_t>(sizeof(T)) || times * 4 < size) return;
  for (int64_t i = 0; i < size; i += step) __builtin_prefetch(line + i);
}

template <class T>
constexpr bool kComplex = std::is_same_v<T, cfloat> || std::is_same_v<T, cdouble>;

template <ScatterMode Mode, class T> T combined(T a, T b) {
  if constexpr (Mode == ScatterMode::Add) {
    if constexpr (std::is_same_v<T, bool>) return a || b;
    else return static_cast<T>(a + b);
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

template <ScatterMode Mode, class T>
[[gnu::optimize("O3"), gnu::noinline]] void combine_rows(T* __restrict to, const T* __restrict from,
                                                         int64_t n) {
  for (int64_t j = 0; j < n; ++j) to[j] = combined<Mode, T>(to[j], from[j]);
}

template <ScatterMode Mode>
void scatter_with(void* target, const void* src, const ScatterLayout& l, DType dtype) {
  visit_all(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto* to = static_cast<T*>(target);
    auto* from = static_cast<const T*>(src);
    for_each_line<false>(l, [&](const int64_t* index, int64_t x, int64_t o, int64_t n, int64_t is,
                                int64_t xs, int64_t os, int64_t step) {
      if (is == 0 && xs == 1 && os == 1) {  // a row goes to a row
        combine_rows<Mode>(to + x + *index * step, from + o, n);
        return;
      }
      if (is == 1 && os == 1 && xs == 0 && step == 1) {
        T* line = to + x;
        ask_for(line, l.size, n);
        for (int64_t j = 0; j < n; ++j)
          line[index[j]] = combined<Mode, T>(line[index[j]], from[o + j]);
        return;
      }
      for (int64_t j = 0; j < n; ++j) {
        T& t = to[x + j * xs + index[j * is] * step];
        t = combined<Mode, T>(t, from[o + j * os]);
      }
    });
  });
}

// One line of gather from few bytes, which need not be asked for.
template <class T>
bool gather_near(T* to, const T* from, const int64_t* index, int64_t n, int64_t size) {
  constexpr int64_t part = 512;
  ask_for(from, size, n);
  for (int64_t first = 0; first < n; first += part) {
    const int64_t last = std::min(first + part, n);
    if (any_outside(index + first, last - first, 0, size)) return false;
    for (int64_t j = first; j < last; ++j) to[j] = from[index[j]];
  }
  return true;
}

// One line of gather. Each index is looked at a little before it is used: whether it is within
// bounds, and to ask for the memory that it leads to.
template <class T>
bool gather_line(T* to, int64_t os, const T* from, int64_t xs, const int64_t* index, int64_t is,
                 int64_t step, int64_t n, int64_t size) {
  constexpr int64_t ahead = 64;
  bool outside = false;
  const auto look = [&](int64_t j) {
    const int64_t i = index[j * is];
    outside |= static_cast<uint64_t>(i) >= static_cast<uint64_t>(size);
    __builtin_prefetch(from + j * xs + i * step);
  };
  const auto move = [&](int64_t j) { to[j * os] = from[j * xs + index[j * is] * step]; };
  for (int64_t j = 0; j < std::min(ahead, n); ++j) look(j);
  for (int64_t first = 0; first < n; first += ahead) {
    if (outside) return false;
    const int64_t both = std::clamp<int64_t>(n - first - ahead, 0, ahead);
    for (int64_t j = first; j < first + both; ++j) {
      look(j + ahead);
      move(j);
    }
    for (int64_t j = first + both; j < std::min(first + ahead, n); ++j) move(j);
  }
  return true;
}

}  // namespace

bool gather(void* out, const void* x_data, const ScatterLayout& l, DType dtype) {
  const int64_t size = l.size;
  std::atomic<bool> outside{false};
  visit_bytes(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto* to = static_cast<T*>(out);
    auto* from = static_cast<const T*>(x_data);
    for_each_line<true>(l, [&](const int64_t* index, int64_t x, int64_t o, int64_t n, int64_t is,
                               int64_t xs, int64_t os, int64_t step) {
      if (is == 0 && xs == 1 && os == 1) {  // a row of x
        if (static_cast<uint64_t>(*index) >= static_cast<uint64_t>(size))
          outside.store(true, std::memory_order_relaxed);
        else std::copy_n(from + x + *index * step, n, to + o);
        return;
      }
      const bool dense = is == 1 && os == 1 && xs == 0 && step == 1;
      const bool within = dense && size <= kNear / static_cast<int64_t>(sizeof(T))
                              ? gather_near(to + o, from + x, index, n, size)
                          : dense ? gather_line(to + o, 1, from + x, 0, index, 1, 1, n, size)
                                  : gather_line(to + o, os, from + x, xs, index, is, step, n, size);
      if (!within) outside.store(true, std::memory_order_relaxed);
    });
  });
  return !outside;
}

void scatter(void* target, const void* src, const ScatterLayout& l, DType dtype, ScatterMode mode) {
  switch (mode) {
    case ScatterMode::Copy:
      visit_bytes(dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        auto* to = static_cast<T*>(target);
        auto* from = static_cast<const T*>(src);
        for_each_line<false>(l, [&](const int64_t* index, int64_t x, int64_t o, int64_t n,
                                    int64_t is, int64_t xs, int64_t os, int64_t step) {
          if (is == 1 && os == 1 && xs == 0 && step == 1) {
            ask_for(to + x, l.size, n);
            for (int64_t j = 0; j < n; ++j) to[x + index[j]] = from[o + j];
            return;
          }
          for (int64_t j = 0; j < n; ++j) to[x + j * xs + index[j * is] * step] = from[o + j * os];
        });
      });
      return;
    case ScatterMode::Add: return scatter_with<ScatterMode::Add>(target, src, l, dtype);
    case ScatterMode::Multiply: return scatter_with<ScatterMode::Multiply>(target, src, l, dtype);
    case ScatterMode::Max: return scatter_with<ScatterMode::Max>(target, src, l, dtype);
    case ScatterMode::Min: return scatter_with<ScatterMode::Min>(target, src, l, dtype);
  }
}

}  // namespace taeda::cpu
