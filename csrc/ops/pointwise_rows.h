// Maps each functor to its list, and so to its table of loops.
#pragma once

#include "kernels/functors_activation.h"
#include "kernels/functors_bessel.h"
#include "kernels/functors_logic.h"
#include "kernels/functors_loss.h"
#include "kernels/functors_polynomial.h"
#include "ops/pointwise.h"
#include "ops/pointwise_tensor.h"

namespace taeda {

template <class Op> const Loops* loops_of() {
  using namespace portable;
  constexpr int arithmetic = position<Op>(ArithmeticOps{}), rounding = position<Op>(RoundingOps{}),
                logic = position<Op>(LogicOps{}), math = position<Op>(MathOps{}),
                special = position<Op>(SpecialOps{}), bessel = position<Op>(BesselOps{}),
                polynomial = position<Op>(PolynomialOps{}),
                activation = position<Op>(ActivationOps{}), loss = position<Op>(LossOps{});
  const LoopTable& t = loops();
  if constexpr (arithmetic >= 0) return *t.arithmetic + arithmetic;
  else if constexpr (rounding >= 0) return *t.rounding + rounding;
  else if constexpr (logic >= 0) return *t.logic + logic;
  else if constexpr (math >= 0) return *t.math + math;
  else if constexpr (special >= 0) return *t.special + special;
  else if constexpr (bessel >= 0) return *t.bessel + bessel;
  else if constexpr (polynomial >= 0) return *t.polynomial + polynomial;
  else if constexpr (activation >= 0) return *t.activation + activation;
  else if constexpr (loss >= 0) return *t.loss + loss;
}

}  // namespace taeda
