// Activation functions of neural networks. Papers are named where a function has one.
#pragma once

#include "kernels/functors/math.h"

namespace taeda::TAEDA_ISA {

struct Relu {
  static constexpr OpInfo info{"relu", "`max(x, 0)`: the rectifier.", Real,
                               saves_output | no_out | inplace_function | keeps_zero};
  template <class T> FN static T f(T x) { return x < T(0) ? T(0) : x; }
  template <class T> FN static T da(T g, T, T y) { return select(y > T(0), g, T(0)); }
};
struct Relu6 {
  static constexpr OpInfo info{"relu6", "`min(max(x, 0), 6)`.", Real, saves_self | function_only,
                               kNnFunctional};
  template <class T> FN static T f(T x) { return x < T(0) ? T(0) : (x > T(6) ? T(6) : x); }
  template <class T> FN static T da(T g, T x, T) {
    return select((x > T(0)) & (x < T(6)), g, T(0));
  }
};
struct LeakyRelu {
  static constexpr OpInfo info{"leaky_relu(self: Tensor, negative_slope: Scalar = 0.01)",
                               "x where it is positive, `negative_slope * x` elsewhere.", FloatOnly,
                               saves_self | saves_other | function_only, kNnFunctional};
  static constexpr bool scalar_operands = true;
  template <class T> FN static T f(T x, T slope) { return x > T(0) ? x : x * slope; }
  template <class T> FN static T da(T g, T x, T slope, T) { return select(x > T(0), g, g * slope); }
};
struct Prelu {
  static constexpr OpInfo info{"_prelu", "", FloatOnly, internal | saves_inputs};
  static constexpr bool scalar_operands = true;
  template <class T> FN static T f(T x, T w) { return x > T(0) ? x : x * w; }
  template <class T> FN static T da(T g, T x, T w, T) { return select(x > T(0), g, g * w); }
  template <class T> FN static T db(T g, T x, T, T) { return select(x > T(0), T(0), g * x); }
};
// elu, selu and celu: a for positive x, b (exp(c x) - 1) for the rest.
struct EluFamily {
  static constexpr OpInfo info{"_elu", "", FloatOnly, internal | saves_self | heavy};
  template <class T> FN static T f(T x, T a, T b, T c) {
    return x > T(0) ? x * a : b * expm1(c * x);
  }
  template <class T> FN static T da(T g, T x, T a, T b, T c, T) {
    return select(x > T(0), g * a, g * (b * c) * exp(c * x));
  }
};
// x P(X <= x) of a standard normal X.
struct Gelu {
  static constexpr OpInfo info{"_gelu", "", FloatOnly, internal | saves_self | heavy};
  template <class T> FN static T f(T x) {
    if constexpr (same_type<T, float>) return float_value(x);
    else return T(0.5) * x * (T(1) + erf(x * T(1 / kSqrt2)));
  }
  template <class T> FN static T da(T g, T x, T) {
    if constexpr (same_type<T, float>) {
      return g * float_derivative(x);
    } else {
      const T cdf = T(0.5) * (T(1) + erf(x * T(1 / kSqrt2)));
      return g * (cdf + x * (T(0.5 * kTwoOverSqrtPi / kSqrt2) * exp(T(-0.5) * x * x)));
    }
  }

