#include "kernels/cpu/gemm/simd/panels.h"

#include <algorithm>

#include "kernels/cpu/simd/registers.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

template <class T, int W, int M>
void product_of(int64_t k, const T* a, int64_t a_row, int64_t a_step, const T* b, int64_t b_row,
                const Finish<T>& finish, T* c, int64_t ldc) {
  using V = typename Vector<T>::type;
  constexpr int64_t lanes = kLanes<T>;
  V sum[M][W] = {};
  for (int64_t p = 0; p < k; ++p, a += a_step, b += b_row) {
    const V left = at(b), right = at(b + (W - 1) * lanes);
#pragma GCC unroll 8
    for (int r = 0; r < M; ++r) {
      sum[r][0] += a[r * a_row] * left;
      if constexpr (W == 2) sum[r][1] += a[r * a_row] * right;
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < M; ++r, c += ldc) {
    for (int w = 0; w < W; ++w) {
      V& to = at(c + w * lanes);
      const V v = finish.alpha * sum[r][w];
      if (finish.start) to = v + at(finish.start + w * lanes);
      else if (finish.of_rows) to = v + finish.of_rows[r];
      else if (finish.beta == T(0)) to = v;
      else to = v + finish.beta * to;
    }
  }
}

template <class T, int M = kRows>
void product(int64_t k, int64_t m, bool wide, const T* a, int64_t a_row, int64_t a_step, const T* b,
             int64_t b_row, Finish<T> finish, T* c, int64_t ldc) {
  if constexpr (M > 1) {
    if (m < M) {
      return product<T, M - 1>(k, m, wide, a, a_row, a_step, b, b_row, finish, c, ldc);
    }
  }
  if (wide) product_of<T, 2, M>(k, a, a_row, a_step, b, b_row, finish, c, ldc);
  else product_of<T, 1, M>(k, a, a_row, a_step, b, b_row, finish, c, ldc);
}

template <class T> void copy_rows(int64_t k, int64_t m, const T* x, int64_t stride, T* to) {
  constexpr int64_t ahead = 32;  // to the second cache: in the first one far rows share few places
  const int64_t whole = m / kRows, rest = m % kRows;
  for (int64_t p = 0; p < k; ++p, x += stride) {
    const T* next = x + std::min(ahead, k - 1 - p) * stride;
    for (int64_t i = 0; i < m; i += 64 / int64_t{sizeof(T)}) __builtin_prefetch(next + i, 0, 2);
    for (int64_t g = 0; g < whole; ++g)
      __builtin_memcpy(to + (g * k + p) * kRows, x + g * kRows, kRows * sizeof(T));
    for (int64_t r = 0; r < rest; ++r) to[whole * kRows * k + p * rest + r] = x[whole * kRows + r];
  }
}

template <class T>
void copy_panel(int64_t k, int64_t n, bool wide, const T* x, int64_t stride, T* to) {
  constexpr int64_t lanes = kLanes<T>;
  const int64_t width = wide ? 2 * lanes : lanes;
  for (int64_t p = 0; p < k; ++p, x += stride, to += width) {
    if (n == width) {
      at(to) = at(x);
      if (wide) at(to + lanes) = at(x + lanes);
    } else {
      for (int64_t j = 0; j < width; ++j) to[j] = j < n ? x[j] : T(0);
    }
  }
}

template <class T>
constexpr PanelLoops<T> panel_loops = {kRows, kLanes<T>, product<T>, copy_rows<T>, copy_panel<T>};

}  // namespace

extern constinit const PanelKernels panel_kernels = {panel_loops<float>, panel_loops<double>};

}  // namespace taeda::cpu::simd::TAEDA_ISA
