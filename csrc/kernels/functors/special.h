// Gamma functions: scalar algorithms behind functors.
#pragma once

#include "kernels/functors/elementary.h"

namespace taeda::TAEDA_ISA {

// In a derivative kernel there is no second pass for large angles: the library's functions are
// right everywhere.
FN float sin_anywhere(float x) { return library_sin(x); }
FN double sin_anywhere(double x) { return library_sin(x); }
FN float cos_anywhere(float x) { return library_cos(x); }
FN double cos_anywhere(double x) { return library_cos(x); }

// The reentrant form: plain lgamma writes the sign to a global variable.
FN double lgamma(double x) {
#ifdef __CUDA_ARCH__
  return ::lgamma(x);
#else
  int sign;
  return ::lgamma_r(x, &sign);
#endif
}

// Upwards by the recurrence psi(x) = psi(x + 1) - 1/x to where the asymptotic series holds,
// downwards by reflection.
SLOW_FN double digamma_double(double x) {
  if (x == 0) return __builtin_copysign(kInf, -x);
  if (x != x || x == kInf) return x;
  double result = 0;
  if (x < 0) {
    if (x == __builtin_floor(x)) return kNan;
    const double fraction =
        x - __builtin_trunc(x);  // tan has the period 1 in x, and is exact for small angles
    result = -kPi / ::tan(kPi * fraction);
    x = 1 - x;
  }
  while (x < 10) {
    result -= 1 / x;
    x += 1;
  }
  const double z = 1 / (x * x);
  const double series =
      z * (1.0 / 12 - z * (1.0 / 120 -
                           z * (1.0 / 252 -
                                z * (1.0 / 240 - z * (1.0 / 132 - z * (691.0 / 32760 - z / 12))))));
  return result + ::log(x) - 0.5 / x - series;
}
FN double digamma(double x) { return digamma_double(x); }

// The Hurwitz zeta function, sum over k of (k + q)^-s for s > 1, by Euler and Maclaurin.
SLOW_FN double zeta_double(double s, double q) {
  if (s == 1) return kInf;
  if (s < 1) return kNan;
  if (q <= 0) {
    if (q == __builtin_floor(q)) return kInf;
    if (s != __builtin_floor(s)) return kNan;
  }
  double sum = 0, a = q;
  for (int k = 0; k < 12 || a <= 10; ++k, a += 1) {
    const double term = ::pow(a, -s);
    sum += term;
    if (a > 10 && __builtin_fabs(term) < 1e-17 * __builtin_fabs(sum)) return sum;
  }
  const double first = ::pow(a, -s);
  sum += a * first / (s - 1) + 0.5 * first;
  // B_2k / (2k)!
  static constexpr double bernoulli[] = {1.0 / 12,
                                         -1.0 / 720,
                                         1.0 / 30240,
                                         -1.0 / 1209600,
                                         1.0 / 47900160,
                                         -691.0 / 1307674368000.0,
                                         1.0 / 74724249600.0,
                                         -3617.0 / 10670622842880000.0};
  double factor = s, power = first / a;
  for (int k = 0; k < 8; ++k) {
    const double term = bernoulli[k] * factor * power;
    sum += term;
    if (__builtin_fabs(term) < 1e-17 * __builtin_fabs(sum)) break;
    factor *= (s + 2 * k + 1) * (s + 2 * k + 2);
    power /= a * a;
  }
  return sum;
}
// polygamma(n, x) = (-1)^(n+1) n! zeta(n + 1, x)
SLOW_FN double polygamma_double(double n, double x) {
  if (n == 0) return digamma_double(x);
  if (x == -kInf) return kNan;
  const double size = ::tgamma(n + 1) * zeta_double(n + 1, x);
  return ::fmod(n, 2) == 0 ? -size : size;
}
FN double polygamma(double n, double x) { return polygamma_double(n, x); }
FN float polygamma(float n, float x) {
  if (n == 1.0f) return trigamma(x);
  return static_cast<float>(polygamma_double(static_cast<double>(n), static_cast<double>(x)));
}

}  // namespace taeda::TAEDA_ISA
