// A tile of results of a matrix product: M rows of W registers, whose sums stay in registers.
//
// Only for files compiled once for each instruction set.
#pragma once

#include "kernels/cpu/gemm/simd/gemm_kernels.h"
#include "kernels/cpu/simd/half.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

// As many rows of sums, two registers wide, as there are registers for beside two of b and one
// element of a. One register wide, at least as many as hide the latency of an FMA.
constexpr int kTileRows = kRegisters == 32 ? 8 : kRegisterBytes == 32 ? 6 : 4;
constexpr int kNarrowRows = kRegisters == 32 ? kTileRows : 2 * kTileRows;

// How an element type is read: half precision through F16 and BF16, complex numbers as pairs.
template <class T> struct Element {
  using type = std::conditional_t<same_type<T, Half>, F16,
                                  std::conditional_t<same_type<T, BFloat16>, BF16, T>>;
};
template <class R> struct Element<std::complex<R>> {
  using type = R;
};
template <class T> using ElementType = typename Element<T>::type;
template <class T> const ElementType<T>* elements(const T* p) {
  return reinterpret_cast<const ElementType<T>*>(p);
}

// The first elements at p as S, and zeros.
template <class S, int64_t N, class E, class First>
FN Vec<S, N> load_first(const First& first, const E* p) {
  if constexpr (same_type<S, E>) return first.load(p);
  else {
    E some[N];
    store(&some->bits, first.load(&p->bits));
    return load_as<S, N>(some);
  }
}

// c = the epilogue of m rows of n sums, `row` apart, of which the last register may be partial.
template <class S>
[[gnu::noinline]] void store_part(const S* sums, int64_t row, int64_t m, int64_t n,
                                  const Epilogue<S>& e, S* c, int64_t ldc) {
  const S* from = e.from;
  for (int64_t r = 0; r < m; ++r, sums += row, c += ldc, from += e.from_row) {
    for (int64_t j = 0; j < n; j += kLanes<S>) {
      const FirstLanes<S> first(n - j < kLanes<S> ? n - j : kLanes<S>);
      Vec<S> v = e.alpha * first.load(sums + j);
      if (e.beta != S(0) && e.from_col == 0) v += static_cast<S>(e.beta * *from);
      else if (e.beta != S(0)) v += e.beta * first.load(from + j);
      first.store(c + j, v);
    }
  }
}

// Stores the sums of a tile with n columns.
template <class S, int64_t N, int M, int W>
FN void store_tile(const Vec<S, N> (&sum)[M][W], int64_t n, const Epilogue<S>& e, S* c,
                   int64_t ldc) {
  if (n < W * N) {
    S rows[M * W * N];
#pragma GCC unroll 16
    for (int i = 0; i < M * W; ++i) store(rows + i * N, sum[i / W][i % W]);
    return store_part(rows, W * N, M, n, e, c, ldc);
  }
  if (e.beta == S(0)) {
#pragma GCC unroll 16
    for (int i = 0; i < M * W; ++i) store(c + i / W * ldc + i % W * N, e.alpha * sum[i / W][i % W]);
  } else {
    const S* from = e.from;
    if (e.from_col == 0) {
#pragma GCC unroll 16
      for (int i = 0; i < M * W; ++i) {
        const S added = static_cast<S>(e.beta * from[i / W * e.from_row]);
        store(c + i / W * ldc + i % W * N, e.alpha * sum[i / W][i % W] + added);
      }
      return;
    }
#pragma GCC unroll 16
    for (int i = 0; i < M * W; ++i) {
      Vec<S, N> v = e.alpha * sum[i / W][i % W];
      v += e.beta * load<N>(from + i / W * e.from_row + i % W * N);
      store(c + i / W * ldc + i % W * N, v);
    }
  }
}

// M rows of W vectors of N lanes. Part: the last of b is read by its elements before n only.
template <class S, int64_t N, int M, int W, bool Part, class E>
[[gnu::noinline]] void tile_of(int64_t n, const TileProduct<S, E>& x) {
  const int64_t last = n - (W - 1) * N, a_row = x.a_row, a_step = x.a_step, b_row = x.b_row;
  const FirstLanes<std::conditional_t<same_type<S, E>, S, uint16_t>, N> first(last);
  Vec<S, N> sum[M][W] = {};
  for (int64_t i = 0; i < x.runs; ++i) {
    const E *a = x.a + (x.a_at ? x.a_at[i] : 0), *b = x.b + (x.b_at ? x.b_at[i] : 0);
    for (int64_t p = 0; p < x.k; ++p, a += a_step, b += b_row) {
      // Panels of 8-byte elements are in the second cache (gemm_packed.cpp); twelve rows ahead.
      if constexpr (sizeof(S) == 8) prefetch<3>(b + 12 * b_row, W * N * int64_t{sizeof(S)});
      Vec<S, N> right[W];
#pragma GCC unroll 8
      for (int w = 0; w < W; ++w)
        right[w] =
            Part && w == W - 1 ? load_first<S, N>(first, b + w * N) : load_as<S, N>(b + w * N);
#pragma GCC unroll 16
      for (int r = 0; r < M; ++r) {
        const S left = to<S>(a[r * a_row]);
#pragma GCC unroll 8
        for (int w = 0; w < W; ++w) sum[r][w] += left * right[w];
      }
    }
  }
  store_tile<S, N, M, W>(sum, n, x.epilogue, x.c, x.ldc);
}

}  // namespace
}  // namespace taeda::cpu::simd::TAEDA_ISA
