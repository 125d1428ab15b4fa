// Comparisons, logic, bits, tests of floating-point numbers, choices.
#pragma once

#include "kernels/functors/functors.h"

namespace taeda::TAEDA_ISA {

// ---- comparisons: bool results ----
#define TAEDA_COMPARISON(Name, name, op, dtypes, flags, doc)                       \
  struct Name {                                                                    \
    static constexpr OpInfo info{name, doc, dtypes, (flags) | numbers_after_self}; \
    template <class T> FN static bool f(T a, T b) { return a op b; }               \
  };
TAEDA_COMPARISON(Eq, "eq", ==, Numeric, wraps, "Whether `self` equals `other`, element by element.")
TAEDA_COMPARISON(Ne, "ne", !=, Numeric, wraps,
                 "Whether `self` differs from `other`, element by element.")
TAEDA_COMPARISON(Lt, "lt", <, Ordered, 0,
                 "Whether `self` is less than `other`, element by element.")
TAEDA_COMPARISON(Le, "le", <=, Ordered, 0, "Whether `self` is at most `other`, element by element.")
TAEDA_COMPARISON(Gt, "gt", >, Ordered, 0,
                 "Whether `self` is greater than `other`, element by element.")
TAEDA_COMPARISON(Ge, "ge", >=, Ordered, 0,
                 "Whether `self` is at least `other`, element by element.")
#undef TAEDA_COMPARISON

// ---- logic: what is not zero is true ----
template <class T> FN bool truth(T x) { return x != T(0); }
struct LogicalAnd {
  static constexpr OpInfo info{"logical_and", "Whether both elements are true (not zero).", Numeric,
                               wraps};
  template <class T> FN static bool f(T a, T b) { return truth(a) & truth(b); }
};
struct LogicalOr {
  static constexpr OpInfo info{"logical_or", "Whether either element is true (not zero).", Numeric,
                               wraps};
  template <class T> FN static bool f(T a, T b) { return truth(a) | truth(b); }
};
struct LogicalXor {
  static constexpr OpInfo info{
      "logical_xor", "Whether just one of the elements is true (not zero).", Numeric, wraps};
  template <class T> FN static bool f(T a, T b) { return truth(a) != truth(b); }
};
struct LogicalNot {
  static constexpr OpInfo info{"logical_not", "Whether the element is false (zero).", Numeric,
                               wraps};
  template <class T> FN static bool f(T a) { return !truth(a); }
};

// ---- bits ----
struct BitwiseAnd {
  static constexpr OpInfo info{"bitwise_and", "The bits that are set in both elements.", Integral,
                               wraps | numbers_one_tensor};
  template <class T> FN static T f(T a, T b) { return T(a & b); }
};
struct BitwiseOr {
  static constexpr OpInfo info{"bitwise_or", "The bits that are set in either element.", Integral,
                               wraps | numbers_one_tensor};
  template <class T> FN static T f(T a, T b) { return T(a | b); }
};
struct BitwiseXor {
  static constexpr OpInfo info{"bitwise_xor", "The bits that are set in just one of the elements.",
                               Integral, wraps | numbers_one_tensor};
  template <class T> FN static T f(T a, T b) { return T(a ^ b); }
};
struct BitwiseNot {
  static constexpr OpInfo info{"bitwise_not", "Every bit turned over; `not` for bools.", Integral,
                               wraps | exact_out};
  template <class T> FN static T f(T a) {
    if constexpr (same_type<T, bool>) return !a;
    else return T(~a);
  }
};
struct LeftShift {
  static constexpr OpInfo info{"bitwise_left_shift",
                               "The bits of `self` moved up by `other` places.", Integers,
                               numbers_one_tensor};
  template <class T> FN static T f(T a, T b) {
    if constexpr (sizeof(T) == 8) return b < 0 || b >= 64 ? T(0) : T(uint64_t(a) << b);
    else return b < 0 || b >= T(sizeof(T) * 8) ? T(0) : T(uint32_t(a) << b);
  }
};
struct RightShift {
  static constexpr OpInfo info{"bitwise_right_shift",
                               "The bits of `self` moved down by `other` places.", Integers,
                               numbers_one_tensor};
  template <class T> FN static T f(T a, T b) {
    constexpr T last = T(sizeof(T) * 8 - (is_signed<T> ? 1 : 0));
    const bool all = (b < 0) | (b >= last);  // without branches, for vectors
    const T none = is_signed<T> && a < 0 ? T(-1) : T(0), by = all ? T(0) : b;
    // A product of 16 bits, as there are no shifts of bytes.
    const T moved = sizeof(T) == 1 ? T((int(a) * (256 >> by)) >> 8) : T(a >> by);
    return all ? none : moved;
  }
};

// ---- tests ----
struct IsNan {
  static constexpr OpInfo info{"isnan", "Whether the element is not a number.", Numeric,
                               no_inplace | no_out | wraps | keeps_zero};
  template <class T> FN static bool f(T x) {
    if constexpr (is_float<T> || is_complex<T>) return isnan(x);
    else return false;
  }
};
struct IsInf {
  static constexpr OpInfo info{"isinf", "Whether the element is infinite.", Numeric,
                               no_inplace | no_out | wraps | keeps_zero};
  template <class T> FN static bool f(T x) {
    if constexpr (is_float<T> || is_complex<T>) return isinf(x);
    else return false;
  }
};
struct IsFinite {
  static constexpr OpInfo info{"isfinite", "Whether the element is neither infinite nor nan.",
                               Numeric, no_inplace | no_out | wraps};
  template <class T> FN static bool f(T x) {
    if constexpr (is_complex<T>) return f(x.re) & f(x.im);
    else if constexpr (is_float<T>) return abs(x) < T(kInf);
    else return true;
  }
};
struct IsPosInf {
  static constexpr OpInfo info{"isposinf", "Whether the element is positive infinity.", Ordered,
                               no_inplace | exact_out};
  template <class T> FN static bool f(T x) {
    if constexpr (is_float<T>) return x == T(kInf);
    else return false;
  }
};
struct IsNegInf {
  static constexpr OpInfo info{"isneginf", "Whether the element is negative infinity.", Ordered,
                               no_inplace | exact_out};
  template <class T> FN static bool f(T x) {
    if constexpr (is_float<T>) return x == T(-kInf);
    else return false;
  }
};

// ---- choices ----
struct Where {
  static constexpr OpInfo info{"where(condition: Tensor, self: Tensor, other: Tensor)", "", Numeric,
                               internal | saves_self | wraps};
  template <class T, class C = bool> FN static T f(C c, T a, T b) { return c ? a : b; }
  template <class T, class C = bool> FN static T db(T g, C c, T, T, T) {
    return select(c, g, T(0));
  }
  template <class T, class C = bool> FN static T dc(T g, C c, T, T, T) {
    return select(c, T(0), g);
  }
};
struct NanToNum {
  static constexpr OpInfo info{"_nan_to_num", "", Numeric, internal | saves_self};
  template <class T> FN static T f(T x, T nan, T high, T low) {
    if constexpr (is_complex<T>)
      return T(f_slow(x.re, nan.re, high.re, low.re), f_slow(x.im, nan.re, high.re, low.re));
    else return x;  // what is finite stays
  }
  template <class T>
    requires is_float<T>
  FN static T f_slow(T x, T nan, T high, T low) {
    return x != x ? nan : (x == T(kInf) ? high : (x == T(-kInf) ? low : x));
  }
  template <class T> FN static auto range_key(T x, T, T, T) { return magnitude(x); }
  template <class T> FN static auto range_limit(T) { return magnitude(static_cast<T>(kInf)) - 1; }
  template <class T> FN static T da(T g, T x, T, T, T, T) {
    return select(abs(x) < T(kInf), g, T(0));
  }
};

using LogicOps = List<Eq, Ne, Lt, Le, Gt, Ge, LogicalAnd, LogicalOr, LogicalXor, LogicalNot,
                      BitwiseAnd, BitwiseOr, BitwiseXor, BitwiseNot, LeftShift, RightShift, IsNan,
                      IsInf, IsFinite, IsPosInf, IsNegInf, Where, NanToNum>;

}  // namespace taeda::TAEDA_ISA
