#include "kernels/gamma.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/functors_special.h"

namespace taeda::cpu {
namespace {

using taeda::TAEDA_ISA::digamma;

// Marsaglia, Tsang: A simple method for generating gamma variables, ACM TOMS 2000. The shape's own
// arithmetic is in P and everything else in double, which the random streams depend on.
template <class P> double gamma_deviate(Engine& engine, P alpha) {
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
double binomial_by_gaps(Engine& engine, double count, double p) {
  const double log_miss = std::log1p(-p);
  double successes = 0, trials = 0;
  for (;;) {
    trials += std::ceil(std::log(engine.uniform()) / log_miss);
    if (!(trials <= count)) return successes;
    successes += 1;
  }
}

// What Stirling's formula lacks of log(k!).
double stirling_rest(double k) {
  static constexpr double small[] = {
      0.0810614667953272, 0.0413406959554092,  0.0276779256849983, 0.0207906721037650,
      0.0166446911898211, 0.0138761288230707,  0.0118967099458917, 0.0104112652619720,
      0.0092554621827127, 0.00833056343336287,
  };
  if (k <= 9) return small[static_cast<int>(k)];
  const double z = (k + 1) * (k + 1);
  return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / z) / z) / (k + 1);
}

// Hoermann: The generation of binomial random variates, 1993 (BTRS). For count * p >= 10, p <= 1/2.
double binomial_by_rejection(Engine& engine, double count, double p) {
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

double binomial(Engine& engine, double count, double p) {
  if (std::isnan(count) || std::isnan(p)) return std::numeric_limits<double>::quiet_NaN();
  if (count <= 0 || p <= 0) return 0;
  if (p >= 1) return count;
  const bool swap = p > 0.5;
  const double rare = swap ? 1 - p : p;
  const double k = count * rare >= 10 ? binomial_by_rejection(engine, count, rare)
                                      : binomial_by_gaps(engine, count, rare);
  return swap ? count - k : k;
}

// A number and its derivative.
struct Dual {
  double v, d = 0;
};
Dual operator+(Dual a, Dual b) { return {a.v + b.v, a.d + b.d}; }
Dual operator*(Dual a, Dual b) { return {a.v * b.v, a.d * b.v + a.v * b.d}; }
Dual operator/(Dual a, Dual b) {
  const double q = a.v / b.v;
  return {q, (a.d - q * b.d) / b.v};
}

constexpr int kMostTerms = 100000;
constexpr double kPrecision = 1e-15;

// b0 + a1 / (b1 + a2 / (b2 + ...)) by the modified method of Lentz; term(n) gives {a_n, b_n}.
template <class F> Dual continued_fraction(Dual b0, F&& term) {
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
double gamma_gradient_of_large(double alpha, double x) {
  const double s = std::sqrt(alpha);
  double z = (x - alpha) / s;
  for (int i = 0; i < 8; ++i) {
    const double z2 = z * z;
    const double value = alpha + s * z + (z2 - 1) / 3 + z * (z2 - 7) / (36 * s) -
                         ((3 * z2 + 7) * z2 - 16) / (810 * alpha) +
                         z * ((9 * z2 + 256) * z2 - 433) / (38880 * alpha * s);
    const double slope = s + 2 * z / 3 + (3 * z2 - 7) / (36 * s) -
                         z * (12 * z2 + 14) / (810 * alpha) +
                         ((45 * z2 + 768) * z2 - 433) / (38880 * alpha * s);
    const double step = (value - x) / slope;
    z -= step;
    if (std::fabs(step) < 1e-14 * (1 + std::fabs(z))) break;
  }
  const double z2 = z * z;
  return 1 + z / (2 * s) - z * (z2 - 7) / (72 * alpha * s) +
         ((3 * z2 + 7) * z2 - 16) / (810 * alpha * alpha) -
         z * ((9 * z2 + 256) * z2 - 433) / (25920 * alpha * alpha * s);
}

// The continued fraction of the incomplete beta function, I = x^a (1-x)^b / (a B(a, b)) / fraction.
Dual beta_fraction(Dual a, Dual b, double x) {
  return continued_fraction({1}, [&](int n) {
    const Dual m{static_cast<double>(n / 2)}, am = a + m;
    if (n == 1) return std::pair<Dual, Dual>{(a + b) * Dual{-x} / (a + Dual{1}), {1}};
    const Dual a2m = am + m;
    const Dual t = n % 2 ? am * (am + b) * Dual{-x} / (a2m * (a2m + Dual{1}))
                         : m * (b + Dual{-m.v}) * Dual{x} / ((a2m + Dual{-1}) * a2m);
    return std::pair<Dual, Dual>{t, {1}};
  });
}

template <class T> void fill_gamma(Engine& engine, T* out, const T* alpha, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const T x = static_cast<T>(gamma_deviate<T>(engine, alpha[i]));
    out[i] = x < std::numeric_limits<T>::min() ? std::numeric_limits<T>::min() : x;
  }
}

template <class T>
void fill_dirichlet(Engine& engine, T* out, const T* alpha, int64_t rows, int64_t k) {
  std::vector<double> draws(static_cast<size_t>(k));
  for (int64_t r = 0; r < rows; ++r) {
    double total = 0;
    for (int64_t i = 0; i < k; ++i) {
      const double x = gamma_deviate<double>(engine, static_cast<double>(alpha[r * k + i]));
      draws[static_cast<size_t>(i)] = std::max(x, std::numeric_limits<double>::min());
      total += draws[static_cast<size_t>(i)];
    }
    for (int64_t i = 0; i < k; ++i) {
      // Strictly between 0 and 1, where the density is finite.
      constexpr T least = std::numeric_limits<T>::min();
      constexpr T most = 1 - std::numeric_limits<T>::epsilon() / 2;
      out[r * k + i] =
          std::clamp(static_cast<T>(draws[static_cast<size_t>(i)] / total), least, most);
    }
  }
}

template <class T>
void fill_binomial(Engine& engine, T* out, const T* count, const T* p, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    out[i] =
        static_cast<T>(binomial(engine, static_cast<double>(count[i]), static_cast<double>(p[i])));
  }
}

double gamma_gradient(double alpha, double x) {
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
    return h.v * (log_x - digamma(alpha)) + h.d;
  }
  // P = x^alpha exp(-x) times the sum of x^n / Gamma(alpha + n + 1), differentiated term by term.
  double term = x / alpha, psi = digamma(alpha + 1), sum = 0;
  for (int n = 1; n < kMostTerms; ++n) {
    const double part = term * (log_x - psi);
    sum += part;
    if (std::fabs(part) < kPrecision * std::fabs(sum) && x < alpha + n) break;
    term *= x / (alpha + n);
    psi += 1 / (alpha + n);
  }
  return -sum;
}

