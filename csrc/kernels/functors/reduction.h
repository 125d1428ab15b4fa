// Reductions that add up a function of each element.
//
//   struct SumSquares {
//     static constexpr uint32_t dtypes = kFloats;
//     template <class V> FN static V f(V x) { return x * x; }
//   };
//
// V is an element, in the type that its sum is computed in, or a register of them. Floats (float16
// and bfloat16 too) add up as doubles, integers as int64. A new reduction needs this struct and its
// name in the list below it; an op in csrc/ops/reduce calls it as `sum_of<SumSquares>`.
#pragma once

#include "kernels/functors/position.h"
#include "kernels/reduce_op.h"

namespace taeda::TAEDA_ISA {

struct Sum {
  static constexpr uint32_t dtypes = Ordered;
  template <class V> FN static V f(V x) { return x; }
};
struct NanSum {
  static constexpr uint32_t dtypes = kFloats;
  template <class V> FN static V f(V x) { return x == x ? x : V{}; }
};
struct SumSquares {
  static constexpr uint32_t dtypes = kFloats;
  template <class V> FN static V f(V x) { return x * x; }
};
struct SumAbs {
  static constexpr uint32_t dtypes = kFloats;
  template <class V> FN static V f(V x) { return x < V{} ? -x : x; }
};
struct CountNonzero {
  static constexpr uint32_t dtypes = Ordered;
  template <class V> FN static V f(V x) { return x == V{} ? V{} : V{} + 1; }
};

using SumOps = List<Sum, NanSum, SumSquares, SumAbs, CountNonzero>;

template <class Op>
inline constexpr ReduceOp sum_of =
    static_cast<ReduceOp>(static_cast<int>(ReduceOp::Sum) + position<Op>(SumOps{}));

}  // namespace taeda::TAEDA_ISA
