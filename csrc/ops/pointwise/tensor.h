// Functions that functors call, overloaded for Tensors: with these, a functor's derivative can be
// instantiated for Tensors and differentiated again.
#pragma once

#include "ops/core/tensor_ops.h"

namespace taeda {

Tensor select(const Tensor& cond, const Tensor& a, const Tensor& b);  // where()
Tensor zero(const Tensor& like);
Tensor sgn_gradient(const Tensor& g, const Tensor& x);
Tensor angle_gradient(const Tensor& g, const Tensor& x);
Tensor log1p_exp(const Tensor& x);
Tensor tanh_log1p_exp(const Tensor& x);
Tensor sin_anywhere(const Tensor& x);
Tensor cos_anywhere(const Tensor& x);

Tensor abs(const Tensor& x);
Tensor sgn(const Tensor& x);
Tensor sqrt(const Tensor& x);
Tensor floor(const Tensor& x);
Tensor trunc(const Tensor& x);
Tensor exp(const Tensor& x);
Tensor expm1(const Tensor& x);
Tensor log(const Tensor& x);
Tensor log1p(const Tensor& x);
Tensor sinh(const Tensor& x);
Tensor cosh(const Tensor& x);
Tensor tanh(const Tensor& x);
Tensor sigmoid(const Tensor& x);
Tensor erf(const Tensor& x);
Tensor digamma(const Tensor& x);
Tensor polygamma(const Tensor& n, const Tensor& x);
Tensor pow(const Tensor& x, const Tensor& y);

Tensor i0(const Tensor& x);
Tensor i0e(const Tensor& x);
Tensor i1(const Tensor& x);
Tensor i1e(const Tensor& x);
Tensor k0(const Tensor& x);
Tensor k0e(const Tensor& x);
Tensor k1(const Tensor& x);
Tensor k1e(const Tensor& x);
Tensor bessel_j0(const Tensor& x);
Tensor bessel_j1(const Tensor& x);
Tensor bessel_y0(const Tensor& x);
Tensor bessel_y1(const Tensor& x);
Tensor erfcx(const Tensor& x);
Tensor lgamma(const Tensor& x);
Tensor zeta(const Tensor& x, const Tensor& y);
Tensor chebyshev_t(const Tensor& x, const Tensor& y);
Tensor chebyshev_u(const Tensor& x, const Tensor& y);
Tensor hermite_h(const Tensor& x, const Tensor& y);
Tensor hermite_he(const Tensor& x, const Tensor& y);

}  // namespace taeda
