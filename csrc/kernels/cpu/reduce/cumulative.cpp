#include "kernels/cpu/reduce/cumulative.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/cpu/common/scratch.h"
#include "kernels/cpu/pointwise/pointwise.h"
#include "kernels/cpu/reduce/simd/scan.h"
#include "kernels/cpu/simd/pick.h"

namespace taeda::cpu {
namespace simd {
namespace {
const ScanKernels& scan_loops() { return TAEDA_PICK(scan_kernels); }
}  // namespace
}  // namespace simd
namespace {

constexpr int64_t kBlock = simd::kScanColumns;  // inner indices that are scanned together

template <class T> struct Accumulator {
  using type = T;
};
template <> struct Accumulator<float> {
  using type = double;
};
template <> struct Accumulator<Half> {
  using type = float;
};
template <> struct Accumulator<BFloat16> {
  using type = float;
};
template <> struct Accumulator<cfloat> {
  using type = cdouble;
};

template <class T>
constexpr bool kComplex = std::is_same_v<T, cfloat> || std::is_same_v<T, cdouble>;

// f(offset of the first element, width), for blocks of inner indices
template <class F> void for_each_block(ScanShape s, F&& f) {
  if (s.outer == 0 || s.n == 0 || s.inner == 0) return;
  int64_t blocks = (s.inner + kBlock - 1) / kBlock;
  parallel_for(s.outer * blocks, std::max<int64_t>(1, 16384 / (s.n * std::min(s.inner, kBlock))),
               [&](int64_t begin, int64_t end) {
                 for (int64_t t = begin; t < end; ++t) {
                   int64_t from = t % blocks * kBlock;
                   f(t / blocks * s.n * s.inner + from, std::min(kBlock, s.inner - from));
                 }
               });
}

template <class A> A log_add(A a, A b) {
  if constexpr (kComplex<A>) {
    if (a.real() < b.real()) std::swap(a, b);
    if (std::isinf(a.real()) && a.real() < 0) return a;
    return a + std::log(A(1) + std::exp(b - a));
  } else {
    if (a != a || b != b) return a + b;
    A most = std::max(a, b), least = std::min(a, b);
    if (std::isinf(most)) return most;
    return most + std::log1p(std::exp(least - most));
  }
}

template <class T> constexpr bool kHalf = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

// n1 rows of n0 elements, d and s elements apart.
template <class D, class S>
void convert(D* dst, int64_t d, const S* src, int64_t s, int64_t n0, int64_t n1) {
  constexpr int64_t to = sizeof(D), from = sizeof(S);
  cast_rows(static_cast<uint8_t>(DTypeOf<D>::value), static_cast<uint8_t>(DTypeOf<S>::value),
            reinterpret_cast<char*>(dst), to, d * to, reinterpret_cast<const char*>(src), from,
            s * from, n0, n1);
}

// f(elements, first, rows) on parts of `width` columns as contiguous float32, which it replaces by
// their results.
template <class T, class F>
void in_float(const T* x, T* out, int64_t n, int64_t inner, int64_t width, F&& f) {
  constexpr int64_t elements = 2048;
  float some[elements];
  for (int64_t first = 0, most = elements / width; first < n; first += most) {
    const int64_t rows = std::min(most, n - first), at = first * inner;
    const bool whole = width == inner;  // then the rows are contiguous
    const int64_t n0 = whole ? width * rows : width, n1 = whole ? 1 : rows;
    convert(some, width, x + at, inner, n0, n1);
    f(some, first, rows);
    convert(out + at, inner, some, width, n0, n1);
  }
}

// The longest rows, and the most columns, that plain unrolled loops scan.
constexpr int64_t kShort = 8;

// f(std::integral_constant n) for 0 < n <= kShort.
template <int64_t N = 1, class F> void with_short(int64_t n, F&& f) {
  if (n == N) return f(std::integral_constant<int64_t, N>{});
  if constexpr (N < kShort) with_short<N + 1>(n, f);
}
template <class T, class A, class F>
void scan_rows(const T* x, T* out, int64_t rows, int64_t n, A start, F combine) {
  auto scan = [&](auto length) {
    for (int64_t l = 0; l < rows; ++l, x += length, out += length) {
      A acc = start;
      for (int64_t i = 0; i < length; ++i)
        out[i] = static_cast<T>(acc = combine(acc, static_cast<A>(x[i])));
    }
  };
  if (n <= kShort) with_short(n, scan);
  else scan(n);
}
// Rows one after another; `acc` has one result for each column.
template <class T, class A, class F>
void scan_narrow_rows(const T* x, T* out, int64_t rows, int64_t columns, A* acc, F combine) {
  with_short(columns, [&](auto width) {
    A last[width];
    std::copy_n(acc, width, last);
    for (int64_t i = 0; i < rows; ++i, x += width, out += width) {
      for (int64_t j = 0; j < width; ++j)
        out[j] = static_cast<T>(last[j] = combine(last[j], static_cast<A>(x[j])));
    }
    std::copy_n(last, width, acc);
  });
}

// Lines of halves. Sums are added up in float64, as those of float32 are.
template <class T, class F>
void scan_half_rows(const T* x, T* out, ScanShape s, float start, bool sums, F&& combine) {
  const auto& kernels = simd::scan_loops();
  parallel_for(s.outer, std::max<int64_t>(1, 16384 / s.n), [&](int64_t begin, int64_t end) {
    if (s.n <= 256) {  // several rows at a time
      const int64_t most = 2048 / s.n;
      for (int64_t l = begin; l < end; l += most) {
        const int64_t rows = std::min(most, end - l);
        in_float(x + l * s.n, out + l * s.n, rows * s.n, 1, 1, [&](float* some, int64_t, int64_t) {
          if (!sums) return scan_rows(some, some, rows, s.n, start, combine);
          if (s.n <= kShort) return scan_rows(some, some, rows, s.n, 0.0, std::plus<double>());
          for (int64_t k = 0; k < rows; ++k, some += s.n) kernels.sums(some, s.n, some);
        });
      }
      return;
    }
    for (int64_t l = begin; l < end; ++l) {
      float acc = start;
      double sum = 0;
      in_float(x + l * s.n, out + l * s.n, s.n, 1, 1, [&](float* some, int64_t, int64_t n) {
        if (sums) {
          sum += kernels.sums_from(some, n, sum, some);
        } else {
          float last = acc;
          for (int64_t i = 0; i < n; ++i) some[i] = last = combine(last, some[i]);
          acc = last;
        }
      });
    }
  });
}

template <class T, class A, class F>
[[gnu::optimize("O3"), gnu::noinline]] void scan_step(A* __restrict acc, const T* __restrict p,
                                                      T* __restrict o, int64_t width, F combine) {
  for (int64_t j = 0; j < width; ++j) {
    acc[j] = combine(acc[j], static_cast<A>(p[j]));
    o[j] = static_cast<T>(acc[j]);
  }
}

template <class T, class A, class F>
void scan_with(const void* x_data, void* out_data, ScanShape s, A start, [[maybe_unused]] bool sums,
               F&& combine) {
  auto* x = static_cast<const T*>(x_data);
  auto* out = static_cast<T*>(out_data);
  if constexpr (kHalf<T>) {
    if (s.inner == 1 && s.n > 0) return scan_half_rows(x, out, s, start, sums, combine);
  }
  if (s.inner == 1) {
    parallel_for(s.outer, std::max<int64_t>(1, 16384 / s.n), [&](int64_t begin, int64_t end) {
      scan_rows(x + begin * s.n, out + begin * s.n, end - begin, s.n, start, combine);
    });
    return;
  }
  for_each_block(s, [&](int64_t at, int64_t width) {
    A acc[kBlock];
    std::fill_n(acc, width, start);
    if constexpr (kHalf<T>) {
      in_float(x + at, out + at, s.n, s.inner, width, [&](float* some, int64_t, int64_t rows) {
        if (s.inner <= kShort) return scan_narrow_rows(some, some, rows, width, acc, combine);
        float sums[kBlock];
        for (int64_t i = 0; i < rows; ++i, some += width) {
          scan_step(acc, some, sums, width, combine);
          std::copy_n(sums, width, some);
        }
      });
      return;
    }
    if (s.inner <= kShort) return scan_narrow_rows(x + at, out + at, s.n, width, acc, combine);
    for (int64_t i = 0; i < s.n; ++i) {
      const T* p = x + at + i * s.inner;
      T* o = out + at + i * s.inner;
      scan_step(acc, p, o, width, combine);
    }
  });
}

// Running sums of contiguous rows. Long rows are cut into pieces; each begins with the sum of those
// before it, which are added up in order.
void sum_rows(const float* x, float* out, int64_t rows, int64_t n) {
  constexpr int64_t kPiece = 1 << 16;
  const auto& kernels = simd::scan_loops();
  if (n < 2 * kPiece) {
    parallel_for(rows, std::max<int64_t>(1, 16384 / n), [&](int64_t begin, int64_t end) {
      for (int64_t l = begin; l < end; ++l) kernels.sums(x + l * n, n, out + l * n);
    });
    return;
  }
  const int64_t pieces = (n + kPiece - 1) / kPiece, all = rows * pieces;
  // Each thread has a span of pieces, for which it must know the sum of what precedes it in its
  // row.
  const int64_t spans = std::min<int64_t>(get_num_threads(), all);
  auto first_of = [&](int64_t span) { return all * span / spans; };
  auto from = [&](int64_t piece) { return piece / pieces * n + piece % pieces * kPiece; };
  auto length = [&](int64_t piece) { return std::min(kPiece, n - piece % pieces * kPiece); };
  auto is_needed = [&](int64_t piece) {
    for (int64_t s = 1; s < spans; ++s)
      if (piece < first_of(s) && piece / pieces == first_of(s) / pieces) return true;
    return false;
  };
  std::vector<double> sums(static_cast<size_t>(all));
  auto sum_of = [&](int64_t piece) -> double& { return sums[static_cast<size_t>(piece)]; };
  parallel_for(first_of(spans - 1), 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p)
      if (is_needed(p)) sum_of(p) = kernels.sum(x + from(p), length(p));
  });
  parallel_for(spans, 1, [&](int64_t begin, int64_t end) {
    for (int64_t s = begin; s < end; ++s) {
      double before = 0;
      for (int64_t p = first_of(s) / pieces * pieces; p < first_of(s); ++p) before += sum_of(p);
      for (int64_t p = first_of(s); p < first_of(s + 1); ++p) {
        if (p % pieces == 0) before = 0;
        before += kernels.sums_from(x + from(p), length(p), before, out + from(p));
      }
    }
  });
}

}  // namespace

