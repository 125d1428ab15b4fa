// Maps each functor to its list and its position there.
#pragma once

#include "kernels/functors/activation.h"
#include "kernels/functors/bessel.h"
#include "kernels/functors/logic.h"
#include "kernels/functors/loss.h"
#include "kernels/functors/polynomial.h"
#include "kernels/functors/rounding.h"
#include "ops/pointwise/pointwise.h"
#include "ops/pointwise/tensor.h"

namespace taeda {

template <class Op> Functor functor_of() {
  using namespace portable;
  constexpr int positions[] = {
      position<Op>(ArithmeticOps{}), position<Op>(RoundingOps{}),   position<Op>(LogicOps{}),
      position<Op>(MathOps{}),       position<Op>(SpecialOps{}),    position<Op>(BesselOps{}),
      position<Op>(PolynomialOps{}), position<Op>(ActivationOps{}), position<Op>(LossOps{})};
  constexpr auto list = [&] {
    size_t i = 0;
    while (positions[i] < 0) ++i;
    return i;
  }();
  return find_functor(static_cast<FunctorList>(list), positions[list]);
}

}  // namespace taeda
