#include "kernels/cpu/gemm/simd/gemm_small_k.h"

#include <algorithm>
#include <utility>

#include "kernels/cpu/gemm/simd/pairs.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

constexpr int64_t kRowsTogether = 32;  // that a strip of the right side is read for

// M rows of V times W neighbouring parts of results. Parts of complex numbers are multiplied by the
// left side's real and imaginary parts apart, which meet at the end.
template <class T, bool Complex, int W, int V, int M>
FN void block(const ThinProduct<T>& x, const T* a, const T* b, T* c, int64_t ldc) {
  using R = typename Row<T, W>::type;
  constexpr int64_t parts = Complex ? 2 : 1;
  const int64_t row = parts * x.a.row, col = parts * x.a.col, down = parts * x.b.row;
  R sum[M][V] = {}, cross[Complex ? M : 1][V] = {};
  for (int64_t p = 0; p < x.k; ++p, a += col, b += down) {
    R right[V];
    for (int v = 0; v < V; ++v) right[v] = *reinterpret_cast<const R*>(b + v * W);
    for (int r = 0; r < M; ++r) {
      for (int v = 0; v < V; ++v) {
        sum[r][v] += a[r * row] * right[v];
        if constexpr (Complex) cross[r][v] += a[r * row + 1] * right[v];
      }
    }
  }
  [[maybe_unused]] R of_sum, of_cross;
  if constexpr (Complex) {
    const T left = x.conjugate_a ? T(-1) : T(1), right = x.conjugate_b ? T(-1) : T(1);
    for (int w = 0; w < W; w += 2) {
      of_sum[w] = 1, of_sum[w + 1] = right;
      of_cross[w] = -left * right, of_cross[w + 1] = left;
    }
  }
  for (int r = 0; r < M; ++r) {
    for (int v = 0; v < V; ++v) {
      R& to = *reinterpret_cast<R*>(c + parts * r * ldc + v * W);
      R result = sum[r][v];
      if constexpr (Complex)
        result = result * of_sum + turned(cross[r][v], std::make_index_sequence<W>()) * of_cross;
      to = x.add ? to + result : result;
    }
  }
}

template <class T, bool Complex, int W, int V>
void rows(const ThinProduct<T>& x, int64_t i, int64_t end, const T* b, T* c, int64_t ldc) {
  constexpr int64_t parts = Complex ? 2 : 1;
  constexpr int most = Complex && V == 2 ? kRows / 2 : kRows;
  auto run = [&]<int M>() {
    for (; i + M <= end; i += M)
      block<T, Complex, W, V, M>(x, x.a.data + parts * i * x.a.row, b, c + parts * i * ldc, ldc);
  };
  run.template operator()<most>();
  if constexpr (most > 4) run.template operator()<4>();
  if constexpr (most > 2) run.template operator()<2>();
  run.template operator()<1>();
}

template <class T, bool Complex>
void product(const ThinProduct<T>& x, int64_t top, int64_t bottom, T* c, int64_t ldc) {
  constexpr int64_t parts = Complex ? 2 : 1, lanes = kLanes<T>;
  const int64_t all = parts * x.n;
  int64_t j = 0;
  auto run = [&]<int W, int V>() {
    for (; j + W * V <= all; j += W * V)
      rows<T, Complex, W, V>(x, top, bottom, x.b.data + j, c + j, ldc);
  };
  run.template operator()<lanes, 2>();
  run.template operator()<lanes, 1>();
  if constexpr (lanes > 8) run.template operator()<8, 1>();
  if constexpr (lanes > 4) run.template operator()<4, 1>();
  if constexpr (lanes > 2) run.template operator()<2, 1>();
  if constexpr (!Complex) run.template operator()<1, 1>();
}

template <class T, bool Complex>
void products(int64_t count, const ThinProduct<T>& given, T* c, int64_t ldc, int64_t c_step) {
  constexpr int64_t parts = Complex ? 2 : 1;
  ThinProduct<T> x = given;
  for (int64_t i = 0; i < count; ++i, c += parts * c_step) {
    for (int64_t top = 0; top < x.m; top += kRowsTogether)
      product<T, Complex>(x, top, std::min(top + kRowsTogether, x.m), c, ldc);
    x.a.data += parts * x.a.next;
    x.b.data += parts * x.b.next;
  }
}

}  // namespace

extern constinit const ThinGemmKernels thin_gemm_kernels = {
    products<float, false>, products<float, true>, products<double, false>, products<double, true>};

}  // namespace taeda::cpu::simd::TAEDA_ISA
