#include "kernels/cpu/reduce/simd/scan.h"

#include "kernels/functors_scalar.h"

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

// What one register holds of 8 bytes each, summed up in itself: x0, x0 + x1, ...
#if defined(__AVX512F__)
constexpr int64_t kWidth = 8;
typedef double Doubles __attribute__((vector_size(64)));
typedef int64_t Places __attribute__((vector_size(64)));
template <class V, class Op> FN V scan(V v, const Op& op) {
  const V zero{};
  v = op(v, __builtin_shuffle(v, zero, Places{8, 0, 1, 2, 3, 4, 5, 6}));
  v = op(v, __builtin_shuffle(v, zero, Places{8, 8, 0, 1, 2, 3, 4, 5}));
  return op(v, __builtin_shuffle(v, zero, Places{8, 8, 8, 8, 0, 1, 2, 3}));
}
#elif defined(__AVX2__)
constexpr int64_t kWidth = 4;
typedef double Doubles __attribute__((vector_size(32)));
typedef int64_t Places __attribute__((vector_size(32)));
template <class V, class Op> FN V scan(V v, const Op& op) {
  const V zero{};
  v = op(v, __builtin_shuffle(v, zero, Places{4, 0, 1, 2}));
  return op(v, __builtin_shuffle(v, zero, Places{4, 4, 0, 1}));
}
#else
constexpr int64_t kWidth = 2;
typedef double Doubles __attribute__((vector_size(16)));
typedef int64_t Places __attribute__((vector_size(16)));
template <class V, class Op> FN V scan(V v, const Op& op) {
  return op(v, __builtin_shuffle(v, V{}, Places{2, 0}));
}
#endif
typedef float Floats __attribute__((vector_size(4 * kWidth), aligned(4), may_alias));

template <class V> FN V last(V v) { return __builtin_shuffle(v, Places{} + (kWidth - 1)); }
constexpr auto plus = [](auto a, auto b) { return a + b; };
typedef int64_t Wide __attribute__((vector_size(8 * kWidth), aligned(8), may_alias));
typedef uint64_t Wholes __attribute__((vector_size(8 * kWidth), aligned(8), may_alias));

#if defined(__AVX512F__)
// Four vectors at a time, of elements 4 k, 4 k + 1, ...: they are added up one by one, and only the
// last of them, the sums of four neighbours, within itself.
typedef float Line __attribute__((vector_size(64), aligned(4), may_alias));
typedef int32_t LinePlaces __attribute__((vector_size(64)));
constexpr int64_t kTogether = 4 * kWidth;
// (GCC 12 warns of its own header where there is no mask.)
FN Doubles half(Line v, int which) {
  __m256 part[2];
  __builtin_memcpy(&part, &v, sizeof v);
  return (Doubles)_mm512_maskz_cvtps_pd(0xff, part[which]);
}
FN Line narrow(Doubles low, Doubles high) {
  const __m256d a = _mm256_castps_pd(_mm512_maskz_cvtpd_ps(0xff, (__m512d)low)),
                b = _mm256_castps_pd(_mm512_maskz_cvtpd_ps(0xff, (__m512d)high));
  return (Line)_mm512_maskz_insertf64x4(0xff, _mm512_castpd256_pd512(a), b, 1);
}
template <bool Write, bool Sum>
FN void together(const float* x, float* y, Doubles& start, Doubles (&total)[4]) {
  const Line a = *reinterpret_cast<const Line*>(x), b = *reinterpret_cast<const Line*>(x + 16);
  const Line even =
      __builtin_shuffle(a, b, LinePlaces{0, 4, 8, 12, 16, 20, 24, 28, 1, 5, 9, 13, 17, 21, 25, 29});
  const Line odd = __builtin_shuffle(
      a, b, LinePlaces{2, 6, 10, 14, 18, 22, 26, 30, 3, 7, 11, 15, 19, 23, 27, 31});
  Doubles v[4] = {half(even, 0), half(even, 1), half(odd, 0), half(odd, 1)};
  for (int k = 1; k < 4; ++k) v[k] += v[k - 1];
  if constexpr (Sum) total[0] += v[3];
  if constexpr (!Write) return;
  const Doubles sums = scan(v[3], plus);
  const Doubles before = start + __builtin_shuffle(sums, Doubles{}, Places{8, 0, 1, 2, 3, 4, 5, 6});
  start += last(sums);
  for (Doubles& part : v) part += before;
  const Line p = narrow(v[0], v[1]), q = narrow(v[2], v[3]);
  *reinterpret_cast<Line*>(y) =
      __builtin_shuffle(p, q, LinePlaces{0, 8, 16, 24, 1, 9, 17, 25, 2, 10, 18, 26, 3, 11, 19, 27});
  *reinterpret_cast<Line*>(y + 16) = __builtin_shuffle(
      p, q, LinePlaces{4, 12, 20, 28, 5, 13, 21, 29, 6, 14, 22, 30, 7, 15, 23, 31});
}
#endif

