// Elementary and special functions.
#pragma once

#include "kernels/functors/arithmetic.h"
#include "kernels/functors/special.h"

namespace taeda::TAEDA_ISA {

// ---- exponentials and logarithms ----
struct Exp {
  static constexpr OpInfo info{"exp", "e to the power of each element.", Analytic,
                               saves_output | inplace_function | foreach | float32_on_cuda};
  template <class T> FN static T f(T x) { return exp_easy(x); }
  template <class T>
    requires same_type<T, float>
  FN static T f_slow(T x) {
    return exp(x);
  }
  FN static uint32_t range_key(float x) { return magnitude(x); }
  FN static uint32_t range_limit(float) { return magnitude(86.0f); }
  template <class T> FN static T da(T g, T, T y) { return g * conj(y); }
};
struct Exp2 {
  static constexpr OpInfo info{"exp2", "2 to the power of each element.", Analytic,
                               saves_output | inplace_function};
  template <class T> FN static T f(T x) { return exp2(x); }
  template <class T> FN static T da(T g, T, T y) { return g * conj(y) * T(kLn2); }
};
struct Expm1 {
  static constexpr OpInfo info{
      "expm1", "`exp(x) - 1`, exact for small x too.", Analytic,
      saves_output | inplace_function | foreach | keeps_zero | float32_on_cuda};
  template <class T> FN static T f(T x) { return expm1(x); }
  template <class T> FN static T da(T g, T, T y) { return g * (conj(y) + T(1)); }
};
struct Log {
  static constexpr OpInfo info{"log", "The natural logarithm of each element.", Analytic,
                               saves_self | inplace_function | foreach | float32_on_cuda};
  template <class T> FN static T f(T x) { return log_easy(x); }
  template <class T>
    requires same_type<T, float>
  FN static T f_slow(T x) {
    return log(x);
  }
  // positive, normal and finite
  FN static uint32_t range_key(float x) { return bits_as<uint32_t>(x) - 0x00800000u; }
  FN static uint32_t range_limit(float) { return 0x7effffffu; }
  template <class T> FN static T da(T g, T x, T) { return g / conj(x); }
};
struct Log2 {
  static constexpr OpInfo info{"log2", "The logarithm to base 2 of each element.", Analytic,
                               saves_self | inplace_function | foreach | float32_on_cuda};
  template <class T> FN static T f(T x) { return log2(x); }
  template <class T> FN static T da(T g, T x, T) { return g / (conj(x) * T(kLn2)); }
};
struct Log10 {
  static constexpr OpInfo info{"log10", "The logarithm to base 10 of each element.", Analytic,
                               saves_self | inplace_function | foreach | float32_on_cuda};
  template <class T> FN static T f(T x) { return log10(x); }
  template <class T> FN static T da(T g, T x, T) { return g / (conj(x) * T(kLn10)); }
};
struct Log1p {
  static constexpr OpInfo info{
      "log1p", "`log(1 + x)`, exact for small x too.", Analytic,
      saves_self | inplace_function | foreach | keeps_zero | float32_on_cuda};
  template <class T> FN static T f(T x) { return log1p(x); }
  template <class T> FN static T da(T g, T x, T) { return g / conj(x + T(1)); }
};
struct Logaddexp {
  static constexpr OpInfo info{"logaddexp", "`log(exp(self) + exp(other))` without overflow.",
                               Analytic, saves_inputs | no_inplace | heavy_derivatives};
  template <class T> FN static T f(T a, T b) {
    if constexpr (is_complex<T>)
      return a.re >= b.re ? a + log1p(exp(b - a)) : b + log1p(exp(a - b));
    else return (isinf(a) && a == b) ? a : (a > b ? a : b) + log1p_unit(exp(-abs(a - b)));
  }
  template <class T> FN static T da(T g, T a, T b, T) { return g * conj(sigmoid(a - b)); }
  template <class T> FN static T db(T g, T a, T b, T) { return g * conj(sigmoid(b - a)); }
};
struct Logaddexp2 {
  static constexpr OpInfo info{"logaddexp2", "`log2(2**self + 2**other)` without overflow.",
                               Floating, saves_inputs | no_inplace | heavy_derivatives};
  template <class T> FN static T f(T a, T b) {
    const T m = a > b ? a : b;
    return (isinf(a) && a == b) ? a : m + log1p_unit(exp2(-abs(a - b))) * T(1 / kLn2);
  }
  template <class T> FN static T da(T g, T a, T b, T) { return g * sigmoid((a - b) * T(kLn2)); }
  template <class T> FN static T db(T g, T a, T b, T) { return g * sigmoid((b - a) * T(kLn2)); }
};
struct Xlogy {
  static constexpr OpInfo info{"xlogy", "`self * log(other)`, and 0 where `self` is 0.", Floating,
                               saves_inputs | inplace_function | numbers_one_tensor};
  template <class T> FN static T f(T a, T b) {
    return b != b ? b : (a == T(0) ? T(0) : a * log(b));
  }
  template <class T> FN static T da(T g, T a, T b, T) {
    return select((a == T(0)) & (b <= T(0)), T(0), g * log(b));
  }
  template <class T> FN static T db(T g, T a, T b, T) { return g * (a / b); }
};

// ---- trigonometry ----
struct Sin {
  static constexpr OpInfo info{
      "sin", "The sine of each element.", Analytic,
      saves_self | heavy_derivatives | inplace_function | foreach | keeps_zero};
  template <class T> FN static auto range_key(T x) { return magnitude(x); }
  template <class T> FN static auto range_limit(T) { return magnitude(easy_angle<T>); }
  template <class T> FN static T f(T x) { return sin(x); }
  template <class T> FN static T f_slow(T x) { return library_sin(x); }
  template <class T> FN static T da(T g, T x, T) { return g * conj(cos_anywhere(x)); }
  template <class T> FN static T easy_da(T g, T x, T) { return g * cos(x); }
};
struct Cos {
  static constexpr OpInfo info{"cos", "The cosine of each element.", Analytic,
                               saves_self | heavy_derivatives | inplace_function | foreach};
  template <class T> FN static auto range_key(T x) { return magnitude(x); }
  template <class T> FN static auto range_limit(T) { return magnitude(easy_angle<T>); }
  template <class T> FN static T f(T x) { return cos(x); }
  template <class T> FN static T f_slow(T x) { return library_cos(x); }
  template <class T> FN static T da(T g, T x, T) { return -g * conj(sin_anywhere(x)); }
  template <class T> FN static T easy_da(T g, T x, T) { return -g * sin(x); }
};
struct Tan {
  static constexpr OpInfo info{
      "tan", "The tangent of each element.", Analytic,
      saves_output | inplace_function | foreach | keeps_zero | float32_on_cuda};
  template <class T> FN static T f(T x) { return tan(x); }
  template <class T>
    requires is_float<T>
  FN static T f_slow(T x) {
    return library_tan(x);
  }
  template <class T> FN static auto range_key(T x) { return magnitude(x); }
  template <class T> FN static auto range_limit(T) { return magnitude(easy_angle<T>); }
  template <class T> FN static T da(T g, T, T y) { return g * conj(T(1) + y * y); }
};
struct Asin {
  static constexpr OpInfo info{
      "asin", "The arc sine of each element.", Analytic,
      saves_self | inplace_function | foreach | keeps_zero | float32_on_cuda};
  template <class T> FN static T f(T x) { return asin(x); }
  template <class T> FN static T da(T g, T x, T) { return g * conj(T(1) / sqrt(T(1) - x * x)); }
};
struct Acos {
  static constexpr OpInfo info{"acos", "The arc cosine of each element.", Analytic,
                               saves_self | inplace_function | foreach | float32_on_cuda};
  template <class T> FN static T f(T x) { return acos(x); }
  template <class T> FN static T da(T g, T x, T) { return -g * conj(T(1) / sqrt(T(1) - x * x)); }
};
struct Atan {
  static constexpr OpInfo info{"atan", "The arc tangent of each element.", Analytic,
                               saves_self | inplace_function | foreach | keeps_zero};
  template <class T> FN static T f(T x) { return atan(x); }
  template <class T> FN static T da(T g, T x, T) { return g / conj(x * x + T(1)); }
};
struct Atan2 {
  static constexpr OpInfo info{"atan2", "The angle of the point (`other`, `self`), from -pi to pi.",
                               Floating, saves_inputs | widest_on_cuda};
  template <class T> FN static T f(T a, T b) { return atan2(a, b); }
  template <class T> FN static T da(T g, T a, T b, T) { return g * (b / (a * a + b * b)); }
  template <class T> FN static T db(T g, T a, T b, T) { return g * (-a / (a * a + b * b)); }
};
struct Hypot {
  static constexpr OpInfo info{"hypot", "`sqrt(self**2 + other**2)` without overflow.", FloatOnly,
                               saves_inputs | saves_output};
  template <class T> FN static T f(T a, T b) { return hypot(a, b); }
  template <class T> FN static T da(T g, T a, T, T y) { return g * (a / y); }
  template <class T> FN static T db(T g, T, T b, T y) { return g * (b / y); }
};
struct Deg2rad {
  static constexpr OpInfo info{"deg2rad", "Degrees to radians.", Floating,
                               inplace_function | keeps_zero};
  template <class T> FN static T f(T x) { return x * T(kPi / 180); }
  template <class T> FN static T da(T g, T, T) { return g * T(kPi / 180); }
};
struct Rad2deg {
  static constexpr OpInfo info{"rad2deg", "Radians to degrees.", Floating,
                               inplace_function | keeps_zero};
  template <class T> FN static T f(T x) { return x * T(180 / kPi); }
  template <class T> FN static T da(T g, T, T) { return g * T(180 / kPi); }
};
struct Sinc {
  static constexpr OpInfo info{"sinc", "`sin(pi x) / (pi x)`, and 1 at 0.", Analytic,
                               saves_self | heavy_derivatives | inplace_function};
  template <class T> FN static T f(T x) {
    const T p = x * T(kPi);
    return x == T(0) ? T(1) : sin_anywhere(p) / p;
  }
  template <class T> FN static T da(T g, T x, T) {
    const T p = x * T(kPi);
    return select(x == T(0), T(0), g * conj((p * cos_anywhere(p) - sin_anywhere(p)) / (p * x)));
  }
};

// ---- hyperbolic ----
struct Sinh {
  static constexpr OpInfo info{
      "sinh", "The hyperbolic sine of each element.", Analytic,
      saves_self | heavy_derivatives | inplace_function | foreach | keeps_zero | float32_on_cuda};
  template <class T> FN static T f(T x) { return sinh(x); }
  template <class T> FN static T da(T g, T x, T) { return g * conj(cosh(x)); }
};
struct Cosh {
  static constexpr OpInfo info{
      "cosh", "The hyperbolic cosine of each element.", Analytic,
      saves_self | heavy_derivatives | inplace_function | foreach | float32_on_cuda};
  template <class T> FN static T f(T x) { return cosh(x); }
  template <class T> FN static T da(T g, T x, T) { return g * conj(sinh(x)); }
};
struct Tanh {
  static constexpr OpInfo info{"tanh", "The hyperbolic tangent of each element.", Analytic,
                               saves_output | inplace_function | foreach | keeps_zero};
  template <class T> FN static T f(T x) { return tanh(x); }
  template <class T> FN static T da(T g, T, T y) { return g * conj(T(1) - y * y); }
};
struct Asinh {
  static constexpr OpInfo info{"asinh", "The inverse hyperbolic sine of each element.", Analytic,
                               saves_self | inplace_function | keeps_zero};
  template <class T> FN static T f(T x) { return asinh(x); }
  template <class T> FN static T da(T g, T x, T) { return g * conj(T(1) / sqrt(x * x + T(1))); }
};
struct Acosh {
  static constexpr OpInfo info{"acosh", "The inverse hyperbolic cosine of each element.", Analytic,
                               saves_self | inplace_function};
  template <class T> FN static T f(T x) { return acosh(x); }
  template <class T> FN static T da(T g, T x, T) {
    return g * conj(T(1) / (sqrt(x - T(1)) * sqrt(x + T(1))));
  }
};
struct Atanh {
  static constexpr OpInfo info{"atanh", "The inverse hyperbolic tangent of each element.", Analytic,
                               saves_self | inplace_function | keeps_zero};
  template <class T> FN static T f(T x) { return atanh(x); }
  template <class T> FN static T da(T g, T x, T) { return g * conj(T(1) / (T(1) - x * x)); }
};

// ---- logistic, error and gamma functions ----
struct Sigmoid {
  static constexpr OpInfo info{"sigmoid", "`1 / (1 + exp(-x))`, the logistic function.", Analytic,
                               saves_output | inplace_function | foreach};
  template <class T> FN static T f(T x) { return sigmoid_easy(x); }
  template <class T>
    requires same_type<T, float>
  FN static T f_slow(T x) {
    return sigmoid(x);
  }
  FN static uint32_t range_key(float x) { return magnitude(x); }
  FN static uint32_t range_limit(float) { return magnitude(86.0f); }
  template <class T> FN static T da(T g, T, T y) { return g * conj((T(1) - y) * y); }
};
struct Logit {
  static constexpr OpInfo info{"_logit", "", Floating, internal | saves_self};
  template <class T> FN static T f(T x) { return log(x / (T(1) - x)); }
  template <class T> FN static T da(T g, T x, T) {
    return select((x < T(0)) | (x > T(1)), T(kNan), g / (x * (T(1) - x)));
  }
};
struct LogitEps {
  static constexpr OpInfo info{"_logit_eps", "", Floating, internal | saves_self};
  template <class T> FN static T f(T x, T eps) {
    const T high = T(1) - eps, z = x < eps ? eps : (x > high ? high : x);
    return log(z / (T(1) - z));
  }
  template <class T> FN static T da(T g, T x, T eps, T) {
    return select((x < eps) | (x > T(1) - eps), T(0), g / (x * (T(1) - x)));
  }
};
struct Erf {
  static constexpr OpInfo info{
      "erf", "The error function of each element.", Floating,
      saves_self | heavy_derivatives | inplace_function | foreach | keeps_zero};
  template <class T> FN static T f(T x) { return erf(x); }
  template <class T> FN static T da(T g, T x, T) { return g * (T(kTwoOverSqrtPi) * exp(-(x * x))); }
};
struct Erfc {
  static constexpr OpInfo info{"erfc", "`1 - erf(x)`, exact where it is small.", Floating,
                               saves_self | heavy_derivatives | inplace_function | foreach};
  template <class T> FN static T f(T x) { return erfc(x); }
  template <class T> FN static T da(T g, T x, T) {
    return g * (T(-kTwoOverSqrtPi) * exp(-(x * x)));
  }
};
struct Erfinv {
  static constexpr OpInfo info{"erfinv", "The inverse of the error function.", Floating,
                               saves_output | heavy_derivatives | keeps_zero | float32_on_cuda};
  template <class T> FN static T f(T x) { return erfinv(x); }
  template <class T> FN static T da(T g, T, T y) {
    return g * (T(1 / kTwoOverSqrtPi) * exp(y * y));
  }
};
struct Lgamma {
  static constexpr OpInfo info{"lgamma",
                               "The logarithm of the absolute value of the gamma function.",
                               Floating, saves_self | heavy_derivatives | foreach};
  template <class T> FN static T f(T x) { return lgamma(x); }
  template <class T> FN static T da(T g, T x, T) { return g * digamma(x); }
};
struct Digamma {
  static constexpr OpInfo info{"digamma", "The derivative of `lgamma`.", Floating,
                               saves_self | heavy_derivatives};
  template <class T> FN static T f(T x) { return digamma(x); }
  template <class T> FN static T da(T g, T x, T) { return g * polygamma(T(1), x); }
};
struct Polygamma {
  static constexpr OpInfo info{"_polygamma", "", Floating,
                               internal | saves_inputs | heavy_derivatives};
  template <class T> FN static T f(T n, T x) { return polygamma(n, x); }
  template <class T> FN static T db(T g, T n, T x, T) { return g * polygamma(n + T(1), x); }
};
using MathOps = List<Exp, Exp2, Expm1, Log, Log2, Log10, Log1p, Logaddexp, Logaddexp2, Xlogy, Sin,
                     Cos, Tan, Asin, Acos, Atan, Atan2, Hypot, Deg2rad, Rad2deg, Sinc, Sinh, Cosh,
                     Tanh, Asinh, Acosh, Atanh>;
using SpecialOps = List<Sigmoid, Logit, LogitEps, Erf, Erfc, Erfinv, Lgamma, Digamma, Polygamma>;

}  // namespace taeda::TAEDA_ISA
