// Arithmetic: sums, products, quotients, powers.
#pragma once

#include "kernels/functors/functors.h"

namespace taeda::TAEDA_ISA {

// ---- helpers ----
// A gradient that is zero wherever it goes.
template <class T>
  requires is_float<T>
FN T zero(T) {
  return T(0);
}
// Signed integers wrap: computed as unsigned ones, which have no overflow.
template <class T> FN auto wrapping(T a) {
  if constexpr (same_type<T, int64_t>) return static_cast<uint64_t>(a);
  else if constexpr (is_integer<T>) return static_cast<uint32_t>(a);
  else return a;
}
// floor(a / b) from mod = fmod(a, b)
template <class T> FN T floor_quotient(T a, T b, T mod) {
  const T whole = (a - mod) / b;
  const T q = (mod != T(0) && (b < T(0)) != (mod < T(0))) ? whole - T(1) : whole, low = floor(q);
  const T v = q - low > T(0.5) ? low + T(1) : low;
  return q == T(0) ? copysign(T(0), a / b) : v;
}
// What the processor's division does to integers, but for what it cannot do. By zero, 0 where that
// is no error.
template <class T> FN T trunc_quotient(T a, T b) {
  if (b == T(0)) return division_by_zero(), T(0);
  if constexpr (is_signed<T>) {
    if (b == T(-1)) return static_cast<T>(-wrapping(a));
  }
  return static_cast<T>(a / b);
}
template <class T> FN T whole_rest(T a, T b) {
  if (b == T(0)) return division_by_zero(), T(0);
  if constexpr (is_signed<T>) {
    if (b == T(-1)) return T(0);
  }
  return static_cast<T>(a % b);
}
template <class T> FN T floor_quotient(T a, T b) {
  if constexpr (is_integer<T>) {
    const T q = trunc_quotient(a, b);
    return (whole_rest(a, b) != 0 && (a < 0) != (b < 0)) ? static_cast<T>(q - 1) : q;
  } else {
    return b == T(0) ? a / b : floor_quotient(a, b, fmod(a, b));
  }
}
// From what division leaves to what it leaves with the sign of the divisor.
template <class T> FN T with_sign_of(T r, T b) {
  return (r != T(0) && (r < T(0)) != (b < T(0))) ? static_cast<T>(r + b) : r;
}
template <class T> FN T integer_power(T base, T exponent) {
  if (exponent < 0) {
    if (base == T(1)) return T(1);
    if constexpr (is_signed<T>) {
      if (base == T(-1)) return (exponent & 1) ? T(-1) : T(1);
    }
    return T(0);
  }
  auto result = wrapping(T(1)), square = wrapping(base);
  for (; exponent > 0; exponent = static_cast<T>(exponent >> 1)) {
    if (exponent & 1) result *= square;
    square *= square;
  }
  return static_cast<T>(result);
}

// ---- sums and products ----
struct Add {
  static constexpr OpInfo info{"_add", "", Numeric, internal | wraps};
  static constexpr bool scalar_operands = true;
  template <class T> FN static T f(T a, T b) { return T(wrapping(a) + wrapping(b)); }
  template <class T> FN static T da(T g, T, T, T) { return g; }
  template <class T> FN static T db(T g, T, T, T) { return g; }
};
struct AddScaled {
  static constexpr OpInfo info{"_add_scaled", "", Numeric, internal | saves_third | wraps};
  template <class T> FN static T f(T a, T b, T alpha) {
    return T(wrapping(a) + wrapping(alpha) * wrapping(b));
  }
  template <class T> FN static T da(T g, T, T, T, T) { return g; }
  template <class T> FN static T db(T g, T, T, T alpha, T) { return g * conj(alpha); }
};
struct Sub {
  static constexpr OpInfo info{"_sub",
                               "",
                               Arithmetic,
                               internal | wraps,
                               "",
                               "Subtraction, the `-` operator, with a bool tensor is not "
                               "supported. If you are trying to invert a mask, use the "
                               "`~` or `logical_not()` operator instead."};
  static constexpr bool scalar_operands = true;
  template <class T> FN static T f(T a, T b) { return T(wrapping(a) - wrapping(b)); }
  template <class T> FN static T da(T g, T, T, T) { return g; }
  template <class T> FN static T db(T g, T, T, T) { return -g; }
};
struct SubScaled {
  static constexpr OpInfo info{"_sub_scaled",    "", Arithmetic, internal | saves_third | wraps, "",
                               Sub::info.no_bool};
  template <class T> FN static T f(T a, T b, T alpha) {
    return T(wrapping(a) - wrapping(alpha) * wrapping(b));
  }
  template <class T> FN static T da(T g, T, T, T, T) { return g; }
  template <class T> FN static T db(T g, T, T, T alpha, T) { return -(g * conj(alpha)); }
};
struct Rsub {
  static constexpr OpInfo info{"rsub(self: Tensor, other: Tensor, *, alpha: Scalar = 1)",
                               "`other - alpha * self`, element by element.",
                               Arithmetic,
                               saves_third | no_inplace | no_out | numbers_after_self,
                               "",
                               Sub::info.no_bool,
                               "sta"};
  template <class T> FN static T f(T a, T b, T alpha) {
    return T(wrapping(b) - wrapping(alpha) * wrapping(a));
  }
  template <class T> FN static T da(T g, T, T, T alpha, T) { return -(g * conj(alpha)); }
  template <class T> FN static T db(T g, T, T, T, T) { return g; }
};
struct Mul {
  static constexpr OpInfo info{
      "mul", "The product of `self` and `other`, element by element.", Numeric,
      saves_inputs | saved_for_others | wraps | foreach | numbers_anywhere};
  static constexpr bool scalar_operands = true;
  template <class T> FN static T f(T a, T b) {
    if constexpr (same_type<T, bool>) return a && b;
    else return T(wrapping(a) * wrapping(b));
  }
  template <class T> FN static T da(T g, T, T b, T) { return g * conj(b); }
  template <class T> FN static T db(T g, T a, T, T) { return g * conj(a); }
};
struct Addcmul {
  static constexpr OpInfo info{
      "addcmul(self: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Scalar = 1)",
      "`self + value * tensor1 * tensor2`, element by element.",
      Arithmetic,
      saves_other | saves_third | saves_fourth | widest_on_cuda,
      "",
      nullptr,
      "svtt"};
  template <class T> FN static T f(T a, T b, T c, T v) {
    return T(wrapping(a) + wrapping(v) * wrapping(b) * wrapping(c));
  }
  template <class T> FN static T da(T g, T, T, T, T, T) { return g; }
  template <class T> FN static T db(T g, T, T, T c, T v, T) { return g * conj(c * v); }
  template <class T> FN static T dc(T g, T, T b, T, T v, T) { return g * conj(b * v); }
};

// ---- quotients ----
struct Div {
  static constexpr OpInfo info{"_div", "", Analytic, internal | saves_inputs};
  static constexpr bool scalar_operands = true;
  template <class T> FN static T f(T a, T b) { return a / b; }
  template <class T> FN static T da(T g, T, T b, T) { return g / conj(b); }
  template <class T> FN static T db(T g, T a, T b, T) { return -g * conj((a / b) / b); }
};
struct FloorDivide : EasyQuotient {
  static constexpr OpInfo info{"floor_divide", "The quotient rounded down to a whole number.", Real,
                               heavy | numbers_anywhere};
  template <class T> FN static T f(T a, T b) {
    if constexpr (is_float<T> && easy_quotient<T>) return floor_quotient(a, b, fmod_easy(a, b));
    else if constexpr (easy_whole<T>) return floor_whole(a, b);
    else return floor_quotient(a, b);
  }
  template <class T>
    requires easy_quotient<T>
  FN static T f_slow(T a, T b) {
    return floor_quotient(a, b);
  }
  template <class T> FN static T da(T g, T, T, T) { return zero(g); }
  template <class T> FN static T db(T g, T, T, T) { return zero(g); }
};
struct TruncDivide : EasyQuotient {
  static constexpr OpInfo info{"_trunc_divide", "", Real, internal | heavy};
  template <class T> FN static T f(T a, T b) {
    if constexpr (easy_whole<T>) return trunc_whole(a, b);
    else if constexpr (is_integer<T>) return trunc_quotient(a, b);
    else return trunc(a / b);
  }
  template <class T>
    requires easy_whole<T>
  FN static T f_slow(T a, T b) {
    return trunc_quotient(a, b);
  }
  template <class T> FN static T da(T g, T, T, T) { return zero(g); }
  template <class T> FN static T db(T g, T, T, T) { return zero(g); }
};
struct Remainder : EasyQuotient {
  static constexpr OpInfo info{
      "remainder",
      "What is left of `self` after division by `other`, with the sign of `other`, as "
      "Python's `%` has it.",
      Real, saves_inputs | heavy | numbers_one_tensor};
  template <class T> FN static T f(T a, T b) {
    if constexpr (easy_whole<T>) return T(wrapping(a) - wrapping(floor_whole(a, b)) * wrapping(b));
    else if constexpr (is_integer<T>) return with_sign_of(whole_rest(a, b), b);
    else return with_sign_of(fmod_easy(a, b), b);
  }
  template <class T>
    requires easy_quotient<T>
  FN static T f_slow(T a, T b) {
    if constexpr (is_integer<T>) return with_sign_of(whole_rest(a, b), b);
    else return with_sign_of(fmod(a, b), b);
  }
  template <class T> FN static T da(T g, T, T, T) { return g; }
  template <class T> FN static T db(T g, T a, T b, T) { return -g * floor(a / b); }
};
struct Fmod : EasyQuotient {
  static constexpr OpInfo info{
      "fmod", "What is left of `self` after division by `other`, with the sign of `self`.", Real,
      saves_inputs | heavy | numbers_after_self};
  template <class T> FN static T f(T a, T b) {
    if constexpr (easy_whole<T>) return T(wrapping(a) - wrapping(trunc_whole(a, b)) * wrapping(b));
    else if constexpr (is_integer<T>) return whole_rest(a, b);
    else return fmod_easy(a, b);
  }
  template <class T>
    requires easy_quotient<T>
  FN static T f_slow(T a, T b) {
    if constexpr (is_integer<T>) return whole_rest(a, b);
    else return fmod(a, b);
  }
  template <class T> FN static T da(T g, T, T, T) { return g; }
  template <class T> FN static T db(T g, T a, T b, T) { return -g * trunc(a / b); }
};
struct Addcdiv {
  static constexpr OpInfo info{
      "addcdiv(self: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Scalar = 1)",
      "`self + value * tensor1 / tensor2`, element by element.",
      FloatComplex,
      saves_other | saves_third | saves_fourth | widest_on_cuda,
      "",
      nullptr,
      "svtt"};
  template <class T> FN static T f(T a, T b, T c, T v) { return a + v * (b / c); }
  template <class T> FN static T da(T g, T, T, T, T, T) { return g; }
  template <class T> FN static T db(T g, T, T, T c, T v, T) { return g * conj(v / c); }
  template <class T> FN static T dc(T g, T, T b, T c, T v, T) { return -g * conj(v * b / (c * c)); }
};
struct Reciprocal {
  static constexpr OpInfo info{"reciprocal", "One over each element.", Analytic,
                               saves_output | inplace_function | foreach | float32_on_cuda};
  template <class T> FN static T f(T x) { return T(1) / x; }
  template <class T> FN static T da(T g, T, T y) { return -g * conj(y * y); }
};
struct Gcd {
  static constexpr OpInfo info{"gcd", "The greatest common divisor of `self` and `other`.",
                               Integers, heavy | inplace_function};
  template <class T> FN static T f(T a, T b) {
    while (b != 0) {
      const T r = (is_signed<T> && b == T(-1)) ? T(0) : static_cast<T>(a % b);
      a = b;
      b = r;
    }
    return is_signed<T> && a < 0 ? static_cast<T>(-wrapping(a)) : a;
  }
};
struct Lcm {
  static constexpr OpInfo info{"lcm", "The least common multiple of `self` and `other`.", Integers,
                               heavy | inplace_function};
  template <class T> FN static T f(T a, T b) {
    const T g = Gcd::f(a, b);
    if (g == 0) return T(0);
    const T v = static_cast<T>(wrapping(static_cast<T>(a / g)) * wrapping(b));
    return is_signed<T> && v < 0 ? static_cast<T>(-wrapping(v)) : v;
  }
};

// ---- powers ----
struct Pow {
  static constexpr OpInfo info{"_pow", "", Numeric, internal | saves_inputs | heavy};
  template <class T> FN static T f(T a, T b) {
    if constexpr (same_type<T, bool>) return a || !b;
    else if constexpr (is_integer<T>) return integer_power(a, b);
    else return pow(a, b);
  }
  template <class T> FN static T da(T g, T a, T b, T) {
    return select(b == T(0), T(0), g * conj(b * pow(a, b - T(1))));
  }
  template <class T> FN static T db(T g, T a, T b, T) {
    const T y = pow(a, b);
    return select((a == T(0)) & ((y == T(0)) | (b == T(0))), T(0), g * conj(y * log(a)));
  }
};
// Exponents that need no power function.
struct Cube {
  static constexpr OpInfo info{"_pow_3", "", FloatComplex, internal | saves_self};
  template <class T> FN static T f(T x) { return x * x * x; }
  template <class T> FN static T da(T g, T x, T) { return g * conj(T(3) * x * x); }
};
struct SquareRoot {
  static constexpr OpInfo info{"_pow_half", "", FloatComplex, internal | saves_self};
  template <class T> FN static T f(T x) { return sqrt(x); }
  template <class T> FN static T da(T g, T x, T) { return g * conj(T(0.5) / sqrt(x)); }
};
struct InverseRoot {
  static constexpr OpInfo info{"_pow_minus_half", "", FloatComplex, internal | saves_self};
  template <class T> FN static T f(T x) { return T(1) / sqrt(x); }
  template <class T> FN static T da(T g, T x, T) { return g * conj(T(-0.5) / (x * sqrt(x))); }
};
struct Inverse {
  static constexpr OpInfo info{"_pow_minus_1", "", FloatComplex, internal | saves_self};
  template <class T> FN static T f(T x) { return T(1) / x; }
  template <class T> FN static T da(T g, T x, T) { return g * conj(T(-1) / (x * x)); }
};
struct InverseSquare {
  static constexpr OpInfo info{"_pow_minus_2", "", FloatComplex, internal | saves_self};
  template <class T> FN static T f(T x) { return T(1) / (x * x); }
  template <class T> FN static T da(T g, T x, T) { return g * conj(T(-2) / (x * x * x)); }
};
struct Square {
  static constexpr OpInfo info{"_square", "", Arithmetic, internal | saves_self};
  template <class T> FN static T f(T x) { return T(wrapping(x) * wrapping(x)); }
  template <class T> FN static T da(T g, T x, T) { return g * conj(T(2) * x); }
};
struct Sqrt {
  static constexpr OpInfo info{
      "sqrt", "The square root of each element.", Analytic,
      saves_output | heavy_value | inplace_function | foreach | keeps_zero};
  template <class T> FN static T f(T x) { return sqrt(x); }
  template <class T> FN static T da(T g, T, T y) { return g / (T(2) * conj(y)); }
};
struct Rsqrt {
  static constexpr OpInfo info{
      "rsqrt", "One over the square root of each element.", Analytic,
      saves_output | heavy_value | inplace_function | foreach | float32_on_cuda};
  template <class T> FN static T f(T x) { return T(1) / sqrt(x); }
  template <class T> FN static T da(T g, T, T y) { return g * T(-0.5) * conj(y * y * y); }
};

using ArithmeticOps = List<Add, AddScaled, Sub, SubScaled, Rsub, Mul, Addcmul, Div, FloorDivide,
                           TruncDivide, Remainder, Fmod, Addcdiv, Reciprocal, Gcd, Lcm, Pow, Cube,
                           SquareRoot, InverseRoot, Inverse, InverseSquare, Square, Sqrt, Rsqrt>;

}  // namespace taeda::TAEDA_ISA
