#include "ops/pointwise/tensor.h"

namespace taeda {

Tensor select(const Tensor& cond, const Tensor& a, const Tensor& b) { return where(cond, a, b); }
Tensor zero(const Tensor& like) { return zeros_like(like); }

// With s = z/|z|: the component of g orthogonal to s, divided by |z|.
Tensor sgn_gradient(const Tensor& g, const Tensor& x) {
  if (!is_complex(x.dtype())) return zeros_like(g);
  Tensor s = sgn(x), r = abs(x);
  Tensor along = op<"real">(conj(s) * g);
  return where(r == Tensor(0), Tensor(0), (g - s * along) / r);
}
Tensor angle_gradient(const Tensor& g, const Tensor& x) {
  if (!is_complex(x.dtype())) return zeros_like(g);
  Tensor r = abs(x);
  return where(r == Tensor(0), Tensor(0), g * (x / (r * r)) * Tensor(Scalar(cdouble(0, 1))));
}

Tensor log1p_exp(const Tensor& x) { return -op<"logsigmoid">(-x); }
Tensor tanh_log1p_exp(const Tensor& x) { return op<"tanh">(log1p_exp(x)); }
Tensor sin_anywhere(const Tensor& x) { return op<"sin">(x); }
Tensor cos_anywhere(const Tensor& x) { return op<"cos">(x); }
Tensor abs(const Tensor& x) { return op<"abs">(x); }
Tensor sgn(const Tensor& x) { return op<"sgn">(x); }
Tensor sqrt(const Tensor& x) { return op<"sqrt">(x); }
Tensor floor(const Tensor& x) { return op<"floor">(x); }
Tensor trunc(const Tensor& x) { return op<"trunc">(x); }
Tensor exp(const Tensor& x) { return op<"exp">(x); }
Tensor expm1(const Tensor& x) { return op<"expm1">(x); }
Tensor log(const Tensor& x) { return op<"log">(x); }
Tensor log1p(const Tensor& x) { return op<"log1p">(x); }
Tensor sinh(const Tensor& x) { return op<"sinh">(x); }
Tensor cosh(const Tensor& x) { return op<"cosh">(x); }
Tensor tanh(const Tensor& x) { return op<"tanh">(x); }
Tensor sigmoid(const Tensor& x) { return op<"sigmoid">(x); }
Tensor erf(const Tensor& x) { return op<"erf">(x); }
Tensor digamma(const Tensor& x) { return op<"digamma">(x); }
Tensor polygamma(const Tensor& n, const Tensor& x) { return op<"polygamma">(n.item().to_int(), x); }
Tensor pow(const Tensor& x, const Tensor& y) { return op<"pow">(x, y); }

Tensor i0(const Tensor& x) { return op<"i0">(x); }
Tensor i0e(const Tensor& x) { return op<"special_i0e">(x); }
Tensor i1(const Tensor& x) { return op<"special_i1">(x); }
Tensor i1e(const Tensor& x) { return op<"special_i1e">(x); }
Tensor k0(const Tensor& x) { return op<"special_modified_bessel_k0">(x); }
Tensor k0e(const Tensor& x) { return op<"special_scaled_modified_bessel_k0">(x); }
Tensor k1(const Tensor& x) { return op<"special_modified_bessel_k1">(x); }
Tensor k1e(const Tensor& x) { return op<"special_scaled_modified_bessel_k1">(x); }
Tensor bessel_j0(const Tensor& x) { return op<"special_bessel_j0">(x); }
Tensor bessel_j1(const Tensor& x) { return op<"special_bessel_j1">(x); }
Tensor bessel_y0(const Tensor& x) { return op<"special_bessel_y0">(x); }
Tensor bessel_y1(const Tensor& x) { return op<"special_bessel_y1">(x); }
Tensor erfcx(const Tensor& x) { return op<"special_erfcx">(x); }
Tensor lgamma(const Tensor& x) { return op<"lgamma">(x); }
Tensor zeta(const Tensor& x, const Tensor& y) { return op<"special_zeta">(x, y); }
Tensor chebyshev_t(const Tensor& x, const Tensor& y) {
  return op<"special_chebyshev_polynomial_t">(x, y);
}
Tensor chebyshev_u(const Tensor& x, const Tensor& y) {
  return op<"special_chebyshev_polynomial_u">(x, y);
}
Tensor hermite_h(const Tensor& x, const Tensor& y) {
  return op<"special_hermite_polynomial_h">(x, y);
}
Tensor hermite_he(const Tensor& x, const Tensor& y) {
  return op<"special_hermite_polynomial_he">(x, y);
}

}  // namespace taeda
