#include "kernels/cpu/reduce/reduce.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/cpu/pointwise/pointwise.h"
#include "kernels/cpu/reduce/simd/scan.h"

namespace taeda::cpu {
namespace {

const simd::ScanKernels& loops() { return TAEDA_PICK(scan_kernels); }

constexpr int64_t kBlock = simd::kScanColumns;  // inner indices that are scanned together

template <class T>
using Accumulator = std::conditional_t<std::is_same_v<T, float>, double,
                                       std::conditional_t<std::is_same_v<T, cfloat>, cdouble, T>>;

// What T is computed in: halves in float32, bools as bytes.
template <class T>
using Computed = std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>, float,
                                    std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>>;

int64_t grain_for(int64_t work) { return std::max<int64_t>(1, 16384 / work); }

// f(offset of the first element, width), for blocks of inner indices
template <class F> void for_each_block(ScanShape s, F&& f) {
  const int64_t blocks = (s.inner + kBlock - 1) / kBlock;
  parallel_each(s.outer * blocks, grain_for(s.n * std::min(s.inner, kBlock)), [&](int64_t t) {
    const int64_t from = t % blocks * kBlock;
    f(t / blocks * s.n * s.inner + from, std::min(kBlock, s.inner - from));
  });
}

template <class A> A log_add(A a, A b) {
  if constexpr (is_complex_type<A>) {
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

struct Plus {
  template <class A> A operator()(A a, A b) const { return static_cast<A>(a + b); }
};
struct Times {
  template <class A> A operator()(A a, A b) const { return static_cast<A>(a * b); }
};
struct LogAdd {
  template <class A> A operator()(A a, A b) const { return log_add(a, b); }
};

// n1 rows of n0 elements, d and s elements apart.
template <class D, class S>
void convert(D* dst, int64_t d, const S* src, int64_t s, int64_t n0, int64_t n1) {
  constexpr int64_t to = sizeof(D), from = sizeof(S);
  cast_rows(static_cast<uint8_t>(DTypeOf<D>::value), static_cast<uint8_t>(DTypeOf<S>::value),
            reinterpret_cast<char*>(dst), to, d * to, reinterpret_cast<const char*>(src), from,
            s * from, n0, n1);
}

// f(elements, results, rows, elements from row to row, first row) on n rows of `width` columns,
// which are `inner` apart. Halves are converted, some rows at a time.
template <class T, class F>
void in_computed(const T* x, T* out, int64_t n, int64_t inner, int64_t width, F&& f) {
  using C = Computed<T>;
  if constexpr (sizeof(C) == sizeof(T)) {
    f(reinterpret_cast<const C*>(x), reinterpret_cast<C*>(out), n, inner, int64_t{0});
  } else {
    constexpr int64_t elements = 2048;
    C from[elements + 32], to[elements];  // not a multiple of 4 KB apart, where they would alias
    for (int64_t first = 0, most = elements / width; first < n; first += most) {
      const int64_t rows = std::min(most, n - first), at = first * inner;
      const bool whole = width == inner;  // then the rows are contiguous
      const int64_t n0 = whole ? width * rows : width, n1 = whole ? 1 : rows;
      convert(from, width, x + at, inner, n0, n1);
      f(from, to, rows, width, first);
      convert(out + at, inner, to, width, n0, n1);
    }
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
[[gnu::optimize("O3"), gnu::noinline]] void scan_step(A* __restrict acc, const T* __restrict p,
                                                      T* __restrict o, int64_t width, F combine) {
  for (int64_t j = 0; j < width; ++j) {
    acc[j] = combine(acc[j], static_cast<A>(p[j]));
    o[j] = static_cast<T>(acc[j]);
  }
}

// Down rows of some columns; `acc` has one result for each column.
template <class T, class A, class F>
void scan_rows(const T* x, T* out, int64_t rows, int64_t columns, int64_t step, A* acc, F combine) {
  if (step == 1) {
    if constexpr (std::is_same_v<F, Plus> && std::is_same_v<T, float>) {
      acc[0] += loops().sums_from(x, rows, acc[0], out);
      return;
    }
    if constexpr (std::is_same_v<F, LogAdd> && std::is_floating_point_v<T>) {
      acc[0] = static_cast<A>(typed<T>(loops().log_sums)(x, rows, acc[0], out));
      return;
    }
    A last = acc[0];
    for (int64_t i = 0; i < rows; ++i)
      out[i] = static_cast<T>(last = combine(last, static_cast<A>(x[i])));
    acc[0] = last;
  } else if (columns == step && columns <= kShort) {
    with_short(columns, [&](auto width) {
      A last[width];
      std::copy_n(acc, width, last);
      for (int64_t i = 0; i < rows; ++i, x += width, out += width) {
        for (int64_t j = 0; j < width; ++j)
          out[j] = static_cast<T>(last[j] = combine(last[j], static_cast<A>(x[j])));
      }
      std::copy_n(last, width, acc);
    });
  } else {
    for (; rows > 0; --rows, x += step, out += step) scan_step(acc, x, out, columns, combine);
  }
}

// Along each of some whole rows.
template <class T, class A, class F>
void scan_each_row(const T* x, T* out, int64_t rows, int64_t n, A start, F combine) {
  const auto scan = [&](auto length) {
    for (int64_t l = 0; l < rows; ++l, x += length, out += length) {
      A acc = start;
      for (int64_t i = 0; i < length; ++i)
        out[i] = static_cast<T>(acc = combine(acc, static_cast<A>(x[i])));
    }
  };
  if (n <= kShort) return with_short(n, scan);
  const auto by = [&](auto kernel) {
    for (int64_t l = 0; l < rows; ++l) kernel(x + l * n, n, out + l * n);
  };
  if constexpr (std::is_same_v<F, Plus> && std::is_same_v<T, float>)
    by([](const T* from, int64_t count, T* to) { loops().sums_from(from, count, 0, to); });
  else if constexpr (std::is_same_v<F, Plus> && std::is_same_v<T, int64_t>)
    by(loops().integer_sums);
  else if constexpr (std::is_same_v<F, LogAdd> && std::is_floating_point_v<T>)
    by([=](const T* from, int64_t count, T* to) {
      typed<T>(loops().log_sums)(from, count, start, to);
    });
  else scan(n);
}

template <class T, class A, class F>
void scan_with(const T* x, T* out, ScanShape s, A start, F combine) {
  constexpr bool direct = sizeof(Computed<T>) == sizeof(T);
  if (s.inner == 1 && (direct || s.n <= 256)) {
    parallel_for(s.outer, grain_for(s.n), [&](int64_t begin, int64_t end) {
      const int64_t at = begin * s.n;
      in_computed(x + at, out + at, end - begin, s.n, s.n,
                  [&](auto* from, auto* to, int64_t rows, int64_t, int64_t) {
                    scan_each_row(from, to, rows, s.n, start, combine);
                  });
    });
    return;
  }
  for_each_block(s, [&](int64_t at, int64_t width) {
    A acc[kBlock];
    std::fill_n(acc, width, start);
    in_computed(x + at, out + at, s.n, s.inner, width,
                [&](auto* from, auto* to, int64_t rows, int64_t step, int64_t) {
                  scan_rows(from, to, rows, width, step, acc, combine);
                });
  });
}

constexpr int64_t kPiece = 1 << 16;

// Running sums of long contiguous rows, cut into pieces: each begins with the sum of those before
// it, which are added up in order.
void sum_long_rows(const float* x, float* out, int64_t rows, int64_t n) {
  const int64_t pieces = (n + kPiece - 1) / kPiece;
  const auto from = [=](int64_t p) { return p / pieces * n + p % pieces * kPiece; };
  const auto length = [=](int64_t p) { return std::min(kPiece, n - p % pieces * kPiece); };
  std::vector<double> before(static_cast<size_t>(rows * pieces));
  const auto run = [&](auto&& f) {
    parallel_each(rows * pieces, 1, [&](int64_t p) { f(p, before[static_cast<size_t>(p)]); });
  };
  const bool alone = get_num_threads() == 1;  // then the sums come with the scan
  if (!alone) run([&](int64_t p, double& sum) { sum = loops().sum(x + from(p), length(p)); });
  double sum = 0;
  for (size_t p = 0; !alone && p < before.size(); ++p) {
    if (p % static_cast<size_t>(pieces) == 0) sum = 0;
    sum += std::exchange(before[p], sum);
  }
  run([&](int64_t p, double start) {
    if (alone) start = sum = p % pieces == 0 ? 0 : sum;
    const double part = loops().sums_from(x + from(p), length(p), start, out + from(p));
    if (alone) sum += part;
  });
}

}  // namespace

void scan(Scan what, DType dtype, const ScanShape& s, const void* x, void* out) {
  visit_all(dtype, [&]<class T>(Tag<T>) {
    if constexpr (!std::is_same_v<T, bool>) {
      using A = Accumulator<T>;
      using C = std::conditional_t<sizeof(Computed<T>) == sizeof(T), A, float>;
      const auto* from = static_cast<const T*>(x);
      auto* to = static_cast<T*>(out);
      if constexpr (std::is_same_v<T, float>) {
        if (what == Scan::Sum && s.inner == 1 && s.n >= 2 * kPiece)
          return sum_long_rows(from, to, s.outer, s.n);
      }
      if (what == Scan::Sum) {
        scan_with(from, to, s, Accumulator<C>(0), Plus{});
      } else if (what == Scan::Prod) {
        scan_with(from, to, s, C(1), Times{});
      } else if constexpr (!std::is_integral_v<T>) {
        scan_with(from, to, s, C(-std::numeric_limits<float>::infinity()), LogAdd{});
      }
    }
  });
}

namespace {

template <class T> const simd::ScanExtremes<T>& extremes() {
  const auto& k = loops();
  if constexpr (std::is_same_v<T, uint8_t>) return k.u8;
  else if constexpr (std::is_same_v<T, int8_t>) return k.i8;
  else if constexpr (std::is_same_v<T, int16_t>) return k.i16;
  else if constexpr (std::is_same_v<T, int32_t>) return k.i32;
  else if constexpr (std::is_same_v<T, int64_t>) return k.i64;
  else if constexpr (std::is_same_v<T, float>) return k.f32;
  else return k.f64;
}

}  // namespace

void scan_extreme(bool largest, DType dtype, const ScanShape& s, const void* x, void* values,
                  int64_t* indices) {
  visit_real(dtype, "cummax", [&]<class T>(Tag<T>) {
    using C = Computed<T>;
    const auto kernel = largest ? extremes<C>().largest : extremes<C>().smallest;
    for_each_block(s, [&](int64_t at, int64_t width) {
      C best[kBlock];
      int64_t index[kBlock];
      in_computed(static_cast<const T*>(x) + at, static_cast<T*>(values) + at, s.n, s.inner, width,
                  [&](const C* from, C* to, int64_t rows, int64_t step, int64_t first) {
                    kernel(from, rows, first, step, width, best, index, to,
                           indices + at + first * s.inner, s.inner);
                  });
    });
  });
}

}  // namespace taeda::cpu
