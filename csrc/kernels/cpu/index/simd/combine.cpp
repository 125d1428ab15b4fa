#include "kernels/cpu/index/simd/combine.h"

#include "kernels/cpu/simd/half.h"
#include "kernels/functors/complex.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

using namespace taeda::TAEDA_ISA;

// What elements are added and multiplied as: integers wrap around, without a sign.
template <class T> struct WrappingOf {
  using type = T;
};
template <class T>
  requires(!is_float<T> && sizeof(T) <= 8 && requires(T v) { v << 1; })
struct WrappingOf<T> {
  using type = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
};

template <Combination C, class T> FN T combined(T a, T b) {
  using W = typename WrappingOf<T>::type;
  if constexpr (C == kAdd) return static_cast<T>(static_cast<W>(a) + static_cast<W>(b));
  else if constexpr (C == kMultiply) return static_cast<T>(static_cast<W>(a) * static_cast<W>(b));
  else {
    const T best = (C == kMax ? a > b : a < b) ? a : b;  // b if that is NaN
    return a != a ? a : best;
  }
}

struct Bool {
  uint8_t byte;  // not 0: true, whatever it is
};
template <Combination C> FN Bool combined(Bool a, Bool b) {
  const int p = a.byte != 0, q = b.byte != 0;
  return {static_cast<uint8_t>(C == kAdd || C == kMax ? p | q : p & q)};
}

template <Combination C, class T> void combine(void* to_row, const void* from_row, int64_t n) {
  auto* to = static_cast<T*>(to_row);
  auto* from = static_cast<const T*>(from_row);
  if constexpr (is_half<T>) {
    using V = Vec<float>;
    const auto step = [=]<int64_t N>(int64_t i, std::integral_constant<int64_t, N>) {
      const auto a = load_as<float, N>(to + i), b = load_as<float, N>(from + i);
      if constexpr (C == kAdd) store_as(to + i, a + b);
      else if constexpr (C == kMultiply) store_as(to + i, a * b);
      else store_as(to + i, a != a ? a : C == kMax ? max(a, b) : min(a, b));
    };
    int64_t i = 0;
    for (; i + kLanesOf<V> <= n; i += kLanesOf<V>)
      step(i, std::integral_constant<int64_t, kLanesOf<V>>{});
    for (; i < n; ++i) step(i, std::integral_constant<int64_t, 1>{});
  } else {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) to[i] = combined<C>(to[i], from[i]);
  }
}

template <Combination C> constexpr IndexKernels with_rows_of(IndexKernels k) {
  Combine rows[12] = {combine<C, Bool>,
                      combine<C, uint8_t>,
                      combine<C, int8_t>,
                      combine<C, int16_t>,
                      combine<C, int32_t>,
                      combine<C, int64_t>,
                      combine<C, F16>,
                      combine<C, BF16>,
                      combine<C, float>,
                      combine<C, double>,
                      nullptr,
                      nullptr};
  if constexpr (C == kAdd || C == kMultiply) {
    rows[10] = combine<C, Complex<float>>;
    rows[11] = combine<C, Complex<double>>;
  }
  for (int d = 0; d < 12; ++d) k.combine[C][d] = rows[d];
  return k;
}

// The signs of all differences at once, which a compiler makes vectors of.
bool any_outside(const int64_t* index, int64_t n, int64_t low, int64_t high) {
  uint64_t signs = 0;
  for (int64_t i = 0; i < n; ++i) {
    const auto v = static_cast<uint64_t>(index[i]);
    signs |= (v - static_cast<uint64_t>(low)) | (static_cast<uint64_t>(high - 1) - v);
  }
  return signs >> 63 != 0;
}

}  // namespace

extern constinit const IndexKernels index_kernels = with_rows_of<kAdd>(with_rows_of<kMultiply>(
    with_rows_of<kMax>(with_rows_of<kMin>({.combine = {}, .any_outside = any_outside}))));

}  // namespace taeda::cpu::simd::TAEDA_ISA
