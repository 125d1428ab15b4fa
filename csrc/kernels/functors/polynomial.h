// Orthogonal polynomials of degree n at x: scalar algorithms in double, behind functors. The degree
// loses its fraction; a negative one gives 0.
#pragma once

#include "kernels/functors/functors.h"

namespace taeda::TAEDA_ISA {

// Degrees up to here go by the recurrence; Chebyshev's polynomials have closed forms beyond.
inline constexpr double kLowDegree = 24;
// The other recurrences take as many steps as the degree says: there must be an end to it.
inline constexpr double kHighestDegree = 1e8;

// p and q are the polynomials of degrees 0 and 1; step(k, q, p) gives the one of degree k + 1.
template <class Step> SLOW_FN double recurrence(double n, double p, double q, Step step) {
  n = __builtin_trunc(n);
  if (!(n >= 0)) return n != n ? n : 0.0;
  if (n == 0) return p;
  if (n > kHighestDegree) return kNan;
  const auto last = static_cast<int64_t>(n);
  for (int64_t k = 1; k < last && q == q; ++k) {
    const double next = step(static_cast<double>(k), q, p);
    p = q;
    q = next;
  }
  return q;
}

enum class Chebyshev { T, U, V, W };

// With x = cos(t): cos(n t), sin((n + 1) t) / sin(t), and cos or sin of (n + 1/2) t over that of t
// / 2. Hyperbolic functions where |x| > 1.
template <Chebyshev K> SLOW_FN double chebyshev_double(double x, double n) {
  if (x != x || n != n) return x + n;
  n = __builtin_trunc(n);
  if (n <= kLowDegree) {
    const double first = K == Chebyshev::T   ? x
                         : K == Chebyshev::U ? 2 * x
                         : K == Chebyshev::V ? 2 * x - 1
                                             : 2 * x + 1;
    return recurrence(n, 1, first, [x](double, double q, double p) { return 2 * x * q - p; });
  }
  const double sign = x < 0 && ::fmod(n, 2) != 0 ? -1 : 1, a = __builtin_fabs(x);
  // V at -x is W at x, but for the sign.
  const bool even_half = (K == Chebyshev::V) == (x >= 0);
  if (a == 1) {
    if (K == Chebyshev::T) return sign;
    if (K == Chebyshev::U) return sign * (n + 1);
    return sign * (even_half ? 1 : 2 * n + 1);
  }
  if (a < 1) {
    const double t = ::acos(a);
    if (K == Chebyshev::T) return sign * ::cos(n * t);
    if (K == Chebyshev::U) return sign * ::sin((n + 1) * t) / ::sin(t);
    return sign *
           (even_half ? ::cos((n + 0.5) * t) / ::cos(t / 2) : ::sin((n + 0.5) * t) / ::sin(t / 2));
  }
  const double t = ::acosh(a);
  if (K == Chebyshev::T) return sign * ::cosh(n * t);
  if (K == Chebyshev::U) return sign * ::sinh((n + 1) * t) / ::sinh(t);
  return sign * (even_half ? ::cosh((n + 0.5) * t) / ::cosh(t / 2)
                           : ::sinh((n + 0.5) * t) / ::sinh(t / 2));
}

// The physicists' polynomials, 2x at degree 1.
SLOW_FN double hermite_h_double(double x, double n) {
  return recurrence(n, 1, 2 * x, [x](double k, double q, double p) { return 2 * (x * q - k * p); });
}
// The probabilists', x at degree 1.
SLOW_FN double hermite_he_double(double x, double n) {
  return recurrence(n, 1, x, [x](double k, double q, double p) { return x * q - k * p; });
}
SLOW_FN double laguerre_double(double x, double n) {
  return recurrence(n, 1, 1 - x, [x](double k, double q, double p) {
    return ((2 * k + 1 - x) * q - k * p) / (k + 1);
  });
}
SLOW_FN double legendre_double(double x, double n) {
  return recurrence(n, 1, x, [x](double k, double q, double p) {
    return ((2 * k + 1) * x * q - k * p) / (k + 1);
  });
}

// What derivatives are made of, for the types that kernels compute in (ops/pointwise/tensor.h has
// Tensor).
template <class T>
  requires is_float<T>
FN T chebyshev_t(T x, T n) {
  return static_cast<T>(
      chebyshev_double<Chebyshev::T>(static_cast<double>(x), static_cast<double>(n)));
}
template <class T>
  requires is_float<T>
FN T chebyshev_u(T x, T n) {
  return static_cast<T>(
      chebyshev_double<Chebyshev::U>(static_cast<double>(x), static_cast<double>(n)));
}
template <class T>
  requires is_float<T>
FN T hermite_h(T x, T n) {
  return static_cast<T>(hermite_h_double(static_cast<double>(x), static_cast<double>(n)));
}
template <class T>
  requires is_float<T>
FN T hermite_he(T x, T n) {
  return static_cast<T>(hermite_he_double(static_cast<double>(x), static_cast<double>(n)));
}

template <Chebyshev K, bool Shifted> struct ChebyshevPolynomial {
  static constexpr OpInfo info{"_chebyshev", "", Floating, internal | saves_inputs};
  template <class T> FN static T f(T x, T n) {
    const auto at = static_cast<double>(x);
    return static_cast<T>(chebyshev_double<K>(Shifted ? 2 * at - 1 : at, static_cast<double>(n)));
  }
};
// T' = n U of degree n - 1, and U' is made of T and U. At x = 1 and -1, where that divides by zero,
// U' has its limit.
template <class T> FN T chebyshev_u_derivative(T x, T n) {
  const auto end = (x == T(1)) | (x == T(-1));
  const T safe = select(end, T(0), x), next = n + T(1);
  const T inside =
      (safe * chebyshev_u(safe, n) - next * chebyshev_t(safe, next)) / (T(1) - safe * safe);
  return select(end, chebyshev_u(x, n - T(1)) * next * (n + T(2)) / T(3), inside);
}
struct ChebyshevT : ChebyshevPolynomial<Chebyshev::T, false> {
  template <class T> FN static T da(T g, T x, T n, T) {
    return g * trunc(n) * chebyshev_u(x, n - T(1));
  }
};
struct ShiftedChebyshevT : ChebyshevPolynomial<Chebyshev::T, true> {
  template <class T> FN static T da(T g, T x, T n, T) {
    return g * T(2) * trunc(n) * chebyshev_u(T(2) * x - T(1), n - T(1));
  }
};
struct ChebyshevU : ChebyshevPolynomial<Chebyshev::U, false> {
  template <class T> FN static T da(T g, T x, T n, T) {
    return g * chebyshev_u_derivative(x, trunc(n));
  }
};
struct ShiftedChebyshevU : ChebyshevPolynomial<Chebyshev::U, true> {
  template <class T> FN static T da(T g, T x, T n, T) {
    return g * T(2) * chebyshev_u_derivative(T(2) * x - T(1), trunc(n));
  }
};
struct HermiteH {
  static constexpr OpInfo info{"_hermite_h", "", Floating, internal | saves_inputs};
  template <class T> FN static T f(T x, T n) { return hermite_h(x, n); }
  template <class T> FN static T da(T g, T x, T n, T) {
    return g * T(2) * trunc(n) * hermite_h(x, n - T(1));
  }
};
struct HermiteHe {
  static constexpr OpInfo info{"_hermite_he", "", Floating, internal | saves_inputs};
  template <class T> FN static T f(T x, T n) { return hermite_he(x, n); }
  template <class T> FN static T da(T g, T x, T n, T) {
    return g * trunc(n) * hermite_he(x, n - T(1));
  }
};
struct LaguerreL {
  static constexpr OpInfo info{"_laguerre", "", Floating, internal};
  template <class T> FN static T f(T x, T n) {
    return static_cast<T>(laguerre_double(static_cast<double>(x), static_cast<double>(n)));
  }
};
struct LegendreP {
  static constexpr OpInfo info{"_legendre", "", Floating, internal};
  template <class T> FN static T f(T x, T n) {
    return static_cast<T>(legendre_double(static_cast<double>(x), static_cast<double>(n)));
  }
};
using ChebyshevV = ChebyshevPolynomial<Chebyshev::V, false>;
using ChebyshevW = ChebyshevPolynomial<Chebyshev::W, false>;
using ShiftedChebyshevV = ChebyshevPolynomial<Chebyshev::V, true>;
using ShiftedChebyshevW = ChebyshevPolynomial<Chebyshev::W, true>;

using PolynomialOps =
    List<ChebyshevT, ChebyshevU, ChebyshevV, ChebyshevW, ShiftedChebyshevT, ShiftedChebyshevU,
         ShiftedChebyshevV, ShiftedChebyshevW, HermiteH, HermiteHe, LaguerreL, LegendreP>;

}  // namespace taeda::TAEDA_ISA
