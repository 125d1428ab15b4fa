#include "kernels/cpu/reduce/simd/scan.h"

#include "kernels/cpu/simd/vec.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

constexpr int64_t kWidth = kLanes<double>;
using Doubles = Vec<double>;

template <class V> FN V last(V v) {
  return shuffle(v, v, [](int) { return kWidth - 1; });
}
// v0, op(v0, v1), ..., where zero is neutral, in log2(lanes) steps: of groups of 2 K lanes, the
// upper half gets what the lower one ends with.
template <int K = 1, class V, class Op> FN V scan(V v, const Op& op) {
  if constexpr (K == kLanesOf<V>) return v;
  else {
    const V below = shuffle(v, V{}, [](int i) { return i & K ? (i | (K - 1)) - K : kWidth + i; });
    return scan<2 * K>(op(v, below), op);
  }
}
constexpr auto plus = [](auto a, auto b) { return a + b; };

// Running sums of four vectors' elements, on top of `start`, which is advanced once for all four.
template <bool Write> FN void scan_four(const float* x, float* y, Doubles& start, Doubles& total) {
  Doubles v[4];
  for (int k = 0; k < 4; ++k) v[k] = convert<double>(load<kWidth>(x + k * kWidth));
  total += (v[0] + v[1]) + (v[2] + v[3]);
  if constexpr (!Write) return;
  for (Doubles& part : v) {
    part = scan(part, plus);
    store(y, convert<float>(part + start));
    start += last(part);
    y += kWidth;
  }
}

// The sum of the row, always the same bits. Write: and running sums that begin at `before`.
template <bool Write> FN double run(const float* x, int64_t n, double before, float* y) {
  auto start = broadcast<Doubles>(before);
  Doubles total{};
  int64_t i = 0;
  for (; i + 4 * kWidth <= n; i += 4 * kWidth) scan_four<Write>(x + i, y + i, start, total);
  for (; i + kWidth <= n; i += kWidth) {
    auto v = convert<double>(load<kWidth>(x + i));
    total += v;
    if constexpr (Write) {
      v = scan(v, plus);
      store(y + i, convert<float>(v + start));
      start += last(v);
    }
  }
  double sum = reduce_add(total);
  for (before = start[0]; i < n; ++i) {
    sum += x[i];
    if constexpr (Write) y[i] = static_cast<float>(before += x[i]);
  }
  return sum;
}

double sums_from(const float* x, int64_t n, double before, float* y) {
  return run<true>(x, n, before, y);
}
double sum(const float* x, int64_t n) { return run<false>(x, n, 0, nullptr); }

void integer_sums(const int64_t* x, int64_t n, int64_t* y) {
  using Integers = Vec<uint64_t>;  // which wrap around
  Integers start{};
  int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth) {
    const auto v = scan((Integers)load(x + i), plus);
    store(y + i, v + start);
    start += last(v);
  }
  for (uint64_t sum = start[0]; i < n; ++i)
    y[i] = static_cast<int64_t>(sum += static_cast<uint64_t>(x[i]));
}

// ---- logarithms of sums of exponentials ----

FN double log_of_two(double a, double b) {
  using taeda::TAEDA_ISA::exp, taeda::TAEDA_ISA::log1p;
  if (a != a || b != b) return a + b;
  const double most = a > b ? a : b, least = a > b ? b : a;
  if (__builtin_isinf(most)) return most;
  return most + log1p(exp(least - most));
}

// The sum so far is kept as `sum` times exp(most), where `most` is the largest element: a block of
// elements takes one exponential and one logarithm of each, side by side. Not so where the block's
// largest element is far above what came before, whose last digits would be lost, or infinite.
template <class T> double log_sums(const T* x, int64_t n, double before, T* y) {
  using taeda::TAEDA_ISA::exp, taeda::TAEDA_ISA::log;
  constexpr int64_t block = 64;
  constexpr double far = 16;
  if (n == 0) return before;
  double most = log_of_two(before, static_cast<double>(x[0])), sum = 1, v[block];
  y[0] = static_cast<T>(most);
  for (int64_t i = 1; i < n; i += block) {
    const int64_t m = n - i < block ? n - i : block;
    const T* from = x + i;
    T* to = y + i;
    double high = most;
    for (int64_t j = 0; j < m; ++j) high = from[j] > high ? from[j] : high;
    if (high - most <= far) {
      for (int64_t j = 0; j < m; ++j) v[j] = exp(static_cast<double>(from[j]) - high);
      sum *= exp(most - high);
      most = high;
      for (int64_t j = 0; j < m; ++j) v[j] = sum += v[j];
      for (int64_t j = 0; j < m; ++j) to[j] = static_cast<T>(most + log(v[j]));
    } else {
      most += log(sum);
      sum = 1;
      for (int64_t j = 0; j < m; ++j)
        to[j] = static_cast<T>(most = log_of_two(most, static_cast<double>(from[j])));
    }
  }
  return most + log(sum);
}

