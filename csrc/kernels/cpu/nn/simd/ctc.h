// Sums of probabilities, given as logarithms, along the states of an alignment.
#pragma once

#include "kernels/cpu/simd/pick.h"

namespace taeda::cpu::simd {

template <class T> struct CtcLoops {
  // to[s] = log(exp(a[s]) + exp(b[s]) + exp(c[s] + gate[s])) + p[s] for s < n; minus infinities
  // count for nothing.
  void (*step)(const T* a, const T* b, const T* c, const T* gate, const T* p, int64_t n, T* to);
  // to[s] = exp(a[s] + b[s] - p[s] + more)
  void (*through)(const T* a, const T* b, const T* p, T more, int64_t n, T* to);
  // to[c] = (exp(p[c]) - sum[c]) * scale; NaN where p or `loss` is infinite.
  void (*differences)(const T* p, const T* sum, T loss, T scale, int64_t n, T* to);
};

TAEDA_TABLES_UP_TO_V3(ForFloats<CtcLoops>, ctc_kernels)

}  // namespace taeda::cpu::simd