// Writes running sums that begin at `before`, or returns the sum of the line, or both; the sum has
// the same bits in either case.
template <bool Write, bool Sum> FN double run(const float* x, int64_t n, double before, float* y) {
  constexpr int kParts = 4;
  Doubles start = Doubles{} + before, total[kParts]{};
  int64_t i = 0;
  auto step = [&](Doubles& part) {
    Doubles v = __builtin_convertvector(*reinterpret_cast<const Floats*>(x + i), Doubles);
    if constexpr (Sum) part += v;
    if constexpr (Write) {
      v = scan(v, plus);
      *reinterpret_cast<Floats*>(y + i) = __builtin_convertvector(v + start, Floats);
      start += last(v);
    }
    i += kWidth;
  };
#if defined(__AVX512F__)
  for (; i + kTogether <= n; i += kTogether) together<Write, Sum>(x + i, y + i, start, total);
#else
  while (i + kParts * kWidth <= n) {
    for (Doubles& part : total) step(part);
  }
#endif
  while (i + kWidth <= n) step(total[0]);
  double sum = 0;
  if constexpr (Sum) {
    for (const Doubles& part : total) {
      for (int k = 0; k < kWidth; ++k) sum += part[k];
    }
  }
  for (before = start[0]; i < n; ++i) {
    if constexpr (Sum) sum += x[i];
    if constexpr (Write) y[i] = static_cast<float>(before += x[i]);
  }
  return sum;
}

void sums(const float* x, int64_t n, float* y) { run<true, false>(x, n, 0, y); }
double sums_from(const float* x, int64_t n, double before, float* y) {
  return run<true, true>(x, n, before, y);
}
double sum(const float* x, int64_t n) { return run<false, true>(x, n, 0, nullptr); }

void whole_sums(const int64_t* x, int64_t n, int64_t* y) {
  Wholes start{};
  int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth) {
    const Wholes v = scan(*reinterpret_cast<const Wholes*>(x + i), plus);
    *reinterpret_cast<Wholes*>(y + i) = v + start;
    start += last(v);
  }
  for (uint64_t sum = start[0]; i < n; ++i)
    y[i] = static_cast<int64_t>(sum += static_cast<uint64_t>(x[i]));
}

// ---- extremes ----

template <class T> struct MaskOf {
  using type = int64_t;
};
template <> struct MaskOf<float> {
  using type = int32_t;
};
template <> struct MaskOf<int32_t> {
  using type = int32_t;
};
template <> struct MaskOf<int16_t> {
  using type = int16_t;
};
template <> struct MaskOf<int8_t> {
  using type = int8_t;
};
template <> struct MaskOf<uint8_t> {
  using type = int8_t;
};

