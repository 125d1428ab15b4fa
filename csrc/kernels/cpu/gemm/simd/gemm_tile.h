// A tile of results of a matrix product: M rows of W registers, whose sums stay in registers.
//
// Only for files compiled once for each instruction set.
#pragma once

#include "kernels/cpu/gemm/simd/gemm_kernels.h"
#include "kernels/cpu/simd/half.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

// As many rows of sums, two registers wide, as there are registers for beside two of b and one
// element of a.
constexpr int kTileRows = kRegisters == 32 ? 8 : kRegisterBytes == 32 ? 6 : 4;

// How an element type is read: half precision through F16 and BF16, complex numbers as pairs.
template <class T> struct Element {
  using type = T;
};
template <> struct Element<Half> {
  using type = F16;
};
template <> struct Element<BFloat16> {
  using type = BF16;
};
template <> struct Element<std::complex<float>> {
  using type = float;
};
template <> struct Element<std::complex<double>> {
  using type = double;
};
template <class T> using ElementType = typename Element<T>::type;
template <class T> const ElementType<T>* elements(const T* p) {
  return reinterpret_cast<const ElementType<T>*>(p);
}

// The first n < lanes elements at p as S, and zeros.
template <class S, class E>
FN Vec<S> load_first(const FirstLanes<S>& first, const E* p, int64_t n) {
  if constexpr (same_type<S, E>) return first.load(p);
  else {
    E some[kLanes<S>] = {};
    for (int64_t i = 0; i < n; ++i) some[i] = p[i];
    return load_as<S>(some);
  }
}

// Stores the sums of a tile with n columns. Part: the last register has fewer than its lanes.
template <bool Part, class S, class Out, int M, int W>
FN void store_tile(const Vec<S> (&sum)[M][W], int64_t n, const Epilogue<S>& e, Out* c,
                   int64_t ldc) {
  constexpr int64_t lanes = kLanes<S>;
  const int64_t last = n - (W - 1) * lanes;
  const FirstLanes<S> first(last);
#pragma GCC unroll 8
  for (int r = 0; r < M; ++r, c += ldc) {
#pragma GCC unroll 8
    for (int w = 0; w < W; ++w) {
      const bool part = Part && w == W - 1;
      Out* p = c + w * lanes;
      Vec<S> v = e.alpha * sum[r][w];
      if (e.bias) v += part ? first.load(e.bias + w * lanes) : load(e.bias + w * lanes);
      else if (e.row_bias) v += e.row_bias[r];
      else if (e.beta != S(0)) v += e.beta * (part ? load_first<S>(first, p, last) : load_as<S>(p));
      if (!part) store_as(p, v);
      else if constexpr (same_type<S, Out>) first.store(p, v);
      else {
        for (int64_t i = 0; i < last; ++i) p[i] = static_cast<Out>(v[i]);
      }
    }
  }
}

}  // namespace
}  // namespace taeda::cpu::simd::TAEDA_ISA
