// The exponentials of softmax and cross entropy, of vectors and of numbers: exp(x) for x <= 0,
// where results below the normal numbers are 0. NaN stays.
//
// Only for files compiled once for each instruction set (those under simd/).
#pragma once

#include "kernels/cpu/simd/vec.h"

namespace taeda::cpu::simd::TAEDA_ISA {

using taeda::TAEDA_ISA::exp_or_zero;

template <class V>
  requires(kLanesOf<V> > 1)
FN V exp_or_zero(V x) {
  if constexpr (same_type<ElementOf<V>, float>) {
    using U = Vec<uint32_t, kLanesOf<V>>;
    U n;
    // exp(-87.5) has the exponent field 0, which makes the power of two a zero.
    const V q = taeda::TAEDA_ISA::exp_power(x < -87.5f ? V{} - 87.5f : x, n);
    return q * (V)((n + 127u) << 23);
  } else {
    alignas(V) double e[kLanesOf<V>];
    store(e, x);
    for (double& lane : e) lane = exp_or_zero(lane);
    return load<kLanesOf<V>>(e);
  }
}

// The same as a term of a sum that is at least 1: two thirds of the instructions. The remainder of
// x is taken in one step, whose error grows with |x| as the term itself vanishes (2e-7 in all).
template <class V> FN V exp_term(V x) {
  if constexpr (same_type<ElementOf<V>, float> && kLanesOf<V> > 1) {
    constexpr float magic = 12582912.0f + 127.0f;  // leaves round(x log2(e)) + 127 in the low bits
    const V c = x < -88.0f ? V{} - 88.0f : x;
    const V shifted = c * 1.44269504088896340736f + magic, k = shifted - magic;
    const V r = c * 1.44269504088896340736f - k;
    V q = r * 1.32647273e-3f + 9.67151299e-3f;  // 2^r, |r| <= 1/2
    q = q * r + 5.55073358e-2f;
    q = q * r + 2.4022242e-1f;
    q = q * r + 6.93147004e-1f;
    q = q * r + 1.0f;
    return q * (V)((Vec<uint32_t, kLanesOf<V>>)shifted << 23);
  } else {
    return exp_or_zero(x);
  }
}

}  // namespace taeda::cpu::simd::TAEDA_ISA