double beta_gradient(double x, double alpha, double beta) {
  if (!(alpha > 0) || !(beta > 0) || !(x >= 0 && x <= 1)) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  if (x == 0 || x == 1) return 0;
  const double y = 1 - x, slope = std::log(x) + digamma(alpha + beta) - digamma(alpha);
  if (x * (alpha + beta + 2) < alpha + 1) {
    const Dual h = Dual{x * y} / (Dual{alpha, 1} * beta_fraction({alpha, 1}, {beta}, x));
    return -(h.v * slope + h.d);
  }
  // The other tail: 1 - I with the parameters exchanged.
  const Dual h = Dual{x * y / beta} / beta_fraction({beta}, {alpha, 1}, y);
  return h.v * slope + h.d;
}

constexpr int64_t kGrain = 256;  // at a few microseconds per element

template <class T> void gamma_gradients(int64_t n, const T* alpha, const T* x, T* out) {
  parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) out[i] = static_cast<T>(gamma_gradient(alpha[i], x[i]));
  });
}
template <class T>
void dirichlet_gradients(int64_t n, const T* x, const T* alpha, const T* total, T* out) {
  parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const double at = x[i], a = alpha[i], rest = 1 - at;
      out[i] = static_cast<T>(rest > 0 ? beta_gradient(at, a, total[i] - a) / rest : 0.0);
    }
  });
}

}  // namespace
}  // namespace taeda::cpu

namespace taeda {
template <class T>
const GammaKernels<T> GammaKernels<T>::cpu = {
    cpu::fill_gamma<T>,      cpu::fill_dirichlet<T>,      cpu::fill_binomial<T>,
    cpu::gamma_gradients<T>, cpu::dirichlet_gradients<T>,
};
template struct GammaKernels<float>;
template struct GammaKernels<double>;
}  // namespace taeda
