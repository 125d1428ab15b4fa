// Bessel and Airy functions, relatives of the error function, incomplete gamma functions: scalar
// algorithms in double, behind functors.
#pragma once

#include "kernels/functors/functors.h"
#include "kernels/functors/special.h"
#include "kernels/special_tables.h"

namespace taeda::TAEDA_ISA {

// Clenshaw's sum of a Chebyshev series at t in [-1, 1].
template <int N> SLOW_FN double chebyshev_sum(const double (&c)[N], double t) {
  double a = 0, b = 0;
  for (int k = N - 1; k > 0; --k) {
    const double next = c[k] + 2 * t * a - b;
    b = a;
    a = next;
  }
  return c[0] + t * a - b;
}

// ---- modified Bessel functions ----
SLOW_FN double i0e_double(double x) {
  const double a = __builtin_fabs(x);
  if (a <= 8) return chebyshev_sum(kI0Small, a / 4 - 1);
  return chebyshev_sum(kI0Large, 16 / a - 1) / __builtin_sqrt(a);
}
SLOW_FN double i1e_double(double x) {
  const double a = __builtin_fabs(x);
  if (a <= 8) return chebyshev_sum(kI1Small, a / 4 - 1) * x;
  return __builtin_copysign(chebyshev_sum(kI1Large, 16 / a - 1) / __builtin_sqrt(a), x);
}
// The exponential in two steps: it overflows before the function does.
SLOW_FN double i0_double(double x) {
  const double half = ::exp(__builtin_fabs(x) / 2);
  return half == kInf ? half : half * i0e_double(x) * half;
}
SLOW_FN double i1_double(double x) {
  const double half = ::exp(__builtin_fabs(x) / 2);
  return half == kInf ? __builtin_copysign(half, x) : half * i1e_double(x) * half;
}
SLOW_FN double k0e_double(double x) {
  if (!(x > 0)) return x == 0 ? kInf : kNan;
  if (x <= 2)
    return ::exp(x) * (chebyshev_sum(kK0Small, x * x / 2 - 1) - ::log(x / 2) * i0_double(x));
  return chebyshev_sum(kK0Large, 4 / x - 1) / __builtin_sqrt(x);
}
SLOW_FN double k1e_double(double x) {
  if (!(x > 0)) return x == 0 ? kInf : kNan;
  if (x <= 2)
    return ::exp(x) * (chebyshev_sum(kK1Small, x * x / 2 - 1) / x + ::log(x / 2) * i1_double(x));
  return chebyshev_sum(kK1Large, 4 / x - 1) / __builtin_sqrt(x);
}
SLOW_FN double k0_double(double x) { return k0e_double(x) * ::exp(-x); }
SLOW_FN double k1_double(double x) { return k1e_double(x) * ::exp(-x); }

// ---- Bessel functions: the C library's ----
SLOW_FN double bessel_j0_double(double x) { return ::j0(x); }
SLOW_FN double bessel_j1_double(double x) { return ::j1(x); }
SLOW_FN double bessel_y0_double(double x) { return x > 0 ? ::y0(x) : (x == 0 ? -kInf : kNan); }
SLOW_FN double bessel_y1_double(double x) { return x > 0 ? ::y1(x) : (x == 0 ? -kInf : kNan); }
SLOW_FN double spherical_bessel_j0_double(double x) {
  if (x == 0) return 1;
  return __builtin_fabs(x) == kInf ? 0.0 : ::sin(x) / x;
}

// ---- the Airy function ----
SLOW_FN double airy_ai_double(double x) {
  if (x >= -3 && x <= 1) return chebyshev_sum(kAiryMiddle, (x + 1) / 2);
  const double a = __builtin_fabs(x), root = __builtin_sqrt(a), z = 2 * a * root / 3;
  if (x > 1) {
    if (z > 800) return 0;
    return chebyshev_sum(kAiryLarge, 4 / (3 * z) - 1) * ::exp(-z) / __builtin_sqrt(root);
  }
  const double w = 24 / (z * z) - 1;
  const double angle = z - kPi / 4;
  const double even = chebyshev_sum(kAiryEven, w), odd = chebyshev_sum(kAiryOdd, w) / z;
  return (even * ::cos(angle) + odd * ::sin(angle)) / __builtin_sqrt(kPi * root);
}

// ---- relatives of the error function ----
inline constexpr double kRootHalf = 0.70710678118654752440;
inline constexpr double kRootPi = 1.77245385090551602730;
inline constexpr double kRootTwoOverPi = 0.79788456080286535588;
inline constexpr double kRootTwoPi = 2.50662827463100050242;

// exp(x^2) erfc(x). The square's rounding error would be multiplied by x^2: it is put back.
SLOW_FN double erfcx_double(double x) {
  if (x < 25) {
    if (x < -26.7) return kInf;
    const double square = x * x, rest = ::fma(x, x, -square);
    return ::exp(square) * ::erfc(x) * (1 + rest);
  }
  const double z = 1 / (x * x);
  const double series =
      1 - z * (0.5 - z * (0.75 - z * (1.875 - z * (6.5625 - z * (29.53125 - z * 162.421875)))));
  return series / (x * kRootPi);
}
// erfc(x / sqrt(2)) / 2. The argument's rounding error, which the tail would multiply by x^2, is
// put back.
SLOW_FN double normal_tail(double x) {
  constexpr double low = -4.833646656726456726e-17;  // sqrt(1/2) - kRootHalf
  const double t = x * kRootHalf, rest = ::fma(x, kRootHalf, -t) + x * low;
  if (__builtin_fabs(t) > 30) return ::erfc(t) / 2;
  return ::erfc(t) / 2 - rest * ::exp(-t * t) / kRootPi;
}
SLOW_FN double ndtr_double(double x) { return normal_tail(-x); }
SLOW_FN double log_ndtr_double(double x) {
  if (x < -1) return ::log(erfcx_double(-x * kRootHalf) / 2) - x * x / 2;
  return ::log1p(-normal_tail(x));
}
// Newton's method on log(ndtr(x)) = log(p) for small p, from the tail's leading term; elsewhere
// erfinv.
SLOW_FN double ndtri_double(double p) {
  if (!(p >= 0 && p <= 1)) return kNan;
  if (p == 0 || p == 1) return p == 0 ? -kInf : kInf;
  if (p >= 0.25 && p <= 0.75) return erfinv(2 * p - 1) / kRootHalf;
  const double low = p < 0.5 ? p : 1 - p, target = ::log(low);
  double x = -__builtin_sqrt(-2 * target);
  x += ::log(-x * kRootTwoPi) / -x;
  for (int step = 0; step < 8; ++step) {
    const double tail = erfcx_double(-x * kRootHalf);
    const double error = ::log(tail / 2) - x * x / 2 - target;
    const double change = error * tail / kRootTwoOverPi;
    x -= change;
    if (__builtin_fabs(change) < 1e-16 * __builtin_fabs(x)) break;
  }
  return p < 0.5 ? x : -x;
}

// ---- incomplete gamma functions ----
// log(gamma(1 + a)) for a in [0, 1].
SLOW_FN double lgamma_near_one(double a) {
  if (a > 0.1) return lgamma(1 + a);
  double sum = 0;
  for (int k = 15; k >= 0; --k) sum = sum * a + kGammaNearOne[k];
  return a * sum;
}
// u - log(1 + u) for u > -1, exact for small u too.
SLOW_FN double log_gap(double u) {
  if (u < -0.5 || u > 1) return u - ::log1p(u);
  const double s = u / (2 + u), z = s * s;
  double term = 2 * s * z, sum = 0;
  for (int k = 3; k < 80; k += 2) {
    const double next = sum + term / k;
    if (next == sum) break;
    sum = next;
    term *= z;
  }
  return s * u - sum;
}
// x^a exp(-x) / gamma(a + 1)
SLOW_FN double gamma_weight(double a, double x) {
  if (a < 10) {
    if (x < 100) return ::pow(x, a) * ::exp(-x) / ::tgamma(a + 1);
    return ::exp(a * ::log(x) - x - lgamma(a + 1));
  }
  const double r = 1 / (a * a);
  const double stirling =
      (1.0 / 12 -
       r * (1.0 / 360 - r * (1.0 / 1260 - r * (1.0 / 1680 - r * (1.0 / 1188 - r * (691.0 / 360360 -
                                                                                   r / 156)))))) /
      a;
  return ::exp(-a * log_gap((x - a) / a) - stirling) / (kRootTwoPi * __builtin_sqrt(a));
}
// The lower function by its power series, for x not far above a.
SLOW_FN double gamma_lower_series(double a, double x) {
  double sum = 1, term = 1;
  for (int k = 1; k < 100000; ++k) {
    term *= x / (a + k);
    sum += term;
    if (term < 1e-17 * sum) break;
  }
  return sum * gamma_weight(a, x);
}
// The upper function by its power series, for small a and x: 1 - x^a / gamma(1 + a), and the rest.
SLOW_FN double gamma_upper_series(double a, double x) {
  const double power = a * ::log(x) - lgamma_near_one(a);
  double sum = 0, term = 1;
  for (int k = 1; k < 1000; ++k) {
    term *= -x / k;
    const double next = sum + term / (a + k);
    if (next == sum) break;
    sum = next;
  }
  return -::expm1(power) - ::exp(power) * a * sum;
}
// The upper function by Legendre's continued fraction (Lentz's method), for x above a.
SLOW_FN double gamma_upper_fraction(double a, double x) {
  double b = x + 1 - a, c = 1e300, d = 1 / b, value = d;
  for (int k = 1; k < 100000; ++k) {
    const double n = -k * (k - a);
    b += 2;
    d = n * d + b;
    d = 1 / (d == 0 ? 1e-300 : d);
    c = b + n / c;
    if (c == 0) c = 1e-300;
    value *= c * d;
    if (__builtin_fabs(c * d - 1) < 1e-16) break;
  }
  return value * gamma_weight(a, x) * a;
}
// Temme's expansion, uniform in x / a, for large a and x near a.
SLOW_FN double gamma_temme(double a, double x, bool upper) {
  const double u = (x - a) / a, gap = log_gap(u);
  const double eta = __builtin_copysign(__builtin_sqrt(2 * gap), u);
  double sum = 0, scale = 1;
  const double* c = kTemme;
  for (int length : kTemmeLengths) {
    double value = 0;
    for (int k = length - 1; k >= 0; --k) value = value * eta + c[k];
    sum += value * scale;
    scale /= a;
    c += length;
  }
  const double rest = ::exp(-a * gap) / (kRootTwoPi * __builtin_sqrt(a)) * sum;
  const double tail = eta * __builtin_sqrt(a / 2);
  return upper ? ::erfc(tail) / 2 + rest : ::erfc(-tail) / 2 - rest;
}
SLOW_FN double gamma_part(double a, double x, bool upper) {
  if (!(a >= 0 && x >= 0) || (a == 0 && x == 0) || (a == kInf && x == kInf)) return kNan;
  if (a == 0 || x == kInf) return upper ? 0 : 1;
  if (x == 0 || a == kInf) return upper ? 1 : 0;
  if (a >= 100 && __builtin_fabs(x - a) < 0.4 * a) return gamma_temme(a, x, upper);
  if (x < 1.5 && a < 1) {
    const double q = gamma_upper_series(a, x);
    return upper ? q : (q < 0.9 ? 1 - q : gamma_lower_series(a, x));
  }
  if (x < a + 1) {
    const double p = gamma_lower_series(a, x);
    return upper ? 1 - p : p;
  }
  const double q = gamma_upper_fraction(a, x);
  return upper ? q : 1 - q;
}
SLOW_FN double gammainc_double(double a, double x) { return gamma_part(a, x, false); }
SLOW_FN double gammaincc_double(double a, double x) { return gamma_part(a, x, true); }

// ---- the functions for the types that kernels compute in ----
// (Those of float32 that are not here are in functors/wide.h.)
FN double i0(double x) { return i0_double(x); }
FN double i0e(double x) { return i0e_double(x); }
FN double i1(double x) { return i1_double(x); }
FN double i1e(double x) { return i1e_double(x); }
FN double ndtr(double x) { return ndtr_double(x); }
FN double log_ndtr(double x) { return log_ndtr_double(x); }
#define TAEDA_SPECIAL1(name)                            \
  FN double name(double x) { return name##_double(x); } \
  FN float name(float x) { return static_cast<float>(name##_double(static_cast<double>(x))); }
#define TAEDA_SPECIAL2(name)                                                                  \
  FN double name(double x, double y) { return name##_double(x, y); }                          \
  FN float name(float x, float y) {                                                           \
    return static_cast<float>(name##_double(static_cast<double>(x), static_cast<double>(y))); \
  }
TAEDA_SPECIAL1(k0)
TAEDA_SPECIAL1(k0e)
TAEDA_SPECIAL1(k1)
TAEDA_SPECIAL1(k1e)
TAEDA_SPECIAL1(bessel_j0)
TAEDA_SPECIAL1(bessel_j1)
TAEDA_SPECIAL1(bessel_y0)
TAEDA_SPECIAL1(bessel_y1)
TAEDA_SPECIAL1(spherical_bessel_j0)
TAEDA_SPECIAL1(airy_ai)
TAEDA_SPECIAL1(erfcx)
TAEDA_SPECIAL1(ndtri)
TAEDA_SPECIAL2(gammainc)
TAEDA_SPECIAL2(gammaincc)
TAEDA_SPECIAL2(zeta)
#undef TAEDA_SPECIAL1
#undef TAEDA_SPECIAL2

// ---- functors ----
inline constexpr uint32_t kSpecialForms = no_method | no_inplace;

// (y / x), or `at_zero` where x is 0, without a division by zero on the way.
template <class T> FN T over(T y, T x, T at_zero) {
  return select(x == T(0), at_zero, y / select(x == T(0), T(1), x));
}
template <class T> FN T sign_of(T x) {
  return select(x == T(0), T(0), select(x < T(0), T(-1), T(1)));
}

struct I0 {
  static constexpr OpInfo info{"i0", "The modified Bessel function of the first kind, order 0.",
                               Floating, saves_self | inplace_function};
  template <class T> FN static T f(T x) { return i0(x); }
  template <class T> FN static T da(T g, T x, T) { return g * i1(x); }
};
struct I0e {
  static constexpr OpInfo info{"special_i0e", "`exp(-|x|) i0(x)`.", Floating,
                               saves_self | saves_output | kSpecialForms, kSpecial};
  template <class T> FN static T f(T x) { return i0e(x); }
  template <class T> FN static T da(T g, T x, T y) { return g * (i1e(x) - sign_of(x) * y); }
};
struct I1 {
  static constexpr OpInfo info{"special_i1",
                               "The modified Bessel function of the first kind, order 1.", Floating,
                               saves_self | saves_output | kSpecialForms, kSpecial};
  template <class T> FN static T f(T x) { return i1(x); }
  template <class T> FN static T da(T g, T x, T y) { return g * (i0(x) - over(y, x, T(0.5))); }
};
struct I1e {
  static constexpr OpInfo info{"special_i1e", "`exp(-|x|) i1(x)`.", Floating,
                               saves_self | saves_output | kSpecialForms, kSpecial};
  template <class T> FN static T f(T x) { return i1e(x); }
  template <class T> FN static T da(T g, T x, T y) {
    return g * (i0e(x) - sign_of(x) * y - over(y, x, T(0.5)));
  }
};
struct ModifiedI0 {
  static constexpr OpInfo info{"special_modified_bessel_i0",
                               "The modified Bessel function of the first kind, order 0.", Floating,
                               saves_self | kSpecialForms, kSpecial};
  template <class T> FN static T f(T x) { return i0(x); }
  template <class T> FN static T da(T g, T x, T) { return g * i1(x); }
};
struct ModifiedI1 {
  static constexpr OpInfo info{"special_modified_bessel_i1",
                               "The modified Bessel function of the first kind, order 1.", Floating,
                               saves_self | saves_output | kSpecialForms, kSpecial};
  template <class T> FN static T f(T x) { return i1(x); }
  template <class T> FN static T da(T g, T x, T y) { return g * (i0(x) - over(y, x, T(0.5))); }
};
struct K0 {
  static constexpr OpInfo info{"special_modified_bessel_k0",
                               "The modified Bessel function of the second kind, order 0.",
                               Floating, saves_self | kSpecialForms, kSpecial};
  template <class T> FN static T f(T x) { return k0(x); }
  template <class T> FN static T da(T g, T x, T) { return -g * k1(x); }
};
struct K1 {
  static constexpr OpInfo info{"special_modified_bessel_k1",
                               "The modified Bessel function of the second kind, order 1.",
                               Floating, saves_self | saves_output | kSpecialForms, kSpecial};
  template <class T> FN static T f(T x) { return k1(x); }
  template <class T> FN static T da(T g, T x, T y) { return -g * (k0(x) + y / x); }
};
struct K0e {
  static constexpr OpInfo info{"special_scaled_modified_bessel_k0",
                               "`exp(x)` times the modified Bessel function of the second kind, "
                               "order 0.",
                               Floating, saves_self | saves_output | kSpecialForms, kSpecial};
  template <class T> FN static T f(T x) { return k0e(x); }
  template <class T> FN static T da(T g, T x, T y) { return g * (y - k1e(x)); }
};
struct K1e {
  static constexpr OpInfo info{"special_scaled_modified_bessel_k1",
                               "`exp(x)` times the modified Bessel function of the second kind, "
                               "order 1.",
                               Floating, saves_self | saves_output | kSpecialForms, kSpecial};
  template <class T> FN static T f(T x) { return k1e(x); }
  template <class T> FN static T da(T g, T x, T y) { return g * (y - k0e(x) - y / x); }
};
struct BesselJ0 {
  static constexpr OpInfo info{"special_bessel_j0",
                               "The Bessel function of the first kind, order 0.", Floating,
                               saves_self | kSpecialForms, kSpecial};
  template <class T> FN static T f(T x) { return bessel_j0(x); }
  template <class T> FN static T da(T g, T x, T) { return -g * bessel_j1(x); }
};
struct BesselJ1 {
  static constexpr OpInfo info{"special_bessel_j1",
                               "The Bessel function of the first kind, order 1.", Floating,
                               saves_self | saves_output | kSpecialForms, kSpecial};
  template <class T> FN static T f(T x) { return bessel_j1(x); }
  template <class T> FN static T da(T g, T x, T y) {
    return g * (bessel_j0(x) - over(y, x, T(0.5)));
  }
};
struct BesselY0 {
  static constexpr OpInfo info{"special_bessel_y0",
                               "The Bessel function of the second kind, order 0.", Floating,
                               saves_self | kSpecialForms, kSpecial};
  template <class T> FN static T f(T x) { return bessel_y0(x); }
  template <class T> FN static T da(T g, T x, T) { return -g * bessel_y1(x); }
};
struct BesselY1 {
  static constexpr OpInfo info{"special_bessel_y1",
                               "The Bessel function of the second kind, order 1.", Floating,
                               saves_self | saves_output | kSpecialForms, kSpecial};
  template <class T> FN static T f(T x) { return bessel_y1(x); }
  template <class T> FN static T da(T g, T x, T y) { return g * (bessel_y0(x) - y / x); }
};
struct SphericalJ0 {
  static constexpr OpInfo info{"special_spherical_bessel_j0", "`sin(x) / x`, and 1 at 0.", Floating,
                               saves_self | kSpecialForms, kSpecial};
  template <class T> FN static T f(T x) { return spherical_bessel_j0(x); }
  // Near 0 the two terms cancel; a short series takes over.
  template <class T> FN static T da(T g, T x, T) {
    const auto small = abs(x) < T(0.25);
    const T z = x * x;
    const T series =
        -x * (T(1.0 / 3) -
              z * (T(1.0 / 30) - z * (T(1.0 / 840) - z * (T(1.0 / 45360) - z * T(1.0 / 3991680)))));
    const T safe = select(small, T(1), x);
    return g * select(small, series, (cos_anywhere(safe) - sin_anywhere(safe) / safe) / safe);
  }
};
struct AiryAi {
  static constexpr OpInfo info{"special_airy_ai", "The Airy function Ai.", Floating, kSpecialForms,
                               kSpecial};
  template <class T> FN static T f(T x) { return airy_ai(x); }
};
struct Erfcx {
  static constexpr OpInfo info{"special_erfcx", "`exp(x^2) erfc(x)`.", Floating,
                               saves_self | saves_output | kSpecialForms, kSpecial};
  template <class T> FN static T f(T x) { return erfcx(x); }
  template <class T> FN static T da(T g, T x, T y) {
    return g * (T(2) * x * y - T(kTwoOverSqrtPi));
  }
};
struct Ndtr {
  static constexpr OpInfo info{"special_ndtr",
                               "The normal distribution function: the area below `x`.", Floating,
                               saves_self | kSpecialForms, kSpecial};
  template <class T> FN static T f(T x) { return ndtr(x); }
  template <class T> FN static T da(T g, T x, T) {
    return g * (exp(x * x * T(-0.5)) * T(1 / kRootTwoPi));
  }
};
struct LogNdtr {
  static constexpr OpInfo info{"special_log_ndtr", "The logarithm of `ndtr`, exact in the tail.",
                               Floating, saves_self | kSpecialForms, kSpecial};
  template <class T> FN static T f(T x) { return log_ndtr(x); }
  template <class T> FN static T da(T g, T x, T) {
    return g * T(kRootTwoOverPi) / erfcx(x * T(-kRootHalf));
  }
};
struct Ndtri {
  static constexpr OpInfo info{"special_ndtri", "The inverse of `ndtr`.", Floating,
                               saves_output | kSpecialForms, kSpecial};
  template <class T> FN static T f(T x) { return ndtri(x); }
  template <class T> FN static T da(T g, T, T y) {
    return g * (exp(y * y * T(0.5)) * T(kRootTwoPi));
  }
};
struct Entr {
  static constexpr OpInfo info{"special_entr", "`-x log(x)`, 0 at 0, and minus infinity below.",
                               Floating, saves_self | kSpecialForms, kSpecial};
  template <class T> FN static T f(T x) {
    return x != x ? x : (x > T(0) ? -x * log(x) : (x == T(0) ? T(0) : T(-kInf)));
  }
  template <class T> FN static T da(T g, T x, T) { return g * (-log(x) - T(1)); }
};
struct Xlog1py {
  static constexpr OpInfo info{"special_xlog1py",
                               "`self * log(1 + other)`, and 0 where `self` is 0.", Floating,
                               saves_inputs | kSpecialForms | numbers_one_tensor, kSpecial};
  template <class T> FN static T f(T a, T b) {
    return b != b ? b : (a == T(0) ? T(0) : a * log1p(b));
  }
  template <class T> FN static T da(T g, T a, T b, T) {
    return select((a == T(0)) & (b <= T(-1)), T(0), g * log1p(b));
  }
  template <class T> FN static T db(T g, T a, T b, T) { return g * (a / (b + T(1))); }
};
struct Zeta {
  static constexpr OpInfo info{"_zeta", "", Floating, internal | saves_inputs};
  template <class T> FN static T f(T s, T q) { return zeta(s, q); }
  template <class T> FN static T db(T g, T s, T q, T) { return -g * s * zeta(s + T(1), q); }
};
struct GammaLower {
  static constexpr OpInfo info{"_gammainc", "", FloatOnly, internal | saves_inputs};
  template <class T> FN static T f(T a, T x) { return gammainc(a, x); }
  template <class T> FN static T db(T g, T a, T x, T) {
    return g * exp((a - T(1)) * log(x) - x - lgamma(a));
  }
};
struct GammaUpper {
  static constexpr OpInfo info{"_gammaincc", "", FloatOnly, internal | saves_inputs};
  template <class T> FN static T f(T a, T x) { return gammaincc(a, x); }
  template <class T> FN static T db(T g, T a, T x, T) {
    return -g * exp((a - T(1)) * log(x) - x - lgamma(a));
  }
};
using BesselOps = List<I0, I0e, I1, I1e, ModifiedI0, ModifiedI1, K0, K1, K0e, K1e, BesselJ0,
                       BesselJ1, BesselY0, BesselY1, SphericalJ0, AiryAi, Erfcx, Ndtr, LogNdtr,
                       Ndtri, Entr, Xlog1py, Zeta, GammaLower, GammaUpper>;

}  // namespace taeda::TAEDA_ISA