  // P(X <= x) - 1/2 is odd: x times a quotient of polynomials in x^2, up to where it is 1/2.
  FN static float float_value(float x) {
    float c = x < -5.6f ? -5.6f : x;
    c = c > 5.6f ? 5.6f : c;
    const float z = c * c;
    float p = 2.2297433e-8f;
    p = p * z + 6.289794e-6f;
    p = p * z + 1.6893001e-4f;
    p = p * z + 4.677355e-3f;
    p = p * z + 3.392909e-2f;
    p = p * z + 3.9894226e-1f;
    float q = 1.1796589e-6f;
    q = q * z + 7.3344505e-5f;
    q = q * z + 1.8854961e-3f;
    q = q * z + 2.8677594e-2f;
    q = q * z + 2.5171393e-1f;
    q = q * z + 1.0f;
    return x < -5.6f ? -0.0f : x * (0.5f + bounded_divide(c * p, q));
  }
  // For x < 0 the derivative is P(X <= x) + x density(x); P is the density times a polynomial in
  // t = 1 / (3.8 - x). The other half follows from d(x) + d(-x) = 1.
  FN static float float_derivative(float x) {
    float a = abs(x);
    a = a > 13.0f ? 13.0f : a;
    const float t = bounded_divide(1.0f, 3.8f + a);
    float p = 5155.503f;
    p = p * t - 6508.9194f;
    p = p * t + 2683.4824f;
    p = p * t - 402.48596f;
    p = p * t + 118.42884f;
    p = p * t + 11.600337f;
    p = p * t + 5.6598434f;
    p = p * t + 1.5072404f;
    p = p * t + 0.39905283f;
    const float left = exp_normal(-0.5f * a * a) * (p * t - a * 0.39894228f);
    return x > 0.0f ? 1.0f - left : left;
  }
};
// The same with P(X <= x) replaced by a logistic function.
struct GeluTanh {
  static constexpr OpInfo info{"_gelu_tanh", "", FloatOnly, internal | saves_self | heavy};
  static constexpr double kBeta = 2 * kTwoOverSqrtPi / kSqrt2, kCubic = 0.044715;
  template <class T> FN static T f(T x) {
    return x / one_plus_exp(T(-kBeta) * (x + T(kCubic) * x * x * x));
  }
  template <class T> FN static T da(T g, T x, T) {
    const T s = sigmoid(T(kBeta) * (x + T(kCubic) * x * x * x));
    return g * (s + x * s * (T(1) - s) * (T(kBeta) * (T(1) + T(3 * kCubic) * x * x)));
  }
};
struct Silu {
  static constexpr OpInfo info{"silu", "`x * sigmoid(x)`, also called swish (Elfwing et al. 2018).",
                               FloatComplex, saves_self | function_only | heavy, kNnFunctional};
  template <class T> FN static T f(T x) { return x / one_plus_exp_easy(-x); }
  template <class T>
    requires same_type<T, float>
  FN static T f_slow(T x) {
    return x / one_plus_exp(-x);
  }
  FN static uint32_t range_key(float x) { return magnitude(x); }
  FN static uint32_t range_limit(float) { return magnitude(86.0f); }
  template <class T> FN static T da(T g, T x, T) {
    const T s = sigmoid(x);
    return g * conj(s * (T(1) + x * (T(1) - s)));
  }
};
struct Mish {
  static constexpr OpInfo info{"mish", "`x * tanh(softplus(x))` (Misra 2019).", FloatOnly,
                               saves_self | function_only | heavy, kNnFunctional};
  template <class T> FN static T f(T x) { return x * tanh_log1p_exp(x); }
  template <class T> FN static T da(T g, T x, T) {
    const T t = tanh_log1p_exp(x);
    return g * (t + x * sigmoid(x) * (T(1) - t * t));
  }
};
struct Softplus {
  static constexpr OpInfo info{
      "softplus(self: Tensor, beta: Scalar = 1.0, threshold: Scalar = 20.0)",
      "`log(1 + exp(beta x)) / beta`, and x itself where `beta * x > threshold`.", FloatOnly,
      saves_self | saves_other | saves_third | no_method | no_inplace | heavy | float32_on_cuda |
          exact_out,
      kNnFunctional};
  template <class T> FN static T f(T x, T beta, T threshold) {
    return x * beta > threshold ? x : log1p_exp(x * beta) / beta;
  }
  template <class T> FN static T da(T g, T x, T beta, T threshold, T) {
    return select(x * beta > threshold, g, g * sigmoid(x * beta));
  }
};
struct LogSigmoid {
  static constexpr OpInfo info{"logsigmoid", "`log(sigmoid(x))` without overflow.", FloatOnly,
                               saves_self | no_method | no_inplace | heavy | exact_out,
                               kNnFunctional};
  template <class T> FN static T f(T x) { return -log1p_exp(-x); }
  template <class T> FN static T da(T g, T x, T) { return g * sigmoid(-x); }
};
struct Hardtanh {
  static constexpr OpInfo info{
      "hardtanh(self: Tensor, min_val: Scalar = -1.0, max_val: Scalar = 1.0)",
      "x held between `min_val` and `max_val`.", Real,
      saves_self | saves_other | saves_third | function_only, kNnFunctional};
  template <class T> FN static T f(T x, T lo, T hi) { return x < lo ? lo : (x > hi ? hi : x); }
  template <class T> FN static T da(T g, T x, T lo, T hi, T) {
    return select((x > lo) & (x < hi), g, T(0));
  }
};
struct Hardsigmoid {
  static constexpr OpInfo info{"hardsigmoid",
                               "`relu6(x + 3) / 6`: a sigmoid made of straight lines.", FloatOnly,
                               saves_self | function_only, kNnFunctional};
  template <class T> FN static T f(T x) { return Relu6::f(x + T(3)) / T(6); }
  template <class T> FN static T da(T g, T x, T) {
    return select((x > T(-3)) & (x < T(3)), g * T(1.0 / 6), T(0));
  }
};
struct Hardswish {
  static constexpr OpInfo info{"hardswish", "`x * relu6(x + 3) / 6` (Howard et al. 2019).",
                               FloatOnly, saves_self | function_only, kNnFunctional};
  template <class T> FN static T f(T x) { return x * Relu6::f(x + T(3)) / T(6); }
  template <class T> FN static T da(T g, T x, T) {
    return select(x <= T(-3), T(0), select(x >= T(3), g, g * (x / T(3) + T(0.5))));
  }
};
struct Hardshrink {
  static constexpr OpInfo info{"hardshrink(self: Tensor, lambd: Scalar = 0.5)",
                               "x where it is farther than `lambd` from 0, else 0.", FloatOnly,
                               saves_self | saves_other | no_inplace | exact_out};
  template <class T> FN static T f(T x, T l) { return (x >= -l && x <= l) ? T(0) : x; }
  template <class T> FN static T da(T g, T x, T l, T) {
    return select((x >= -l) & (x <= l), T(0), g);
  }
};
struct Softshrink {
  static constexpr OpInfo info{
      "softshrink(self: Tensor, lambd: Scalar = 0.5)",
      "x moved by `lambd` towards 0, and 0 where it would pass it.", FloatOnly,
      saves_self | saves_other | no_method | no_inplace | exact_out, kNnFunctional};
  template <class T> FN static T f(T x, T l) { return x > l ? x - l : (x < -l ? x + l : x * T(0)); }
  template <class T> FN static T da(T g, T x, T l, T) {
    return select((x >= -l) & (x <= l), T(0), g);
  }
};
struct Threshold {
  static constexpr OpInfo info{"threshold(self: Tensor, threshold: Scalar, value: Scalar)",
                               "x where it is greater than `threshold`, else `value`.", Real,
                               saves_self | saves_other | no_method | inplace_function};
  template <class T> FN static T f(T x, T limit, T v) { return x <= limit ? v : x; }
  template <class T> FN static T da(T g, T x, T limit, T, T) { return select(x <= limit, T(0), g); }
};

using ActivationOps =
    List<Relu, Relu6, LeakyRelu, Prelu, EluFamily, Gelu, GeluTanh, Silu, Mish, Softplus, LogSigmoid,
         Hardtanh, Hardsigmoid, Hardswish, Hardshrink, Softshrink, Threshold>;

}  // namespace taeda::TAEDA_ISA
