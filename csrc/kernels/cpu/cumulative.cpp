#include "kernels/cpu/cumulative.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/thread_pool.h"
#include "kernels/cpu/simd/pick.h"
#include "kernels/cpu/simd/scan.h"
#include "kernels/cpu/turns.h"

namespace taeda::cpu {
namespace simd {
namespace {
const ScanKernels& scan_loops() { return TAEDA_PICK(scan_kernels); }
}  // namespace
}  // namespace simd
namespace {

constexpr int64_t kBlock = 64;  // inner places that are scanned side by side

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

// f(offset of the first element, width), for blocks of inner places
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

template <class T, class A, class F>
[[gnu::optimize("O3"), gnu::noinline]] void scan_step(A* __restrict acc, const T* __restrict p,
                                                      T* __restrict o, int64_t width, F combine) {
  for (int64_t j = 0; j < width; ++j) {
    acc[j] = combine(acc[j], static_cast<A>(p[j]));
    o[j] = static_cast<T>(acc[j]);
  }
}

template <class T, class A, class F>
void scan_with(const void* x_data, void* out_data, ScanShape s, A start, F&& combine) {
  auto* x = static_cast<const T*>(x_data);
  auto* out = static_cast<T*>(out_data);
  if (s.inner == 1) {
    parallel_for(s.outer, std::max<int64_t>(1, 16384 / s.n), [&](int64_t begin, int64_t end) {
      for (int64_t l = begin; l < end; ++l) {
        A acc = start;
        const T* p = x + l * s.n;
        T* o = out + l * s.n;
        for (int64_t i = 0; i < s.n; ++i)
          o[i] = static_cast<T>(acc = combine(acc, static_cast<A>(p[i])));
      }
    });
    return;
  }
  for_each_block(s, [&](int64_t at, int64_t width) {
    A acc[kBlock];
    std::fill_n(acc, width, start);
    for (int64_t i = 0; i < s.n; ++i) {
      const T* p = x + at + i * s.inner;
      T* o = out + at + i * s.inner;
      scan_step(acc, p, o, width, combine);
    }
  });
}

// Running sums of contiguous lines. Long lines are cut into pieces; each begins with the sum of
// those before it, which are added up in order.
void sum_lines(const float* x, float* out, int64_t lines, int64_t n) {
  constexpr int64_t kPiece = 1 << 16;
  const auto& kernels = simd::scan_loops();
  if (n < 2 * kPiece) {
    parallel_for(lines, std::max<int64_t>(1, 16384 / n), [&](int64_t begin, int64_t end) {
      for (int64_t l = begin; l < end; ++l) kernels.sums(x + l * n, n, out + l * n);
    });
    return;
  }
  const int64_t pieces = (n + kPiece - 1) / kPiece;
  const bool alone = get_num_threads() == 1;
  Turns turns;
  double before = 0;
  parallel_for(lines * pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t first = t % pieces * kPiece, length = std::min(kPiece, n - first);
      const int64_t at = t / pieces * n + first;
      Turns::Turn turn(turns, t);
      // A thread with nobody beside it need not know the sum beforehand.
      const double sum = alone ? 0 : kernels.sum(x + at, length);
      turn.enter();
      const double start = first == 0 ? 0 : before;
      if (!alone) before = start + sum;
      else before = start + kernels.sums_from(x + at, length, start, out + at);
      turn.leave();
      if (!alone) kernels.sums_from(x + at, length, start, out + at);
    }
  });
}

}  // namespace

void scan(Scan what, const void* x, void* out, ScanShape s, DType dtype) {
  visit_all(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!std::is_same_v<T, bool>) {
      using A = typename Accumulator<T>::type;
      if (std::is_same_v<T, float> && what == Scan::Sum && s.inner == 1 && s.n > 0) {
        sum_lines(static_cast<const float*>(x), static_cast<float*>(out), s.outer, s.n);
      } else if (what == Scan::Sum) {
        scan_with<T>(x, out, s, A(0), [](A a, A b) { return static_cast<A>(a + b); });
      } else if (what == Scan::Prod) {
        scan_with<T>(x, out, s, A(1), [](A a, A b) { return static_cast<A>(a * b); });
      } else if constexpr (!std::is_integral_v<T>) {
        scan_with<T>(x, out, s, A(-std::numeric_limits<float>::infinity()),
                     [](A a, A b) { return log_add(a, b); });
      }
    }
  });
}

namespace {

// One line of elements side by side. NaN wins over every number, and a later NaN over an earlier.
template <bool Largest, class T>
void extreme_line(const T* x, T* values, int64_t* indices, int64_t n) {
  T best = n > 0 ? x[0] : T(0);
  int64_t place = 0;
  for (int64_t i = 0; i < n; ++i) {
    const T v = x[i];
    const bool loses = Largest ? v < best : v > best;
    if (!loses && (best == best || v != v)) {
      best = v;
      place = i;
    }
    values[i] = best;
    indices[i] = place;
  }
}

}  // namespace

void scan_extreme(bool largest, const void* x_data, void* values, int64_t* indices, ScanShape s,
                  DType dtype) {
  visit_real(dtype, "cummax", [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto* x = static_cast<const T*>(x_data);
    auto* out = static_cast<T*>(values);
    for_each_block(s, [&](int64_t at, int64_t width) {
      if (s.inner == 1) {
        if (largest) extreme_line<true>(x + at, out + at, indices + at, s.n);
        else extreme_line<false>(x + at, out + at, indices + at, s.n);
        return;
      }
      T best[kBlock];
      int64_t place[kBlock];
      for (int64_t i = 0; i < s.n; ++i) {
        const T* p = x + at + i * s.inner;
        for (int64_t j = 0; j < width; ++j) {
          bool wins = i == 0 || p[j] != p[j] ||
                      (best[j] == best[j] && (largest ? p[j] >= best[j] : p[j] <= best[j]));
          if (wins) {
            best[j] = p[j];
            place[j] = i;
          }
          out[at + i * s.inner + j] = best[j];
          indices[at + i * s.inner + j] = place[j];
        }
      }
    });
  });
}

}  // namespace taeda::cpu
