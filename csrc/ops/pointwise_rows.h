// Maps each functor to its list and its position there.
#pragma once

#include "kernels/functors_activation.h"
#include "kernels/functors_bessel.h"
#include "kernels/functors_logic.h"
#include "kernels/functors_loss.h"
#include "kernels/functors_polynomial.h"
#include "ops/pointwise.h"
#include "ops/pointwise_tensor.h"

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
