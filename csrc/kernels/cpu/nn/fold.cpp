#include "kernels/fold.h"

#include <algorithm>

#include "base/thread_pool.h"

namespace taeda::cpu {
namespace {

// The places [first, last) along a dimension whose windows have element `tap` inside; the first of
// them reads `at`.
struct Inside {
  int64_t first, last, at;
};
Inside inside(const FoldShape& s, int d, int64_t tap) {
  const int64_t shift = tap * s.dilation[d] - s.padding[d], step = s.stride[d];
  const int64_t first = shift < 0 ? std::min((-shift + step - 1) / step, s.out[d]) : 0;
  const int64_t last = shift >= s.in[d] ? 0 : std::min((s.in[d] - 1 - shift) / step + 1, s.out[d]);
  return {first, std::max(first, last), first * step + shift};
}

// f(plane of x, plane's columns) for all planes, several at once.
template <class F> void each_plane(const FoldShape& s, F&& f) {
  const int64_t volume = s.in[0] * s.in[1];
  const int64_t columns = s.kernel[0] * s.kernel[1] * s.out[0] * s.out[1];
  parallel_each(s.planes, 32768 / std::max<int64_t>(1, columns + volume),
                [&](int64_t p) { f(p * volume, p * columns); });
}

// f(rows, columns, number of the tap) for the taps of a window.
template <class F> void each_tap(const FoldShape& s, F&& f) {
  for (int64_t i = 0; i < s.kernel[0]; ++i) {
    for (int64_t j = 0; j < s.kernel[1]; ++j)
      f(inside(s, 0, i), inside(s, 1, j), i * s.kernel[1] + j);
  }
}

template <class T>
[[gnu::optimize("O3"), gnu::noinline]] void pick(const T* __restrict from, int64_t step, int64_t n,
                                                 T* __restrict to) {
  if (step == 1) std::copy_n(from, n, to);
  else if (step == 2) {
    for (int64_t i = 0; i < n; ++i) to[i] = from[2 * i];
  } else {
    for (int64_t i = 0; i < n; ++i) to[i] = from[step * i];
  }
}

template <class T>
[[gnu::optimize("O3"), gnu::noinline]] void add(const T* __restrict from, int64_t step, int64_t n,
                                                T* __restrict to) {
  const auto sum = [](T a, T b) {
    if constexpr (std::is_same_v<T, bool>) return a || b;
    else return static_cast<T>(a + b);
  };
  if (step == 1) {
    for (int64_t i = 0; i < n; ++i) to[i] = sum(to[i], from[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) to[step * i] = sum(to[step * i], from[i]);
  }
}

void to_columns(const FoldShape& s, const void* x, void* columns, DType dtype) {
  visit_bytes(dtype, [&]<class T>(Tag<T>) {
    const int64_t places = s.out[0] * s.out[1], width = s.out[1];
    each_plane(s, [&](int64_t plane, int64_t column) {
      const T* from = static_cast<const T*>(x) + plane;
      each_tap(s, [&](const Inside& rows, const Inside& line, int64_t tap) {
        T* to = static_cast<T*>(columns) + column + tap * places;
        std::fill_n(to, rows.first * width, T());
        for (int64_t r = rows.first; r < rows.last; ++r) {
          const int64_t row = rows.at + (r - rows.first) * s.stride[0];
          std::fill_n(to + r * width, line.first, T());
          pick(from + row * s.in[1] + line.at, s.stride[1], line.last - line.first,
               to + r * width + line.first);
          std::fill_n(to + r * width + line.last, width - line.last, T());
        }
        std::fill(to + rows.last * width, to + places, T());
      });
    });
  });
}

void from_columns(const FoldShape& s, const void* columns, void* x, DType dtype) {
  visit_all(dtype, [&]<class T>(Tag<T>) {
    const int64_t places = s.out[0] * s.out[1], width = s.out[1];
    each_plane(s, [&](int64_t plane, int64_t column) {
      T* to = static_cast<T*>(x) + plane;
      std::fill_n(to, s.in[0] * s.in[1], T());
      each_tap(s, [&](const Inside& rows, const Inside& line, int64_t tap) {
        const T* from = static_cast<const T*>(columns) + column + tap * places;
        for (int64_t r = rows.first; r < rows.last; ++r) {
          const int64_t row = rows.at + (r - rows.first) * s.stride[0];
          add(from + r * width + line.first, s.stride[1], line.last - line.first,
              to + row * s.in[1] + line.at);
        }
      });
    });
  });
}

}  // namespace
}  // namespace taeda::cpu

const taeda::FoldKernels taeda::FoldKernels::cpu = {cpu::to_columns, cpu::from_columns};
