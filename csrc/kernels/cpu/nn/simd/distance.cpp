#include "kernels/cpu/nn/simd/distance.h"

#include "kernels/cpu/simd/vec.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

// `Registers` of neighbours j at once. Sums of 32 terms at a time are added up: long ones lose
// less.
template <class T, bool Squares, int Registers>
FN void some(const T* a, const T* b, int64_t step, int64_t k, T* out) {
  using V = Vec<T>;
  V total[Registers] = {};
  for (int64_t first = 0; first < k; first += 32) {
    const int64_t last = first + 32 < k ? first + 32 : k;
    V sum[Registers] = {};
    for (int64_t c = first; c < last; ++c) {
      for (int r = 0; r < Registers; ++r) {
        const V d = a[c] - load(b + c * step + r * kLanes<T>);
        if constexpr (Squares) sum[r] += d * d;
        else sum[r] += d < 0 ? -d : d;
      }
    }
    for (int r = 0; r < Registers; ++r) total[r] += sum[r];
  }
  for (int r = 0; r < Registers; ++r) store(out + r * kLanes<T>, total[r]);
  if constexpr (Squares) {  // in memory, where compilers make vectors of roots
    for (int64_t i = 0; i < Registers * kLanes<T>; ++i) out[i] = taeda::TAEDA_ISA::sqrt(out[i]);
  }
}

template <class T, bool Squares>
void row(const T* a, const T* b, int64_t n, int64_t step, int64_t k, T* out) {
  constexpr int64_t lanes = kLanes<T>;
  int64_t j = 0;
  for (; j + 4 * lanes <= n; j += 4 * lanes) some<T, Squares, 4>(a, b + j, step, k, out + j);
  for (; j + lanes <= n; j += lanes) some<T, Squares, 1>(a, b + j, step, k, out + j);
  if (j == n) return;
  T last[lanes];
  some<T, Squares, 1>(a, b + j, step, k, last);
  for (int64_t i = 0; j + i < n; ++i) out[j + i] = last[i];
}

template <class T> bool from_products(T norm, const T* norms, int64_t n, T* __restrict row) {
  T least = 0;
  for (int64_t j = 0; j < n; ++j) {
    const T both = norm + norms[j], square = both + row[j];
    const bool good = (square >= both / 32) & (both < static_cast<T>(__builtin_inf()));
    row[j] = good ? taeda::TAEDA_ISA::sqrt(square) : T(-1);
    least = row[j] < least ? row[j] : least;
  }
  return least >= 0;
}

template <class T> void signs(const T* g, const T* a, const T* b, int64_t n, int64_t k, T* sum) {
  using V = Vec<T>;
  constexpr int64_t lanes = kLanes<T>;
  int64_t c = 0;
  for (; c + lanes <= k; c += lanes) {
    const V here = load(a + c);
    V total{};
    for (int64_t j = 0; j < n; ++j) {
      const V there = load(b + j * k + c), w = V{} + g[j];
      total += here > there ? w : here < there ? -w : V{};
    }
    store(sum + c, total);
  }
  for (; c < k; ++c) {
    T total = 0;
    for (int64_t j = 0; j < n; ++j) {
      const T there = b[j * k + c];
      total += a[c] > there ? g[j] : a[c] < there ? -g[j] : T(0);
    }
    sum[c] = total;
  }
}

template <class T>
constexpr DistanceLoops<T> kLoops{row<T, false>, row<T, true>, from_products<T>, signs<T>};

}  // namespace

extern constinit const ForFloats<DistanceLoops> distance_kernels = {kLoops<float>, kLoops<double>};

}  // namespace taeda::cpu::simd::TAEDA_ISA
