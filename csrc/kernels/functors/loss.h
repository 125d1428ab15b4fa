// The elements of losses: what is summed or averaged afterwards.
#pragma once

#include "kernels/functors/math.h"
#include "kernels/functors/rounding.h"

namespace taeda::TAEDA_ISA {

struct SquaredError {
  static constexpr OpInfo info{"_squared_error", "", FloatComplex, internal | saves_inputs};
  template <class T> FN static T f(T x, T t) { return (x - t) * (x - t); }
  template <class T> FN static T da(T g, T x, T t, T) { return g * conj(T(2) * (x - t)); }
  template <class T> FN static T db(T g, T x, T t, T) { return g * conj(T(2) * (t - x)); }
};
struct AbsoluteError {
  static constexpr OpInfo info{"_absolute_error", "", FloatComplex, internal | saves_inputs};
  template <class T> FN static auto f(T x, T t) { return abs(x - t); }
  template <class T> FN static T da(T g, T x, T t, T) { return g * sgn(x - t); }
  template <class T> FN static T db(T g, T x, T t, T) { return g * sgn(t - x); }
};
struct SmoothL1 {  // a parabola within beta of 0, straight lines outside
  static constexpr OpInfo info{"_smooth_l1", "", FloatOnly, internal | saves_inputs};
  template <class T> FN static T f(T x, T t, T beta) {
    const T d = abs(x - t);
    return d < beta ? T(0.5) * d * d / beta : d - T(0.5) * beta;
  }
  template <class T> FN static T da(T g, T x, T t, T beta, T) {
    const T d = x - t;
    return select(abs(d) < beta, g * (d / beta), g * sgn(d));
  }
  template <class T> FN static T db(T g, T x, T t, T beta, T y) { return da(g, t, x, beta, y); }
};
struct Huber {
  static constexpr OpInfo info{"_huber", "", FloatOnly, internal | saves_inputs};
  template <class T> FN static T f(T x, T t, T delta) {
    const T d = abs(x - t);
    return d <= delta ? T(0.5) * d * d : delta * (d - T(0.5) * delta);
  }
  template <class T> FN static T da(T g, T x, T t, T delta, T) {
    const T d = x - t;
    return select(abs(d) <= delta, g * d, g * (delta * sgn(d)));
  }
  template <class T> FN static T db(T g, T x, T t, T delta, T y) { return da(g, t, x, delta, y); }
};
struct BinaryCrossEntropy {  // logarithms held above -100
  static constexpr OpInfo info{"_binary_cross_entropy", "", FloatOnly,
                               internal | saves_inputs | heavy};
  template <class T> FN static T f(T x, T t) {
    const T a = log(x), b = log1p(-x), low = T(-100);
    return (t - T(1)) * (b < low ? low : b) - t * (a < low ? low : a);
  }
  template <class T> FN static T da(T g, T x, T t, T) {
    const T v = (T(1) - x) * x;
    return g * ((x - t) / select(v < T(1e-12), T(1e-12), v));
  }
  template <class T> FN static T db(T g, T x, T, T) { return g * (log1p(-x) - log(x)); }
};
struct BceWithLogits {
  static constexpr OpInfo info{"_bce_with_logits", "", FloatOnly, internal | saves_inputs | heavy};
  template <class T> FN static T f(T x, T t) { return (T(1) - t) * x + log1p_exp(-x); }
  template <class T> FN static T da(T g, T x, T t, T) { return g * (sigmoid(x) - t); }
  template <class T> FN static T db(T g, T x, T, T) { return -g * x; }
};
struct BceWithLogitsWeighted {  // positive targets count `w` times
  static constexpr OpInfo info{"_bce_with_logits_weighted", "", FloatOnly,
                               internal | saves_inputs | saves_third | heavy};
  template <class T> FN static T f(T x, T t, T w) {
    return (T(1) - t) * x + (T(1) + (w - T(1)) * t) * log1p_exp(-x);
  }
  template <class T> FN static T da(T g, T x, T t, T w, T) {
    return g * ((T(1) - t) - (T(1) + (w - T(1)) * t) * sigmoid(-x));
  }
  template <class T> FN static T db(T g, T x, T, T w, T) {
    return g * ((w - T(1)) * log1p_exp(-x) - x);
  }
  template <class T> FN static T dc(T g, T x, T t, T, T) { return g * (t * log1p_exp(-x)); }
};
struct KlDiv {  // of log-probabilities from probabilities
  static constexpr OpInfo info{"_kl_div", "", FloatOnly, internal | saves_inputs | heavy};
  template <class T> FN static T f(T x, T t) {
    return (t != t ? t : (t == T(0) ? T(0) : t * log(t))) - t * x;
  }
  template <class T> FN static T da(T g, T, T t, T) { return -g * t; }
  template <class T> FN static T db(T g, T x, T t, T) {
    return select(t == T(0), T(0), g * (log(t) + T(1) - x));
  }
};
struct KlDivLog {  // both are log-probabilities
  static constexpr OpInfo info{"_kl_div_log", "", FloatOnly, internal | saves_inputs | heavy};
  template <class T> FN static T f(T x, T t) { return exp(t) * (t - x); }
  template <class T> FN static T da(T g, T, T t, T) { return -g * exp(t); }
  template <class T> FN static T db(T g, T x, T t, T) { return g * exp(t) * (t - x + T(1)); }
};
struct SoftMargin {
  static constexpr OpInfo info{"_soft_margin", "", FloatOnly, internal | saves_inputs | heavy};
  template <class T> FN static T f(T x, T t) { return log1p_exp(-t * x); }
  template <class T> FN static T da(T g, T x, T t, T) { return -g * t * sigmoid(-t * x); }
  template <class T> FN static T db(T g, T x, T t, T) { return -g * x * sigmoid(-t * x); }
};

using LossOps = List<SquaredError, AbsoluteError, SmoothL1, Huber, BinaryCrossEntropy,
                     BceWithLogits, BceWithLogitsWeighted, KlDiv, KlDivLog, SoftMargin>;

}  // namespace taeda::TAEDA_ISA