// y[i] = the largest of `before` and x[0] ... x[i], none of them negative. Returns the last.
FN int64_t running_largest(const int64_t* x, int64_t n, int64_t before, int64_t* y) {
  const auto larger = [](auto a, auto b) { return b > a ? b : a; };
  Places most = Places{} + before;
  int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth) {
    most = larger(most, scan(*reinterpret_cast<const Wide*>(x + i), larger));
    *reinterpret_cast<Wide*>(y + i) = most;
    most = last(most);
  }
  for (before = most[0]; i < n; ++i) y[i] = before = larger(before, x[i]);
  return before;
}

// Most blocks of a line hold nothing as good as what came before, or nothing better.
template <bool Largest, class T>
void extreme_line(const T* x, int64_t n, int64_t first, T* kept, int64_t* at, T* values,
                  int64_t* indices) {
  using Mask = typename MaskOf<T>::type;
  constexpr int64_t block = 64;
  if (n == 0) return;
  T best = first == 0 ? x[0] : *kept;
  int64_t place = first == 0 ? 0 : *at;
  for (int64_t begin = 0; begin < n; begin += block) {
    const int64_t m = n - begin < block ? n - begin : block;
    const T* p = x + begin;
    T* v = values + begin;
    int64_t* k = indices + begin;
    Mask equal = 0, better = 0;
    for (int64_t j = 0; j < m; ++j) {
      equal |= static_cast<Mask>(p[j] == best);
      better |= static_cast<Mask>(!(Largest ? p[j] <= best : p[j] >= best));  // or NaN
    }
    int64_t now = first + begin;
    if (better) {
      for (int64_t j = 0; j < m; ++j, ++now) {
        const T e = p[j];
        const bool wins = (e != e) | ((best == best) & (Largest ? e >= best : e <= best));
        best = wins ? e : best;
        place = wins ? now : place;
        v[j] = best;
        k[j] = place;
      }
      continue;
    }
    if (equal) {
      int64_t here[block];
      for (int64_t j = 0; j < m; ++j) here[j] = p[j] == best ? now + j : place;
      place = running_largest(here, m, place, k);
    } else {
      for (int64_t j = 0; j < m; ++j) k[j] = place;
    }
    for (int64_t j = 0; j < m; ++j) v[j] = best;
  }
  *kept = best;
  *at = place;
}

template <bool Largest, class T>
void extreme_columns(const T* x, int64_t n, int64_t first, int64_t step, int64_t width, T* kept,
                     int64_t* at, T* values, int64_t* indices, int64_t index_step) {
  T best[kScanColumns];
  int64_t place[kScanColumns];
  for (int64_t j = 0; j < width; ++j) best[j] = first == 0 ? x[j] : kept[j];
  for (int64_t j = 0; j < width; ++j) place[j] = first == 0 ? 0 : at[j];
  for (int64_t i = first; i < first + n; ++i) {
    for (int64_t j = 0; j < width; ++j) {
      const T e = x[j], b = best[j];
      const bool wins = (e != e) | ((b == b) & (Largest ? e >= b : e <= b));
      best[j] = wins ? e : b;
      place[j] = wins ? i : place[j];
    }
    for (int64_t j = 0; j < width; ++j) values[j] = best[j];
    for (int64_t j = 0; j < width; ++j) indices[j] = place[j];
    x += step;
    values += step;
    indices += index_step;
  }
  for (int64_t j = 0; j < width; ++j) kept[j] = best[j];
  for (int64_t j = 0; j < width; ++j) at[j] = place[j];
}

template <class T>
constexpr ScanExtremes<T> extremes = {{extreme_line<true, T>, extreme_columns<true, T>},
                                      {extreme_line<false, T>, extreme_columns<false, T>}};

}  // namespace

extern constinit const ScanKernels scan_kernels = {extremes<uint8_t>,
                                                   extremes<int8_t>,
                                                   extremes<int16_t>,
                                                   extremes<int32_t>,
                                                   extremes<int64_t>,
                                                   extremes<float>,
                                                   extremes<double>,
                                                   whole_sums,
                                                   sums,
                                                   sums_from,
                                                   sum};

}  // namespace taeda::cpu::simd::TAEDA_ISA
