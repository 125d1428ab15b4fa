#include "kernels/cpu/linalg/simd/triangle.h"

#include "kernels/cpu/simd/vec.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

template <class T> struct AllLanes {
  FN Vec<T> load(const T* p) const { return simd::TAEDA_ISA::load(p); }
  FN void store(T* p, Vec<T> v) const { simd::TAEDA_ISA::store(p, v); }
};

// One system for K vectors of right sides.
template <class T, int K, class Lanes> struct System {
  const T* m;
  int64_t row, col;
  bool unit;
  T* x;
  int64_t step;
  Lanes lanes;

  FN T at(int64_t i, int64_t j) const { return m[i * row + j * col]; }

  // Columns j to j + J of x, after the known ones.
  template <int J> FN void solve(int64_t j, Vec<T> (*known)[K]) {
    Vec<T> sum[J][K];
    for (int c = 0; c < J; ++c) {
      for (int k = 0; k < K; ++k) sum[c][k] = lanes.load(x + (j + c) * step + k * kLanes<T>);
    }
    for (int64_t i = 0; i < j; ++i) {
      for (int c = 0; c < J; ++c) {
        for (int k = 0; k < K; ++k) sum[c][k] -= known[i][k] * at(i, j + c);
      }
    }
    for (int c = 0; c < J; ++c) {
      const T inverse = unit ? T(1) : 1 / at(j + c, j + c);
      for (int k = 0; k < K; ++k) {
        for (int i = 0; i < c; ++i) sum[c][k] -= sum[i][k] * at(j + i, j + c);
        known[j + c][k] = sum[c][k] *= inverse;
        lanes.store(x + (j + c) * step + k * kLanes<T>, sum[c][k]);
      }
    }
  }
  void solve_all(int64_t n) {
    Vec<T> known[TriangleLoops<T>::kMost][K];  // side by side
    int64_t j = 0;
    for (; j + 4 <= n; j += 4) solve<4>(j, known);
    for (; j < n; ++j) solve<1>(j, known);
  }
};

template <class T>
void solve(int64_t n, int64_t sides, bool unit, const T* m, int64_t row, int64_t col, T* x,
           int64_t step) {
  constexpr int64_t lanes = kLanes<T>;
  int64_t s = 0;
  for (; s + 2 * lanes <= sides; s += 2 * lanes) {
    System<T, 2, AllLanes<T>>{m, row, col, unit, x + s, step, {}}.solve_all(n);
  }
  for (; s < sides; s += lanes) {
    const FirstLanes<T> first(sides - s < lanes ? sides - s : lanes);
    System<T, 1, FirstLanes<T>>{m, row, col, unit, x + s, step, first}.solve_all(n);
  }
}

}  // namespace

extern constinit const ForFloats<TriangleLoops> triangle_kernels{{solve<float>}, {solve<double>}};

}  // namespace taeda::cpu::simd::TAEDA_ISA