// ---- extremes ----

// y[i] = the largest of `before` and x[0] ... x[i], none of them negative. Returns the last.
FN int64_t running_largest(const int64_t* x, int64_t n, int64_t before, int64_t* y) {
  const auto larger = [](auto a, auto b) { return max(b, a); };
  auto most = broadcast_to<int64_t>(before);
  int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth) {
    most = larger(most, scan(load(x + i), larger));
    store(y + i, most);
    most = last(most);
  }
  for (before = most[0]; i < n; ++i) y[i] = before = larger(before, x[i]);
  return before;
}

// Most blocks of a row hold nothing as good as what came before, or nothing better.
template <bool Largest, class T>
void extreme_row(const T* x, int64_t n, int64_t first, T* kept, int64_t* at, T* values,
                 int64_t* indices) {
  using Mask = std::remove_reference_t<decltype((Vec<T>{} == Vec<T>{})[0])>;
  constexpr int64_t block = 64;
  if (n == 0) return;
  T best = first == 0 ? x[0] : *kept;
  int64_t index = first == 0 ? 0 : *at;
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
        index = wins ? now : index;
        v[j] = best;
        k[j] = index;
      }
      continue;
    }
    if (equal) {
      int64_t here[block];
      for (int64_t j = 0; j < m; ++j) here[j] = p[j] == best ? now + j : index;
      index = running_largest(here, m, index, k);
    } else {
      for (int64_t j = 0; j < m; ++j) k[j] = index;
    }
    for (int64_t j = 0; j < m; ++j) v[j] = best;
  }
  *kept = best;
  *at = index;
}

template <bool Largest, class T>
void extreme_columns(const T* x, int64_t n, int64_t first, int64_t step, int64_t width, T* kept,
                     int64_t* at, T* values, int64_t* indices, int64_t index_step) {
  T best[kScanColumns];
  int64_t index[kScanColumns];
  for (int64_t j = 0; j < width; ++j) best[j] = first == 0 ? x[j] : kept[j];
  for (int64_t j = 0; j < width; ++j) index[j] = first == 0 ? 0 : at[j];
  for (int64_t i = first; i < first + n; ++i) {
    for (int64_t j = 0; j < width; ++j) {
      const T e = x[j], b = best[j];
      const bool wins = (e != e) | ((b == b) & (Largest ? e >= b : e <= b));
      best[j] = wins ? e : b;
      index[j] = wins ? i : index[j];
    }
    for (int64_t j = 0; j < width; ++j) values[j] = best[j];
    for (int64_t j = 0; j < width; ++j) indices[j] = index[j];
    x += step;
    values += step;
    indices += index_step;
  }
  for (int64_t j = 0; j < width; ++j) kept[j] = best[j];
  for (int64_t j = 0; j < width; ++j) at[j] = index[j];
}

template <bool Largest, class T>
void extreme(const T* x, int64_t n, int64_t first, int64_t step, int64_t width, T* best,
             int64_t* index, T* values, int64_t* indices, int64_t index_step) {
  if (step == 1 && index_step == 1) extreme_row<Largest>(x, n, first, best, index, values, indices);
  else extreme_columns<Largest>(x, n, first, step, width, best, index, values, indices, index_step);
}

constexpr ForFloats<LogSums> log_scans{log_sums<float>, log_sums<double>};
template <class T> constexpr ScanExtremes<T> extremes = {extreme<true, T>, extreme<false, T>};

}  // namespace

extern constinit const ScanKernels scan_kernels = {
    extremes<uint8_t>, extremes<int8_t>, extremes<int16_t>, extremes<int32_t>, extremes<int64_t>,
    extremes<float>,   extremes<double>, integer_sums,      sums_from,         sum,
    log_scans};

}  // namespace taeda::cpu::simd::TAEDA_ISA