void scan(Scan what, const void* x, void* out, ScanShape s, DType dtype) {
  visit_all(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!std::is_same_v<T, bool>) {
      using A = typename Accumulator<T>::type;
      if (std::is_same_v<T, float> && what == Scan::Sum && s.inner == 1 && s.n > kShort) {
        sum_rows(static_cast<const float*>(x), static_cast<float*>(out), s.outer, s.n);
      } else if (std::is_same_v<T, int64_t> && what == Scan::Sum && s.inner == 1 && s.n > kShort) {
        auto* from = static_cast<const int64_t*>(x);
        auto* to = static_cast<int64_t*>(out);
        parallel_for(s.outer, std::max<int64_t>(1, 16384 / s.n), [&](int64_t begin, int64_t end) {
          for (int64_t l = begin; l < end; ++l)
            simd::scan_loops().integer_sums(from + l * s.n, s.n, to + l * s.n);
        });
      } else if (what == Scan::Sum) {
        scan_with<T>(x, out, s, A(0), true, [](A a, A b) { return static_cast<A>(a + b); });
      } else if (what == Scan::Prod) {
        scan_with<T>(x, out, s, A(1), false, [](A a, A b) { return static_cast<A>(a * b); });
      } else if constexpr (!std::is_integral_v<T>) {
        scan_with<T>(x, out, s, A(-std::numeric_limits<float>::infinity()), false,
                     [](A a, A b) { return log_add(a, b); });
      }
    }
  });
}

