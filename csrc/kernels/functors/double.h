// Powers, logarithms, inverse trigonometric and hyperbolic functions of float64, without branches
// (see functors/elementary.h for float32).
#pragma once

#include "kernels/functors/scalar.h"

namespace taeda::TAEDA_ISA {

// Some are exact or faster than the library's only where a product and a sum are rounded once.
#if defined(__FMA__) || !defined(__x86_64__)
inline constexpr bool kFused = true;
#else
inline constexpr bool kFused = false;
#endif

inline constexpr double kHalfPi = 1.5707963267948966, kHalfPiRest = 6.123233995736766e-17;
inline constexpr double kTan22 = 0.41421356237309503;  // of 22.5 degrees

// ---- powers and logarithms ----
FN double exp2(double x) {  // exact for whole numbers
  double c = x < -1080.0 ? -1080.0 : x;
  c = c > 1030.0 ? 1030.0 : c;
  const double shifted = c + 0x1.8p52, r = (c - (shifted - 0x1.8p52)) * kLn2;
  const auto n = static_cast<int64_t>(bits_as<uint64_t>(shifted) - 0x4338000000000000u);
  const auto half = static_cast<int64_t>((static_cast<uint64_t>(n) + 4096) >> 1) - 2048;
  const double p = exp_rest(r);
  return (p + 1.0) * pow2i(half, 0.0) * pow2i(rest(n, half), 0.0);
}
FN double log_edges(double x, double v) {  // v where it is the logarithm of x
  const double special = x == 0.0 ? -kInf : (x > 0.0 ? x : kNan);
  return (x > 0.0 && x < kInf) ? v : special;
}
FN double log2(double x) {  // exact for powers of two
  const DoubleLog l = log_parts(x);
  return log_edges(x, l.e + l.m * 1.4426950408889634);
}
FN double log10(double x) {  // so for those of ten: the first part of log10(2) has 41 bits
  const DoubleLog l = log_parts(x);
  return log_edges(
      x, l.e * 0x1.34413509f78p-2 + (l.e * 0x1.fef311f12b358p-46 + l.m * 0.4342944819032518));
}

// x to the y: y log|x| with 20 bits more than the result has.
FN double pow(double x, double y) {
  if constexpr (!kFused) return ::pow(x, y);
  const double a = abs(x);
  const bool tiny = a < 2.2250738585072014e-308;
  const uint64_t u = bits_as<uint64_t>(tiny ? a * 0x1p52 : a) - 0x3fe6a09e667f3bcdu;
  const uint64_t biased = ((u >> 52) ^ 0x800) + 0x4330000000000000u;  // as in log()
  const double e = bits_as<double>(biased) - (0x1p52 + 2048.0) - (tiny ? 52.0 : 0.0);
  const double f = bits_as<double>((u & 0x000fffffffffffffu) + 0x3fe6a09e667f3bcdu) - 1.0;
  // s = f / (2 + f), z = s^2 and 2 atanh(s) = s (2 + 2/3 z + z^2 (...)), each with what its
  // rounding left out.
  const double d = 2.0 + f, d_rest = f - (d - 2.0), inverse = 1.0 / d;
  const double s = f * inverse, s_rest = (__builtin_fma(-s, d, f) - s * d_rest) * inverse;
  const double z = s * s, z_rest = __builtin_fma(s, s, -z) + 2.0 * s * s_rest;
  double q = 0.11723178623876518;
  q = q * z + 0.11706236339491206;
  q = q * z + 0.1333480469384731;
  q = q * z + 0.1538459496251843;
  q = q * z + 0.18181818335392802;
  q = q * z + 0.22222222221655885;
  q = q * z + 0.28571428571429364;
  q = q * z + 0.4;
  constexpr double third = 0.6666666666666666, third_rest = 3.700743415417188e-17;
  const double t1 = z * third,
               t1_rest = __builtin_fma(z, third, -t1) + (z_rest * third + z * third_rest);
  const double t2 = z * z * q, t = t1 + t2, t_rest = (t1 - t) + t2 + t1_rest;
  const double w = 2.0 + t, w_rest = (2.0 - w) + t + t_rest;
  const double m = s * w, m_rest = __builtin_fma(s, w, -m) + (s * w_rest + s_rest * w);
  const double high = e * 0x1.62e42feep-1, sum = high + m;
  const double sum_rest = (high - sum) + m + (m_rest + e * 0x1.a39ef35793c76p-33);
  const double whole = sum + sum_rest, left = (sum - whole) + sum_rest;
  const double edge = a == 0.0 ? -kInf : a, log_a = a > 0.0 && a < kInf ? whole : edge;

  const double by = a == 1.0 ? 0.0 : y, v = by * log_a;
  const double v_rest = __builtin_fma(by, log_a, -v) + by * left;
  const DoubleReduced r = exp_reduce(v);
  const double more = abs(v) < 800.0 ? v_rest : 0.0;
  const auto half_n = static_cast<int64_t>((static_cast<uint64_t>(r.n) + 4096) >> 1) - 2048;
  const double size =
      (r.p + (1.0 + r.p) * more + 1.0) * pow2i(half_n, 0.0) * pow2i(rest(r.n, half_n), 0.0);

  const double half = 0.5 * y;
  const double odd = trunc(half) == half ? 1.0 : copysign(1.0, x);  // of whole exponents
  const double broken = x < 0.0 ? (a < kInf ? kNan : 1.0) : 1.0;
  const double value = y == 0.0 ? 1.0 : size * (trunc(y) == y ? odd : broken);
  return x == 1.0 ? 1.0 : value;
}

// ---- inverse trigonometric functions ----
FN double asin_near(double s, double z) {  // asin(s) for s up to 1/2, whose square is z
  double p = 0.028169236503075165;
  p = p * z - 0.010749074470864636;
  p = p * z + 0.016035527948887778;
  p = p * z + 0.00780294515847714;
  p = p * z + 0.01187549523155723;
  p = p * z + 0.01392965279552103;
  p = p * z + 0.01735525996438101;
  p = p * z + 0.022372047631315332;
  p = p * z + 0.030381947367110917;
  p = p * z + 0.04464285710342346;
  p = p * z + 0.07500000000020765;
  p = p * z + 0.1666666666666665;
  return p * (z * s) + s;
}
FN double asin(double x) {
  const double a = abs(x);
  const bool far = a > 0.5;
  const double z = far ? 0.5 * (1.0 - a) : a * a, v = asin_near(far ? sqrt(z) : a, z);
  return copysign(far ? (kHalfPiRest - 2.0 * v) + kHalfPi : v, x);
}
FN double acos(double x) {
  const double a = abs(x);
  const bool far = a > 0.5, left = x < 0.0;
  const double z = far ? 0.5 * (1.0 - a) : a * a, v = asin_near(far ? sqrt(z) : a, z);
  const double turns = far ? (left ? 2.0 : 0.0) : 1.0, part = far ? 2.0 * v : v;
  const double more = far != left ? part : -part;
  return (more + turns * kHalfPiRest) + turns * kHalfPi;
}
FN double atan_near(double t) {  // for |t| up to tan(22.5 degrees)
  const double z = t * t;
  double p = -0.019175404711104935;
  p = p * z + 0.03923044778479309;
  p = p * z - 0.050854078345894844;
  p = p * z + 0.05858140904866328;
  p = p * z - 0.06664510525508936;
  p = p * z + 0.07692183125376892;
  p = p * z - 0.0909090457530649;
  p = p * z + 0.11111111015187018;
  p = p * z - 0.14285714284665682;
  p = p * z + 0.19999999999995516;
  p = p * z - 0.3333333333333333;
  return p * (z * t) + t;
}
FN double atan(double x) {
  const double a = abs(x);
  const bool low = a <= kTan22, high = a > 1.0 / kTan22;
  const double turns = low ? 0.0 : (high ? 1.0 : 0.5);
  const double t = (low ? a : (high ? -1.0 : a - 1.0)) / (low ? 1.0 : (high ? a : a + 1.0));
  return copysign((atan_near(t) + turns * kHalfPiRest) + turns * kHalfPi, x);
}
FN double atan2(double y, double x) {
  const double ax = abs(x), ay = abs(y);
  const bool steep = ay > ax, left = signbit(x);
  // A sum of the two neither overflows nor is cut short.
  const double most = steep ? ay : ax, down = most > 0x1p1000 ? 0x1p-60 : 1.0;
  const double scale = most < 0x1p-900 ? 0x1p100 : down;
  const double big = most * scale, small = (steep ? ax : ay) * scale;
  const bool same = small == big, far = (small > kTan22 * big) | (same & (big > 0.0));
  const double part = (far ? small - big : small) / (far ? small + big : big);
  const double t = same ? 0.0 : part;
  const double eighths = far ? 0.5 : 0.0;  // what atan_near() is counted from
  const double turns = (steep ? 1.0 : (left ? 2.0 : 0.0)) + (steep != left ? -eighths : eighths);
  const double near = atan_near(t), more = steep != left ? -near : near;
  return copysign((more + turns * kHalfPiRest) + turns * kHalfPi, y);
}
// For |x| up to easy_angle.
FN double tan(double x) {
  const double shifted = x * 0.636619772367581343 + 0x1.8p52, k = shifted - 0x1.8p52;
  const double r = less_half_pi(x, k), z = r * r;
  const double s = sin_poly(r, z), c = cos_poly(z);
  const bool odd = (bits_as<uint64_t>(shifted) & 1) != 0;
  return (odd ? -c : s) / (odd ? s : c);
}
FN double library_tan(double x) { return ::tan(x); }

// ---- hyperbolic functions ----
FN double half_exp(double a) {  // exp(a) / 2 for a >= 0; infinite only where that is
  const DoubleReduced e = exp_reduce(a, 712.0);
  const auto half = static_cast<int64_t>((static_cast<uint64_t>(e.n) + 4096) >> 1) - 2048;
  return (e.p + 1.0) * pow2i(half, 0.0) * pow2i(rest(e.n, half + 1), 0.0);
}
FN double sinh(double x) {
  const double a = abs(x), z = x * x, h = half_exp(a);
  double p = 7.646625253572627e-13 + z * 2.8445297426378895e-15;
  p = p * z + 1.6059048397652392e-10;
  p = p * z + 2.5052108364049466e-08;
  p = p * z + 2.7557319224040365e-06;
  p = p * z + 0.00019841269841269773;
  p = p * z + 0.008333333333333333;
  p = p * z + 0.16666666666666666;
  return a < 1.0 ? p * (z * x) + x : copysign(h - 0.25 / h, x);
}
FN double cosh(double x) {
  const double h = half_exp(abs(x));
  return h + 0.25 / h;
}
FN double atanh(double x) {
  const double a = abs(x);
  return copysign(0.5 * log1p((a + a) / (1.0 - a)), x);
}

// ---- the error function ----
FN double exp_normal(double x) {  // for results that are normal numbers, and NaN
  const double shifted = x * 1.44269504088896340736 + 0x1.8p52, k = shifted - 0x1.8p52;
  const double r = (x - k * 0x1.62e42feep-1) - k * 0x1.a39ef35793c76p-33;
  const uint64_t n = bits_as<uint64_t>(shifted) - 0x4338000000000000u + 1023;
  return (exp_rest(r) + 1.0) * bits_as<double>(n << 52);
}
// Two short chains of products instead of a long one, for whose end nothing else is left to do.
FN double erf_near(double x, double z) {  // for |x| up to 1, whose square is z
  const double zz = z * z;
  double p = 1.3720064546777686e-08, q = -7.795898827002142e-10;
  p = p * zz + 1.6447424703317362e-06, q = q * zz - 1.6208483801871705e-07;
  p = p * zz + 0.00012055294904839707, q = q * zz - 1.492473690741966e-05;
  p = p * zz + 0.0052239776071164225, q = q * zz - 0.0008548325975389692;
  p = p * zz + 0.11283791670945006, q = q * zz - 0.02686617064323777;
  p = p * zz + 0.12837916709551256, q = q * zz - 0.3761263890318354;
  return x * (q * z + p) + x;
}
// exp(a^2) erfc(a) for a from 0.85 to 6.1
FN double erfcx_from(double a) {
  const double u = (a - 2.5) / (a + 2.5), uu = u * u;
  double p = 2.928530920354476e-07, q = 1.2568563406012793e-07;
  p = p * uu - 1.7646666480276876e-06;
  p = p * uu + 7.541521657280712e-06, q = q * uu - 2.3116433492157457e-06;
  p = p * uu - 3.4180522252731595e-05, q = q * uu + 1.861648374001202e-05;
  p = p * uu + 0.00022838023114379262, q = q * uu - 0.00012887734581837145;
  p = p * uu - 0.0026423659573707125, q = q * uu + 0.0008759154588985277;
  p = p * uu + 0.039922539075425104, q = q * uu - 0.003993701166104812;
  p = p * uu + 0.2517131932174507, q = q * uu - 0.12503305237882592;
  p = p * uu + 0.2108063640611436, q = q * uu - 0.3717367339489734;
  return q * u + p;
}
FN double erf(double x) {  // max 1.1 ulp
  const double a = abs(x), t = a > 6.0 ? 6.0 : a, tail = exp_normal(-t * t) * erfcx_from(t);
  return a > 0.9 ? copysign(1.0 - tail, x) : erf_near(x, x * x);
}

// ---- lengths, remainders and neighbours ----
FN double hypot(double x, double y) {
  const double a = abs(x), b = abs(y), big = a > b ? a : b;
  const bool huge = big > 0x1p500, tiny = big < 0x1p-500;
  const double scale = huge ? 0x1p-600 : (tiny ? 0x1p600 : 1.0);
  const double back = huge ? 0x1p600 : (tiny ? 0x1p-600 : 1.0);
  const double p = a * scale, q = b * scale, v = sqrt(p * p + q * q) * back;
  return isinf(x) || isinf(y) ? kInf : v;
}
FN double fmod(double x, double y) { return ::fmod(x, y); }
// For |x / y| up to 2^52: the quotient may have been rounded up to the next whole number, and what
// is left is a float64 either way.
FN double fmod_easy(double x, double y) {
  if constexpr (!kFused) return ::fmod(x, y);
  const double q = trunc(x / y), r = __builtin_fma(-q, y, x);
  const double back = copysign(abs(y), x), v = r != 0.0 && signbit(r) != signbit(x) ? r + back : r;
  return copysign(q == 0.0 ? x : v, x);  // y may be infinite
}
FN double nextafter(double x, double y) {
  const auto u = bits_as<uint64_t>(x);
  const double first = copysign(bits_as<double>(uint64_t{1}), y);
  const double near = bits_as<double>((y > x) == (x > 0.0) ? u + 1 : u - 1);
  const double v = x == y ? y : (x == 0.0 ? first : near);
  return x == x && y == y ? v : x + y;
}

}  // namespace taeda::TAEDA_ISA
