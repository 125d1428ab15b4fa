// Random numbers of gamma, binomial and Poisson distributions, one at a time, from an engine that
// draws uniform and normal ones.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/anywhere.h"

namespace taeda {

// Marsaglia, Tsang: A simple method for generating gamma variables, ACM TOMS 2000. The shape's own
// arithmetic is in P and everything else in double, which the random streams depend on.
template <class Engine, class P> TAEDA_ANYWHERE double gamma_deviate(Engine& engine, P alpha) {
  double scale = 1;
  if (alpha < P(1)) {
    if (alpha == P(0)) return 0;
    scale = std::pow(1 - engine.uniform(), static_cast<double>(P(1) / alpha));
    alpha += P(1);
  }
  const double d = static_cast<double>(alpha - static_cast<P>(1.0f / 3.0f));
  const double c = 1 / std::sqrt(9 * d);
  for (;;) {
    double x, y;
    do {
      x = engine.normal();
      y = 1 + c * x;
    } while (y <= 0);
    const double v = y * y * y, u = 1 - engine.uniform(), xx = x * x;
    if (u < 1 - static_cast<double>(0.0331f) * xx * xx) return scale * d * v;
    if (std::log(u) < 0.5 * xx + d * (1 - v + std::log(v))) return scale * d * v;
  }
}

// The sum of geometric gaps: for few expected successes.
template <class Engine>
TAEDA_ANYWHERE double binomial_by_gaps(Engine& engine, double count, double p) {
  const double log_miss = std::log1p(-p);
  double successes = 0, trials = 0;
  for (;;) {
    trials += std::ceil(std::log(engine.uniform()) / log_miss);
    if (!(trials <= count)) return successes;
    successes += 1;
  }
}

// What Stirling's formula lacks of log(k!).
TAEDA_ANYWHERE inline double stirling_rest(double k) {
  constexpr double small[] = {
      0.0810614667953272, 0.0413406959554092,  0.0276779256849983, 0.0207906721037650,
      0.0166446911898211, 0.0138761288230707,  0.0118967099458917, 0.0104112652619720,
      0.0092554621827127, 0.00833056343336287,
  };
  if (k <= 9) return small[static_cast<int>(k)];
  const double z = (k + 1) * (k + 1);
  return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / z) / z) / (k + 1);
}

// Hoermann: The generation of binomial random variates, 1993 (BTRS). For count * p >= 10, p <= 1/2.
template <class Engine>
TAEDA_ANYWHERE double binomial_by_rejection(Engine& engine, double count, double p) {
  const double deviation = std::sqrt(count * p * (1 - p));
  const double b = 1.15 + 2.53 * deviation, a = -0.0873 + 0.0248 * b + 0.01 * p;
  const double centre = count * p + 0.5, accept = 0.92 - 4.2 / b, odds = p / (1 - p);
  const double alpha = (2.83 + 5.1 / b) * deviation, mode = std::floor((count + 1) * p);
  for (;;) {
    const double u = engine.uniform() - 0.5;
    double v = engine.uniform();
    const double us = 0.5 - std::fabs(u), k = std::floor((2 * a / us + b) * u + centre);
    if (us >= 0.07 && v <= accept) return k;
    if (!(k >= 0 && k <= count)) continue;
    v = std::log(v * alpha / (a / (us * us) + b));
    const double bound = (mode + 0.5) * std::log((mode + 1) / (odds * (count - mode + 1))) +
                         (count + 1) * std::log((count - mode + 1) / (count - k + 1)) +
                         (k + 0.5) * std::log(odds * (count - k + 1) / (k + 1)) +
                         stirling_rest(mode) + stirling_rest(count - mode) - stirling_rest(k) -
                         stirling_rest(count - k);
    if (v <= bound) return k;
  }
}

template <class Engine>
TAEDA_ANYWHERE double binomial_deviate(Engine& engine, double count, double p) {
  if (std::isnan(count) || std::isnan(p)) return std::numeric_limits<double>::quiet_NaN();
  if (count <= 0 || p <= 0) return 0;
  if (p >= 1) return count;
  const bool swap = p > 0.5;
  const double rare = swap ? 1 - p : p;
  const double k = count * rare >= 10 ? binomial_by_rejection(engine, count, rare)
                                      : binomial_by_gaps(engine, count, rare);
  return swap ? count - k : k;
}

// Small rates: multiply uniforms until the product falls below exp(-rate) (Knuth, TAOCP vol.
// 2, 3.4.1).
template <class Engine> int64_t poisson_by_products(Engine& engine, double rate) {
  const double limit = std::exp(-rate);
  int64_t count = 0;
  for (double product = engine.uniform(); product > limit; product *= engine.uniform()) ++count;
  return count;
}

// Transformed rejection with squeeze, PTRS (Hoermann, The transformed rejection method for
// generating Poisson random variables, 1993).
template <class Engine> TAEDA_ANYWHERE int64_t poisson_by_rejection(Engine& engine, double rate) {
  const double slope = std::sqrt(rate);
  const double log_rate = std::log(rate);
  const double b = 0.931 + 2.53 * slope;
  const double a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
  const double v_r = 0.9277 - 3.6224 / (b - 2);
  for (;;) {
    const double u = engine.uniform() - 0.5;
    const double v = engine.uniform();
    const double us = 0.5 - std::fabs(u);
    const double k = std::floor((2 * a / us + b) * u + rate + 0.43);
    if (us >= 0.07 && v <= v_r) return static_cast<int64_t>(k);
    if (k < 0 || (us < 0.013 && v > us)) continue;
    const double left = std::log(v) + std::log(inverse_alpha) - std::log(a / (us * us) + b);
    if (left <= -rate + k * log_rate - std::lgamma(k + 1)) return static_cast<int64_t>(k);
  }
}

template <class Engine> int64_t poisson_deviate(Engine& engine, double rate) {
  if (rate == 0) return 0;
  return rate >= 10 ? poisson_by_rejection(engine, rate) : poisson_by_products(engine, rate);
}

}  // namespace taeda
