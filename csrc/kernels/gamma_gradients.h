// The derivatives of gamma and beta deviates by their parameters.
#pragma once

#include <cmath>
#include <limits>
#include <utility>

#include "kernels/anywhere.h"
#include "kernels/functors/special.h"

namespace taeda::gamma {

// A number and its derivative.
struct Dual {
  double v, d = 0;
};
TAEDA_ANYWHERE inline Dual operator+(Dual a, Dual b) { return {a.v + b.v, a.d + b.d}; }
TAEDA_ANYWHERE inline Dual operator*(Dual a, Dual b) { return {a.v * b.v, a.d * b.v + a.v * b.d}; }
TAEDA_ANYWHERE inline Dual operator/(Dual a, Dual b) {
  const double q = a.v / b.v;
  return {q, (a.d - q * b.d) / b.v};
}

inline constexpr int kMostTerms = 100000;
inline constexpr double kPrecision = 1e-15;

// b0 + a1 / (b1 + a2 / (b2 + ...)) by the modified method of Lentz; term(n) gives {a_n, b_n}.
template <class F> TAEDA_ANYWHERE Dual continued_fraction(Dual b0, F&& term) {
  constexpr double tiny = 1e-300;
  Dual f = b0.v == 0 ? Dual{tiny} : b0, c = f, d{0};
  for (int n = 1; n < kMostTerms; ++n) {
    auto [a, b] = term(n);
    d = b + a * d;
    c = b + a / c;
    if (d.v == 0) d = {tiny};
    if (c.v == 0) c = {tiny};
    d = Dual{1} / d;
    const Dual step = c * d;
    f = f * step;
    if (std::fabs(step.v - 1) < kPrecision && std::fabs(step.d) < kPrecision * std::fabs(f.d))
      break;
  }
  return f;
}

// The expansion of Cornish and Fisher of the quantile that a normal deviate z has, for large
// shapes: its derivative by alpha, at the z that x has.
TAEDA_ANYWHERE inline double gamma_gradient_of_large(double alpha, double x) {
  const double s = std::sqrt(alpha);
  double z = (x - alpha) / s;
  for (int i = 0; i < 8; ++i) {
    const double z2 = z * z;
    const double value = alpha + s * z + (z2 - 1) / 3 + z * (z2 - 7) / (36 * s) -
                         ((3 * z2 + 7) * z2 - 16) / (810 * alpha) +
                         z * ((9 * z2 + 256) * z2 - 433) / (38880 * alpha * s);
    const double derivative = s + 2 * z / 3 + (3 * z2 - 7) / (36 * s) -
                              z * (12 * z2 + 14) / (810 * alpha) +
                              ((45 * z2 + 768) * z2 - 433) / (38880 * alpha * s);
    const double step = (value - x) / derivative;
    z -= step;
    if (std::fabs(step) < 1e-14 * (1 + std::fabs(z))) break;
  }
  const double z2 = z * z;
  return 1 + z / (2 * s) - z * (z2 - 7) / (72 * alpha * s) +
         ((3 * z2 + 7) * z2 - 16) / (810 * alpha * alpha) -
         z * ((9 * z2 + 256) * z2 - 433) / (25920 * alpha * alpha * s);
}

// The continued fraction of the incomplete beta function, I = x^a (1-x)^b / (a B(a, b)) / fraction.
TAEDA_ANYWHERE inline Dual beta_fraction(Dual a, Dual b, double x) {
  return continued_fraction({1}, [&](int n) {
    const Dual m{static_cast<double>(n / 2)}, am = a + m;
    if (n == 1) return std::pair<Dual, Dual>{(a + b) * Dual{-x} / (a + Dual{1}), {1}};
    const Dual a2m = am + m;
    const Dual t = n % 2 ? am * (am + b) * Dual{-x} / (a2m * (a2m + Dual{1}))
                         : m * (b + Dual{-m.v}) * Dual{x} / ((a2m + Dual{-1}) * a2m);
    return std::pair<Dual, Dual>{t, {1}};
  });
}

// How a gamma deviate x moves with its shape, at a fixed value of the distribution function:
// -(dF/dalpha) / f at x.
TAEDA_ANYWHERE inline double gamma_gradient(double alpha, double x) {
  if (!(alpha > 0) || !(x >= 0)) return std::numeric_limits<double>::quiet_NaN();
  if (x == 0) return 0;
  if (alpha > 500) return gamma_gradient_of_large(alpha, x);
  const double log_x = std::log(x);
  if (x > alpha + 1) {
    // Q / f = x / (x + 1 - alpha + ...), the upper function's continued fraction.
    const Dual a{alpha, 1};
    const Dual g = continued_fraction(Dual{x + 1} + Dual{-1} * a, [&](int n) {
      const double k = n;
      return std::pair<Dual, Dual>{Dual{k} * (a + Dual{-k}), Dual{x + 2 * k + 1} + Dual{-1} * a};
    });
    const Dual h = Dual{x} / g;
    return h.v * (log_x - TAEDA_ISA::digamma(alpha)) + h.d;
  }
  // P = x^alpha exp(-x) times the sum of x^n / Gamma(alpha + n + 1), differentiated term by term.
  double term = x / alpha, psi = TAEDA_ISA::digamma(alpha + 1), sum = 0;
  for (int n = 1; n < kMostTerms; ++n) {
    const double part = term * (log_x - psi);
    sum += part;
    if (std::fabs(part) < kPrecision * std::fabs(sum) && x < alpha + n) break;
    term *= x / (alpha + n);
    psi += 1 / (alpha + n);
  }
  return -sum;
}

// The same for a beta deviate x by alpha.
TAEDA_ANYWHERE inline double beta_gradient(double x, double alpha, double beta) {
  if (!(alpha > 0) || !(beta > 0) || !(x >= 0 && x <= 1)) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  if (x == 0 || x == 1) return 0;
  const double y = 1 - x, derivative = std::log(x) + TAEDA_ISA::digamma(alpha + beta) -
                                       TAEDA_ISA::digamma(alpha);
  if (x * (alpha + beta + 2) < alpha + 1) {
    const Dual h = Dual{x * y} / (Dual{alpha, 1} * beta_fraction({alpha, 1}, {beta}, x));
    return -(h.v * derivative + h.d);
  }
  // The other tail: 1 - I with the parameters exchanged.
  const Dual h = Dual{x * y / beta} / beta_fraction({beta}, {alpha, 1}, y);
  return h.v * derivative + h.d;
}

// Of a component x of a Dirichlet deviate by its concentration alpha, over 1 - x.
TAEDA_ANYWHERE inline double dirichlet_gradient(double x, double alpha, double total) {
  const double rest = 1 - x;
  return rest > 0 ? beta_gradient(x, alpha, total - alpha) / rest : 0;
}

}  // namespace taeda::gamma
