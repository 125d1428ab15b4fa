// Signs, sizes and digits of numbers, and extrema.
#pragma once

#include "kernels/functors/arithmetic.h"

namespace taeda::TAEDA_ISA {

// ---- helpers ----
template <class T>
  requires is_float<T>
FN T sgn(T x) {
  return x > T(0) ? T(1) : (x < T(0) ? T(-1) : x * T(0));
}
// The gradients of sgn and angle; a number's sign does not change with it, a complex number's
// direction does.
template <class T>
  requires is_float<T>
FN T sgn_gradient(T g, T) {
  return zero(g);
}
template <class T>
  requires is_float<T>
FN T angle_gradient(T g, T) {
  return zero(g);
}

// ---- sign and size ----
struct Neg {
  static constexpr OpInfo info{"neg",
                               "Each element with the other sign.",
                               Arithmetic,
                               inplace_function | foreach | exact_out,
                               "",
                               "Negation, the `-` operator, on a bool tensor is not supported. If "
                               "you are trying to invert a mask, use the `~` "
                               "or `logical_not()` operator instead."};
  template <class T> FN static T f(T x) { return T(-wrapping(x)); }
  FN static uint16_t half_bits(uint16_t x) { return x ^ 0x8000u; }
  template <class T> FN static T da(T g, T, T) { return -g; }
};
struct Abs {
  static constexpr OpInfo info{
      "abs", "The absolute value of each element; the modulus where it is complex.", Numeric,
      saves_self | inplace_function | foreach | keeps_zero};
  template <class T> FN static auto f(T x) {
    if constexpr (is_complex<T> || is_float<T>) return abs(x);
    else if constexpr (is_signed<T>) return x < 0 ? T(-wrapping(x)) : x;
    else return x;
  }
  FN static uint16_t half_bits(uint16_t x) { return x & 0x7fffu; }
  template <class T> FN static T da(T g, T x, T) { return g * sgn(x); }
};
struct Sign {
  static constexpr OpInfo info{"sign", "-1, 0 or 1: the sign of each element.", Ordered,
                               foreach | keeps_zero | exact_out};
  template <class T> FN static T f(T x) {
    if constexpr (is_float<T>) return x > T(0) ? T(1) : (x < T(0) ? T(-1) : T(0));
    else if constexpr (is_signed<T>) return x > 0 ? T(1) : (x < 0 ? T(-1) : T(0));
    else return x != 0 ? T(1) : T(0);
  }
  template <class T> FN static T da(T g, T, T) { return zero(g); }
};
struct Sgn {
  static constexpr OpInfo info{"sgn", "Each element over its absolute value; 0 where it is 0.",
                               Numeric, saves_self | keeps_zero | exact_out};
  template <class T> FN static T f(T x) {
    if constexpr (is_complex<T>) {
      const auto r = abs(x);
      return r == 0 ? T(0) : T(x.re / r, x.im / r);
    } else {
      return Sign::f(x);
    }
  }
  template <class T> FN static T da(T g, T x, T) { return sgn_gradient(g, x); }
};
struct ConjPhysical {
  static constexpr OpInfo info{"conj_physical",
                               "The complex conjugate of each element, as a tensor of its own.",
                               Numeric, inplace_function | exact_out};
  template <class T> FN static T f(T x) { return conj(x); }
  template <class T> FN static T da(T g, T, T) { return conj(g); }
};
struct Angle {
  static constexpr OpInfo info{
      "angle", "The argument of each complex element; pi for negative real ones, else 0.", Analytic,
      saves_self | no_inplace};
  template <class T> FN static auto f(T x) {
    if constexpr (is_complex<T>) return atan2(x.im, x.re);
    else return x < T(0) ? T(kPi) : (x == x ? T(0) : x);
  }
  template <class T> FN static T da(T g, T x, T) { return angle_gradient(g, x); }
};
struct Copysign {
  static constexpr OpInfo info{"copysign", "The size of `self` with the sign of `other`.", Floating,
                               saves_self | saves_output | numbers_after_self};
  template <class T> FN static T f(T a, T b) { return copysign(a, b); }
  FN static uint16_t half_bits(uint16_t a, uint16_t b) { return (a & 0x7fffu) | (b & 0x8000u); }
  template <class T> FN static T da(T g, T a, T, T y) {
    return select(a == T(0), T(0), g * (y / a));
  }
  template <class T> FN static T db(T g, T, T, T) { return zero(g); }
};
struct Signbit {
  static constexpr OpInfo info{"signbit", "Whether each element's sign bit is set.", Ordered,
                               no_inplace | keeps_zero | exact_out};
  template <class T> FN static bool f(T x) {
    if constexpr (is_float<T>) return signbit(x);
    else if constexpr (is_signed<T>) return x < 0;
    else return false;
  }
};
struct Nextafter {
  static constexpr OpInfo info{"nextafter",
                               "The number next to `self` in the direction of `other`.", FloatOnly,
                               saves_inputs};
  template <class T> FN static T f(T a, T b) { return nextafter(a, b); }
  template <class T> FN static T da(T g, T a, T b, T) { return select(a == b, T(0), g); }
  template <class T> FN static T db(T g, T, T, T) { return zero(g); }
};
struct Heaviside {
  static constexpr OpInfo info{
      "heaviside(self: Tensor, values: Tensor)",
      "0 where `self` is negative, 1 where it is positive, `values` where it is 0.", Ordered,
      exact_out};
  template <class T> FN static T f(T a, T b) { return a == T(0) ? b : T(a > T(0)); }
};

// ---- rounding ----
// Integers are whole already.
#define TAEDA_ROUNDING(Name, name, doc)                                                \
  struct Name {                                                                        \
    static constexpr OpInfo info{#name, doc, Real,                                     \
                                 inplace_function | foreach | keeps_zero | exact_out}; \
    template <class T> FN static T f(T x) {                                            \
      if constexpr (is_float<T>) return name(x);                                       \
      else return x;                                                                   \
    }                                                                                  \
    template <class T> FN static T da(T g, T, T) { return zero(g); }                   \
  };
TAEDA_ROUNDING(Ceil, ceil, "The smallest whole number that is not below each element.")
TAEDA_ROUNDING(Floor, floor, "The largest whole number that is not above each element.")
TAEDA_ROUNDING(Trunc, trunc, "Each element without its fraction.")
#undef TAEDA_ROUNDING
struct Round {
  static constexpr OpInfo info{"_round", "", Real, internal};
  template <class T> FN static T f(T x) {
    if constexpr (is_float<T>) return round(x);
    else return x;
  }
  template <class T> FN static T da(T g, T, T) { return zero(g); }
};
struct RoundTo {  // scale is a power of ten
  static constexpr OpInfo info{"_round_to", "", FloatOnly, internal};
  template <class T> FN static T f(T x, T scale, T down) {
    return down != T(0) ? round(x / scale) * scale : round(x * scale) / scale;
  }
  template <class T> FN static T da(T g, T, T, T, T) { return zero(g); }
};
struct Frac {
  static constexpr OpInfo info{"frac", "The fraction of each element, with its sign.", FloatOnly,
                               inplace_function | foreach | keeps_zero | exact_out};
  template <class T> FN static T f(T x) { return x - trunc(x); }
  template <class T> FN static T da(T g, T, T) { return g; }
};

// ---- extrema ----
struct Maximum {
  static constexpr OpInfo info{"maximum", "The larger of `self` and `other`; nan where one is.",
                               Ordered, saves_inputs | no_inplace | foreach};
  template <class T> FN static T f(T a, T b) {
    if constexpr (same_type<T, bool>) return (a | b) != 0;
    else return (a > b || a != a) ? a : b;
  }
  template <class T> FN static T da(T g, T a, T b, T) {
    return select(a == b, g * T(0.5), select(a > b, g, T(0)));
  }
  template <class T> FN static T db(T g, T a, T b, T) {
    return select(a == b, g * T(0.5), select(a > b, T(0), g));
  }
};
struct Minimum {
  static constexpr OpInfo info{"minimum", "The smaller of `self` and `other`; nan where one is.",
                               Ordered, saves_inputs | no_inplace | foreach};
  template <class T> FN static T f(T a, T b) {
    if constexpr (same_type<T, bool>) return (a & b) != 0;
    else return (a < b || a != a) ? a : b;
  }
  template <class T> FN static T da(T g, T a, T b, T) {
    return select(a == b, g * T(0.5), select(a < b, g, T(0)));
  }
  template <class T> FN static T db(T g, T a, T b, T) {
    return select(a == b, g * T(0.5), select(a < b, T(0), g));
  }
};
struct Fmax {
  static constexpr OpInfo info{"fmax",
                               "The larger of `self` and `other`; the other one where one is nan.",
                               Ordered, saves_inputs | no_inplace};
  template <class T> FN static T f(T a, T b) {
    if constexpr (same_type<T, bool>) return (a | b) != 0;
    else return (a > b || b != b) ? a : b;
  }
  template <class T> FN static T da(T g, T a, T b, T) {
    return select((a >= b) | (b != b), g, T(0));
  }
  template <class T> FN static T db(T g, T a, T b, T) {
    return select((a >= b) | (b != b), T(0), g);
  }
};
struct Fmin {
  static constexpr OpInfo info{"fmin",
                               "The smaller of `self` and `other`; the other one where one is nan.",
                               Ordered, saves_inputs | no_inplace};
  template <class T> FN static T f(T a, T b) {
    if constexpr (same_type<T, bool>) return (a & b) != 0;
    else return (a < b || b != b) ? a : b;
  }
  template <class T> FN static T da(T g, T a, T b, T) {
    return select((a <= b) | (b != b), g, T(0));
  }
  template <class T> FN static T db(T g, T a, T b, T) {
    return select((a <= b) | (b != b), T(0), g);
  }
};
// clamp: nan stays nan; the upper bound wins where the bounds are crossed.
struct Clamp {
  static constexpr OpInfo info{"_clamp", "", Real,
                               internal | saves_self | saves_other | saves_third};
  static constexpr bool scalar_operands = true;
  // (Minimum of Maximum, whose conditions would keep the compiler from making vectors.)
  template <class T> FN static T f(T x, T lo, T hi) {
    T y = x < lo ? lo : x;
    y = y > hi ? hi : y;
    y = lo != lo ? lo : y;
    return hi != hi ? hi : y;
  }
  template <class T> FN static T between(T x, T lo, T hi) {  // of numbers that are not NaN
    const T y = x < lo ? lo : x;
    return y > hi ? hi : y;
  }
  template <class T> FN static T da(T g, T x, T lo, T hi, T) {
    return select((x >= lo) & (x <= hi), g, T(0));
  }
  template <class T> FN static T db(T g, T x, T lo, T hi, T) {
    return select((x < lo) & (lo < hi), g, T(0));
  }
  template <class T> FN static T dc(T g, T x, T lo, T hi, T) {
    return select((x > hi) | (hi < lo), g, T(0));
  }
};
struct ClampMin {
  static constexpr OpInfo info{"clamp_min(self: Tensor, min: Tensor)",
                               "Each element, but at least `min`.", Ordered,
                               saves_inputs | inplace_function | foreach | numbers_after_self};
  static constexpr bool scalar_operands = true;
  template <class T> FN static T f(T x, T lo) { return Maximum::f(x, lo); }
  template <class T> FN static T da(T g, T x, T lo, T) { return select(x >= lo, g, T(0)); }
  template <class T> FN static T db(T g, T x, T lo, T) { return select(x < lo, g, T(0)); }
};
struct ClampMax {
  static constexpr OpInfo info{"clamp_max(self: Tensor, max: Tensor)",
                               "Each element, but at most `max`.", Ordered,
                               saves_inputs | inplace_function | foreach | numbers_after_self};
  static constexpr bool scalar_operands = true;
  template <class T> FN static T f(T x, T hi) { return Minimum::f(x, hi); }
  template <class T> FN static T da(T g, T x, T hi, T) { return select(x <= hi, g, T(0)); }
  template <class T> FN static T db(T g, T x, T hi, T) { return select(x > hi, g, T(0)); }
};
struct Lerp {
  static constexpr OpInfo info{
      "lerp(self: Tensor, end: Tensor, weight: Tensor)",
      "`self + weight * (end - self)`: between `self` (weight 0) and `end` (weight 1).",
      FloatComplex, saves_self | saves_other | saves_third | numbers_anywhere};
  template <class T> FN static T f(T a, T b, T w) {
    if constexpr (is_complex<T>) return abs(w) < 0.5 ? a + w * (b - a) : b - (b - a) * (T(1) - w);
    else return w < T(0.5) ? a + w * (b - a) : b - (b - a) * (T(1) - w);
  }
  template <class T> FN static T da(T g, T, T, T w, T) { return g * (T(1) - conj(w)); }
  template <class T> FN static T db(T g, T, T, T w, T) { return g * conj(w); }
  template <class T> FN static T dc(T g, T a, T b, T, T) { return g * conj(b - a); }
};

using RoundingOps = List<Neg, Abs, Sign, Sgn, ConjPhysical, Angle, Copysign, Signbit, Nextafter,
                         Heaviside, Ceil, Floor, Trunc, Round, RoundTo, Frac, Maximum, Minimum,
                         Fmax, Fmin, Clamp, ClampMin, ClampMax, Lerp>;

}  // namespace taeda::TAEDA_ISA