namespace {

template <class T> const simd::ScanExtremes<T>& extremes() {
  const auto& k = simd::scan_loops();
  if constexpr (std::is_same_v<T, uint8_t>) return k.u8;
  else if constexpr (std::is_same_v<T, int8_t>) return k.i8;
  else if constexpr (std::is_same_v<T, int16_t>) return k.i16;
  else if constexpr (std::is_same_v<T, int32_t>) return k.i32;
  else if constexpr (std::is_same_v<T, int64_t>) return k.i64;
  else if constexpr (std::is_same_v<T, float>) return k.f32;
  else return k.f64;
}

}  // namespace

void scan_extreme(bool largest, const void* x_data, void* values, int64_t* indices, ScanShape s,
                  DType dtype) {
  visit_real(dtype, "cummax", [&](auto tag) {
    using E = typename decltype(tag)::type;
    // Bools are bytes; halves are compared as float32.
    using T = std::conditional_t<std::is_same_v<E, bool>, uint8_t,
                                 std::conditional_t<kHalf<E>, float, E>>;
    const auto& kernel = largest ? extremes<T>().largest : extremes<T>().smallest;
    for_each_block(s, [&](int64_t at, int64_t width) {
      if constexpr (kHalf<E>) {
        const auto* x = static_cast<const E*>(x_data) + at;
        auto* out = static_cast<E*>(values) + at;
        if (s.inner == 1) {
          T best = 0;
          int64_t index = 0;
          in_float(x, out, s.n, 1, 1, [&](float* some, int64_t first, int64_t n) {
            kernel.row(some, n, first, &best, &index, some, indices + at + first);
          });
          return;
        }
        T best[kBlock];
        int64_t index[kBlock];
        in_float(x, out, s.n, s.inner, width, [&](float* some, int64_t first, int64_t n) {
          kernel.columns(some, n, first, width, width, best, index, some,
                         indices + at + first * s.inner, s.inner);
        });
      } else {
        const auto* x = static_cast<const T*>(x_data) + at;
        auto* out = static_cast<T*>(values) + at;
        T best[kBlock];
        int64_t index[kBlock];
        if (s.inner == 1) kernel.row(x, s.n, 0, best, index, out, indices + at);
        else kernel.columns(x, s.n, 0, s.inner, width, best, index, out, indices + at, s.inner);
      }
    });
  });
}

}  // namespace taeda::cpu
