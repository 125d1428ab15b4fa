// Window functions, and the frequencies of a Fourier transform.
#include <cmath>

#include "ops/core/factory.h"

namespace taeda {
namespace {

using namespace factory;

// Evaluates `value` over one period; a periodic window omits the last point of a symmetric one.
template <class F> Value window(Call& c, size_t at, F&& value) {
  const auto n = get<int64_t>(c, 0);
  const Options o = options_of(c, at);
  check(n >= 0, c.op.name, "(): window_length must be non-negative, got ", n);
  check(is_floating(o.dtype), c.op.name, "(): expects floating point dtypes, got: ", o.dtype);
  const Tensor t = empty({{n}}, o);
  const double last = static_cast<double>(get<bool>(c, 1) ? n : n - 1);
  if (n == 1) fill_with(t, 1);
  else tabulate(t, [&](int64_t i) { return value(static_cast<double>(i) / last); });
  return finished(c, at, t);
}
constexpr double kTwoPi = 6.28318530717958647693;
Value hann_op(Call& c) {
  return window(c, 2, [](double x) { return 0.5 - 0.5 * std::cos(kTwoPi * x); });
}
Value hamming_op(Call& c) {
  const double alpha = get<double>(c, 2), beta = get<double>(c, 3);
  return window(c, 4, [=](double x) { return alpha - beta * std::cos(kTwoPi * x); });
}
Value blackman_op(Call& c) {
  return window(c, 2, [](double x) {
    return 0.42 - 0.5 * std::cos(kTwoPi * x) + 0.08 * std::cos(2 * kTwoPi * x);
  });
}
Value bartlett_op(Call& c) {
  return window(c, 2, [](double x) { return x < 0.5 ? 2 * x : 2 - 2 * x; });
}

// The modified Bessel function I0 by its power series, all of whose terms are positive.
double bessel_i0(double x) {
  double sum = 1, term = 1;
  for (int k = 1; term > 1e-17 * sum && k < 2000; ++k) {
    term *= x / (2 * k) * (x / (2 * k));
    sum += term;
  }
  return sum;
}
Value kaiser_op(Call& c) {
  const double beta = get<double>(c, 2), top = bessel_i0(beta);
  return window(c, 3, [=](double x) {
    const double u = 2 * x - 1;
    return bessel_i0(beta * std::sqrt(std::fmax(0.0, 1 - u * u))) / top;
  });
}

// The frequencies 0, 1, ... (n - 1) // 2, then the negative ones, divided by n d; `half`: 0 ... n
// // 2 alone.
Value frequencies(Call& c, bool half) {
  const auto n = get<int64_t>(c, 0);
  const Options o = options_of(c, 2);
  check(is_inexact(o.dtype), half ? "rfftfreq" : "fftfreq",
        " requires a floating point or complex dtype");
  const int64_t size = half ? n / 2 + 1 : n, positive = half ? size : (n + 1) / 2;
  const Tensor t = empty({{size}}, o);
  const double step = 1 / (static_cast<double>(n) * get<double>(c, 1));
  tabulate(t, [=](int64_t i) { return static_cast<double>(i < positive ? i : i - n) * step; });
  return finished_range(c, 2, t);
}
Value fftfreq_op(Call& c) { return frequencies(c, false); }
Value rfftfreq_op(Call& c) { return frequencies(c, true); }

const Define kWindowsOps[] = {
    {"hann_window(window_length: int, periodic: bool = True, *, " TAEDA_OPTIONS ") -> Tensor",
     "The Hann window, `0.5 - 0.5 cos(2 pi x)`.",
     raw(hann_op),
     {.forms = kFunction}},
    {"hamming_window(window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = "
     "0.46, *, " TAEDA_OPTIONS ") -> Tensor",
     "The Hamming window, `alpha - beta cos(2 pi x)`.",
     raw(hamming_op),
     {.forms = kFunction}},
    {"blackman_window(window_length: int, periodic: bool = True, *, " TAEDA_OPTIONS ") -> Tensor",
     "The Blackman window, `0.42 - 0.5 cos(2 pi x) + 0.08 cos(4 pi x)`.",
     raw(blackman_op),
     {.forms = kFunction}},
    {"bartlett_window(window_length: int, periodic: bool = True, *, " TAEDA_OPTIONS ") -> Tensor",
     "The Bartlett window: a triangle.",
     raw(bartlett_op),
     {.forms = kFunction}},
    {"kaiser_window(window_length: int, periodic: bool = True, beta: float = 12.0, "
     "*, " TAEDA_OPTIONS ") -> Tensor",
     "The Kaiser window, `I0(beta sqrt(1 - (2x - 1)^2)) / I0(beta)`.",
     raw(kaiser_op),
     {.forms = kFunction}},
    {"fft_fftfreq(n: int, d: float = 1.0, *, " TAEDA_OPTIONS ") -> Tensor",
     "The frequencies that `fft` of `n` samples at a distance of `d` gives: 0, 1, ... and then the "
     "negative ones from the lowest up, over `n d`.",
     raw(fftfreq_op),
     {.forms = kFunction | kOut, .module = "fft"}},
    {"fft_rfftfreq(n: int, d: float = 1.0, *, " TAEDA_OPTIONS ") -> Tensor",
     "The frequencies that `rfft` of `n` samples at a distance of `d` gives: 0, 1, ... `n // 2`, "
     "over "
     "`n d`.",
     raw(rfftfreq_op),
     {.forms = kFunction | kOut, .module = "fft"}},
};

}  // namespace
}  // namespace taeda
