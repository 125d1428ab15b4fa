// Functions of float32 that are computed in float64 and without branches, so that the one rounding
// to float32 is nearly all that is lost. What they need only to float32's digits takes short
// polynomials.
#pragma once

#include "kernels/functors/scalar.h"

namespace taeda::TAEDA_ISA {

// ---- exp and log with 35 bits ----
FN double exp_wide(double x) {  // what leaves float32's numbers becomes any that does
  double c = x < -700.0 ? -700.0 : x;
  c = c > 700.0 ? 700.0 : c;
  const double shifted = c * 1.44269504088896340736 + 0x1.8p52, k = shifted - 0x1.8p52;
  const double r = c - k * kLn2;
  double q = 2.48015956454e-05;
  q = q * r + 0.000199074509146;
  q = q * r + 0.00138889782716;
  q = q * r + 0.00833328375191;
  q = q * r + 0.0416666659518;
  q = q * r + 0.166666667853;
  q = q * r + 0.500000000012;
  q = q * r + 0.999999999996;
  const uint64_t n = bits_as<uint64_t>(shifted) - 0x4338000000000000u + 1023;
  return (q * r + 1.0) * bits_as<double>(n << 52);
}
FN double log_wide(double x) {  // every float32 is a normal float64
  const uint64_t u = bits_as<uint64_t>(x) - 0x3fe6a09e667f3bcdu;
  const uint64_t biased = ((u >> 52) ^ 0x800) + 0x4330000000000000u;  // as in log()
  const double e = bits_as<double>(biased) - (0x1p52 + 2048.0);
  const double f = bits_as<double>((u & 0x000fffffffffffffu) + 0x3fe6a09e667f3bcdu) - 1.0;
  const double s = f / (2.0 + f), z = s * s;
  double q = 0.193657670914;
  q = q * z + 0.22191236789;
  q = q * z + 0.285717571987;
  q = q * z + 0.399999987838;
  q = q * z + 0.666666666674;
  const double v = e * kLn2 + (s * (q * z) + (s + s));
  const double special = x == 0.0 ? -kInf : (x > 0.0 ? x : kNan);
  return (x > 0.0 && x < kInf) ? v : special;
}

// ---- relatives of the error function ----
// erfc(x) is exp(-x^2) times a polynomial in t = 1 / (|x| + 2), and 2 less that for negative x.
FN double erfc_wide(double x) {
  const double wide = abs(x), a = wide > 12.0 ? 12.0 : wide, t = 1.0 / (a + 2.0);
  double p = 73.63662409;
  p = p * t - 196.7619722;
  p = p * t + 196.7738886;
  p = p * t - 75.24887556;
  p = p * t - 2.280605844;
  p = p * t + 2.098485253;
  p = p * t + 1.791524482;
  p = p * t + 2.964575587;
  p = p * t + 1.961867616;
  p = p * t + 1.128987939;
  p = p * t + 0.564177506;
  const double v = exp_wide(-a * a) * (p * t);
  return x < 0.0 ? 2.0 - v : v;
}
FN float erfc(float x) { return static_cast<float>(erfc_wide(x)); }  // max 0.6 ulp

// exp(a^2) erfc(a) for a >= 0: a polynomial in t = 3 / (a + 3) without a constant term.
FN double erfcx_wide(double a) {
  const double t = 3.0 / (a + 3.0);
  double p = -0.0148523980603;
  p = p * t + 0.075574039066;
  p = p * t - 0.136310071674;
  p = p * t + 0.0961549863136;
  p = p * t - 0.044891399466;
  p = p * t + 0.0385135501772;
  p = p * t + 0.0563303082407;
  p = p * t + 0.0917626249776;
  p = p * t + 0.127276138143;
  p = p * t + 0.156699490454;
  p = p * t + 0.177616365936;
  p = p * t + 0.188063170871;
  p = p * t + 0.188063194596;
  return p * t;
}

// The normal distribution function, and its logarithm: from -1 on log(1 - upper tail).
FN float ndtr(float x) { return static_cast<float>(0.5 * erfc_wide(-(x * (1 / kSqrt2)))); }
FN float log_ndtr(float x) {
  const double wide = x, t = wide * (1 / kSqrt2);
  const bool low = wide < -1.0;
  const double a = abs(t), square = a * a, scaled = 0.5 * erfcx_wide(a);
  const double tail = exp_wide(-square) * scaled, upper = wide < 0.0 ? 1.0 - tail : tail;
  const double u = 1.0 - upper, v = log_wide(low ? scaled : u);
  return static_cast<float>(low ? v - square : v - (upper - (1.0 - u)) / u);
}

// ---- modified Bessel functions of the first kind, at a >= 0 ----
// From 7 on they are exp(a) / sqrt(a) times a polynomial in 1 / a, before that one in a^2.
struct BesselParts {
  double p, root;  // the polynomial, and sqrt(1 / a) from 7 on, else 1
  bool far;
};
FN BesselParts i0_parts(double a) {
  const bool far = a > 7.0;
  const double s = 1.0 / (far ? a : 1.0), t = far ? s : a * a;
  double p = far ? 0.0 : 1.18418999038e-19;
  p = p * t + (far ? -997.483004472 : 2.39038201346e-17);
  p = p * t + (far ? 565.944740232 : 9.68408886941e-15);
  p = p * t + (far ? -125.383931712 : 2.39229481349e-12);
  p = p * t + (far ? 15.2009418313 : 4.71180787439e-10);
  p = p * t + (far ? -0.93841482155 : 6.78137061421e-08);
  p = p * t + (far ? 0.0861481556981 : 6.78170953197e-06);
  p = p * t + (far ? 0.0282849504163 : 0.000434027662561);
  p = p * t + (far ? 0.0280611850481 : 0.0156250002509);
  p = p * t + (far ? 0.0498677391624 : 0.249999999803);
  p = p * t + (far ? 0.398942280434 : 1.00000000002);
  return {p, sqrt(s), far};
}
FN BesselParts i1_parts(double a) {  // of i1(a) / a before 7
  const bool far = a > 7.0;
  const double s = 1.0 / (far ? a : 1.0), t = far ? s : a * a;
  double p = far ? 0.0 : 5.23933842864e-21;
  p = p * t + (far ? 1077.9876783 : 1.22750832513e-18);
  p = p * t + (far ? -615.850315361 : 5.34935177639e-16);
  p = p * t + (far ? 137.172020048 : 1.4967830914e-13);
  p = p * t + (far ? -16.7510608727 : 3.36507906674e-11);
  p = p * t + (far ? 1.02886490023 : 5.65123715461e-09);
  p = p * t + (far ? -0.103678073816 : 6.78169860903e-07);
  p = p * t + (far ? -0.0398583185267 : 5.42534650013e-05);
  p = p * t + (far ? -0.0467629875291 : 0.00260416668429);
  p = p * t + (far ? -0.149603302805 : 0.062499999984);
  p = p * t + (far ? 0.398942280364 : 0.500000000002);
  return {far ? p : p * a, sqrt(s), far};
}
FN float i0(float x) {
  const double a = abs(x);
  const BesselParts b = i0_parts(a > 700.0 ? 700.0 : a);
  return static_cast<float>(b.p * b.root * exp_wide(b.far ? a : 0.0));
}
FN float i0e(float x) {
  const double a = abs(x);
  const BesselParts b = i0_parts(a);
  return static_cast<float>(b.p * b.root * exp_wide(b.far ? 0.0 : -a));
}
FN float i1(float x) {
  const double a = abs(x);
  const BesselParts b = i1_parts(a > 700.0 ? 700.0 : a);
  return copysign(static_cast<float>(b.p * b.root * exp_wide(b.far ? a : 0.0)), x);
}
FN float i1e(float x) {
  const double a = abs(x);
  const BesselParts b = i1_parts(a);
  return copysign(static_cast<float>(b.p * b.root * exp_wide(b.far ? 0.0 : -a)), x);
}

// ---- the logarithm of the gamma function, and its derivatives ----
// Asymptotic series at w >= 8. Smaller numbers are moved up by 8: with u = x (x + 7) the product
// x (x + 1) ... (x + 7) is u (u + 6) (u + 10) (u + 12). Negative ones are reflected.
struct GammaShift {
  double w, u;  // where the series is taken; u of the number before it moved
  bool moved;
};
FN GammaShift gamma_shift(double x) {
  const double a = x < 0.0 ? 1.0 - x : x;
  const bool moved = a < 8.0;
  return {moved ? a + 8.0 : a, a * (a + 7.0), moved};
}
// sin(pi x) but for its sign, and cos(pi x) with that sign.
FN double sin_half_turns(double x) {
  const double r = (x - round(x)) * kPi;
  return sin_poly(r, r * r);
}
FN double cos_half_turns(double x) {
  const double r = kPi * (0.5 - abs(x - round(x)));
  return sin_poly(r, r * r);
}
FN float lgamma(float x) {
  const double wide = x;
  const bool negative = wide < 0.0;
  const GammaShift g = gamma_shift(wide);
  const double i = 1.0 / g.w, z = i * i;
  double q = -3617.0 / 122400;
  q = q * z + 1.0 / 156;
  q = q * z - 691.0 / 360360;
  q = q * z + 1.0 / 1188;
  q = q * z - 1.0 / 1680;
  q = q * z + 1.0 / 1260;
  q = q * z - 1.0 / 360;
  q = q * z + 1.0 / 12;
  const double series = (g.w - 0.5) * log(g.w) - g.w + (0.918938533204672741780 + q * i);
  const double product = g.moved ? g.u * (g.u + 6.0) * (g.u + 10.0) * (g.u + 12.0) : 1.0;
  const double sine = abs(sin_half_turns(wide));
  const double less = log(abs(negative ? kPi * product / sine : product));
  const double v = negative ? less - series : series - less;
  const double zero = wide == 1.0 || wide == 2.0 ? 0.0 : v;
  return static_cast<float>(abs(wide) == kInf ? kInf : zero);
}
FN float digamma(float x) {
  const double wide = x;
  const GammaShift g = gamma_shift(wide);
  const double a = wide < 0.0 ? 1.0 - wide : wide, u = g.u;
  const double i = 1.0 / g.w, z = i * i;
  double q = -1.0 / 12;
  q = q * z + 691.0 / 32760;
  q = q * z - 1.0 / 132;
  q = q * z + 1.0 / 240;
  q = q * z - 1.0 / 252;
  q = q * z + 1.0 / 120;
  q = q * z - 1.0 / 12;
  const double product = u * (u + 6.0) * (u + 10.0) * (u + 12.0);
  const double slope = ((4.0 * u + 84.0) * u + 504.0) * u + 720.0;  // d product / du
  const double steps = g.moved ? (2.0 * a + 7.0) * slope / product : 0.0;
  const double v = log(g.w) - 0.5 * i + q * z - steps;
  const double sine = sin_half_turns(wide), cosine = cos_half_turns(wide);
  const double reflected = sine == 0.0 ? kNan : v - kPi * cosine / sine;
  return static_cast<float>(wide < 0.0 ? reflected : v);
}
FN float trigamma(float x) {
  const double wide = x;
  const GammaShift g = gamma_shift(wide);
  const double a = wide < 0.0 ? 1.0 - wide : wide, u = g.u;
  const double i = 1.0 / g.w, z = i * i;
  double q = 5.0 / 66;
  q = q * z - 1.0 / 30;
  q = q * z + 1.0 / 42;
  q = q * z - 1.0 / 30;
  q = q * z + 1.0 / 6;
  const double product = u * (u + 6.0) * (u + 10.0) * (u + 12.0);
  const double slope = ((4.0 * u + 84.0) * u + 504.0) * u + 720.0;
  const double bend = (12.0 * u + 168.0) * u + 504.0, t = 2.0 * a + 7.0;
  // The sum of 1 / (a + k)^2 is minus the second derivative of the product's logarithm.
  const double first = t * slope / product;
  const double steps = first * first - (bend * t * t + 2.0 * slope) / product;
  const double series = i + z * (0.5 + q * i);
  const double v = g.moved ? series + steps : series;
  const double sine = sin_half_turns(wide), reflected = kPi * kPi / (sine * sine) - v;
  return static_cast<float>(wide == 0.0 ? kInf : (wide < 0.0 ? reflected : v));
}

}  // namespace taeda::TAEDA_ISA
