#include "kernels/cpu/simd/gemm_small.h"

#include "kernels/cpu/simd/registers.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

// M rows of W neighbouring results; their sums stay in registers.
template <class T, int W, int M>
FN void block(int64_t k, Strided<T> a, Strided<T> b, bool add, T* c, int64_t ldc) {
  typedef T Row __attribute__((vector_size(W * sizeof(T))));
  Row sum[M] = {};
  if (add) {
    for (int r = 0; r < M; ++r) __builtin_memcpy(&sum[r], c + r * ldc, sizeof(Row));
  }
  for (int64_t p = 0; p < k; ++p) {
    Row row;
    __builtin_memcpy(&row, b.data + p * b.row, sizeof(Row));
    for (int r = 0; r < M; ++r) sum[r] += a.data[r * a.row + p * a.col] * row;
  }
  for (int r = 0; r < M; ++r) __builtin_memcpy(c + r * ldc, &sum[r], sizeof(Row));
}

template <class T, int W>
void columns(int64_t m, int64_t k, Strided<T> a, Strided<T> b, bool add, T* c, int64_t ldc) {
  auto rows = [&]<int M>(Strided<T> part, T* to) { block<T, W, M>(k, part, b, add, to, ldc); };
  auto at_row = [&](int64_t i) { return Strided<T>{a.data + i * a.row, a.row, a.col}; };
  int64_t i = 0;
  for (; i + kRows <= m; i += kRows) rows.template operator()<kRows>(at_row(i), c + i * ldc);
  for (; i + 2 <= m; i += 2) rows.template operator()<2>(at_row(i), c + i * ldc);
  if (i < m) rows.template operator()<1>(at_row(i), c + i * ldc);
}

template <class T>
void product(int64_t m, int64_t n, int64_t k, Strided<T> a, Strided<T> b, bool add, T* c,
             int64_t ldc) {
  T turned[kSmallSide * kSmallSide];
  if (b.col != 1 && n > 1) {
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t p = 0; p < k; ++p) turned[p * n + j] = b.data[p * b.row + j * b.col];
    }
    b = {turned, n, 1};
  }
  int64_t j = 0;
  auto run = [&]<int W>() {
    for (; j + W <= n; j += W) columns<T, W>(m, k, a, {b.data + j, b.row, b.col}, add, c + j, ldc);
  };
  run.template operator()<kLanes<T>>();
  if constexpr (kLanes<T> > 8) run.template operator()<8>();
  if constexpr (kLanes<T> > 4) run.template operator()<4>();
  if constexpr (kLanes<T> > 2) run.template operator()<2>();
  run.template operator()<1>();
}

}  // namespace

extern constinit const SmallGemmKernels small_gemm_kernels = {product<float>, product<double>};

}  // namespace taeda::cpu::simd::TAEDA_ISA
