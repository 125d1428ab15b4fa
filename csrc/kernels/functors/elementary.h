// Inverse trigonometric, hyperbolic and other elementary functions of float32, without branches.
// (See functors/scalar.h for the more frequent ones, functors/double.h for float64.)
#pragma once

#include "kernels/functors/double.h"
#include "kernels/functors/wide.h"

namespace taeda::TAEDA_ISA {

// ---- powers ----
FN float exp2(float x) {  // max 1.3 ulp; exact for whole numbers
  float c = x < -151.0f ? -151.0f : x;
  c = c > 129.0f ? 129.0f : c;
  const float shifted = c + 12582912.0f, r = c - (shifted - 12582912.0f);
  float q = 1.5478018e-4f;
  q = q * r + 1.340043148957193e-3f;
  q = q * r + 9.617994539439678e-3f;
  q = q * r + 5.550327152013779e-2f;
  q = q * r + 2.4022652208805084e-1f;
  q = q * r + 6.931471824645996e-1f;
  q = q * r + 1.0f;
  const auto n = static_cast<int32_t>(bits_as<uint32_t>(shifted) - 0x4b400000u), half = n >> 1;
  return q * pow2i(half, 0.0f) * pow2i(n - half, 0.0f);
}

// x to the y: in float64, so that the one rounding to float32 is all that is lost. Vectors of two
// lanes without FMA instructions are slower than the library.
FN float pow(float x, float y) {
#if defined(__SSE2__) && !defined(__FMA__)
  return ::powf(x, y);
#else
  const double wide = x, a = abs(wide), b = y, half = 0.5 * b;
  const double size = exp_wide(a == 1.0 ? 0.0 : b * log_wide(a));
  const double odd = trunc(half) == half ? 1.0 : copysign(1.0, wide);  // of whole exponents
  const double broken = wide < 0.0 ? (a < kInf ? kNan : 1.0) : 1.0;
  const double side = trunc(b) == b ? odd : broken;
  const double v = b == 0.0 ? 1.0 : size * side;
  return static_cast<float>(wide == 1.0 ? 1.0 : v);
#endif
}

// ---- tangent and inverse trigonometric functions ----
// For |x| up to easy_angle: from multiples of pi/2, with -1/tan on the odd ones. Max 2.8 ulp.
FN float tan(float x) {
  const float shifted = x * 0.636619772f + 12582912.0f;
  const float r = less_pi(x, 0.5f * (shifted - 12582912.0f)), z = r * r;
  float p = 4.4192984e-3f;
  p = p * z - 1.246908936991531e-6f;
  p = p * z + 1.0910682380199432e-2f;
  p = p * z + 2.1251829341053963e-2f;
  p = p * z + 5.406613647937775e-2f;
  p = p * z + 1.3332605361938477e-1f;
  p = p * z + 3.333335220813751e-1f;
  const float t = p * (z * r) + r;
  return (bits_as<uint32_t>(shifted) & 1) != 0 ? -1.0f / t : t;
}
FN float library_tan(float x) { return ::tanf(x); }

inline constexpr float kHalfPiHigh = 1.57079637f, kHalfPiLow = -4.37113883e-8f;

// asin(s) for s up to 1/2, whose square is z.
FN float asin_near(float s, float z) {
  float p = 4.2218547e-2f;
  p = p * z + 2.4147611e-2f;
  p = p * z + 4.5477096e-2f;
  p = p * z + 7.4952416e-2f;
  p = p * z + 1.6666754e-1f;
  return p * (z * s) + s;
}
// asin(a) = pi/2 - 2 asin(sqrt((1 - a) / 2)). Max 2.4 ulp, and 1.2 of acos.
FN float asin(float x) {
  const float a = abs(x);
  const bool far = a > 0.5f;
  const float z = far ? 0.5f * (1.0f - a) : a * a, v = asin_near(far ? sqrt(z) : a, z);
  return copysign(far ? (kHalfPiLow - 2.0f * v) + kHalfPiHigh : v, x);
}
FN float acos(float x) {
  const float a = abs(x);
  const bool far = a > 0.5f, left = x < 0.0f;
  const float z = far ? 0.5f * (1.0f - a) : a * a, v = asin_near(far ? sqrt(z) : a, z);
  const float turns = far ? (left ? 2.0f : 0.0f) : 1.0f, part = far ? 2.0f * v : v;
  const float rest = far != left ? part : -part;
  return (rest + turns * kHalfPiLow) + turns * kHalfPiHigh;
}

FN float atan_unit(float q) {  // for q from 0 to 1; max 1.6 ulp, also of atan
  const float z = q * q;
  float p = -1.7935939e-3f;
  p = p * z + 1.0914481e-2f;
  p = p * z - 3.1177614e-2f;
  p = p * z + 5.7957359e-2f;
  p = p * z - 8.4034368e-2f;
  p = p * z + 1.0952181e-1f;
  p = p * z - 1.4264241e-1f;
  p = p * z + 1.9998549e-1f;
  p = p * z - 3.3333299e-1f;
  return p * (z * q) + q;
}
FN float atan(float x) {
  const float a = abs(x);
  const bool steep = a > 1.0f;
  const float v = atan_unit(steep ? 1.0f / a : a);
  return copysign(steep ? (kHalfPiLow - v) + kHalfPiHigh : v, x);
}
FN float atan2(float y, float x) {
  const float ax = abs(x), ay = abs(y);
  const float big = ax > ay ? ax : ay, small = ax > ay ? ay : ax;
  const float diagonal = big == 0.0f ? 0.0f : 1.0f;  // infinities too
  const float v = atan_unit(small == big ? diagonal : small / big);
  const bool steep = ay > ax, left = signbit(x);
  const float turns = steep ? 1.0f : (left ? 2.0f : 0.0f), rest = steep != left ? -v : v;
  return copysign((rest + turns * kHalfPiLow) + turns * kHalfPiHigh, y);
}

// ---- hyperbolic functions ----
FN float half_exp(float a) {  // exp(a) / 2 for a >= 0; infinite only where that is
  uint32_t n;
  const float q = exp_power(a > 90.0f ? 90.0f : a, n);
  return q * pow2i(static_cast<int32_t>(n) - 1, 0.0f);
}
FN float sinh(float x) {
  const float a = abs(x), z = x * x, h = half_exp(a);
  float p = 2.8174397e-6f;
  p = p * z + 1.9836066e-4f;
  p = p * z + 8.3333506e-3f;
  p = p * z + 1.6666667e-1f;
  return a < 1.0f ? p * (z * x) + x : copysign(h - 0.25f / h, x);
}
FN float cosh(float x) {
  const float h = half_exp(abs(x));
  return h + 0.25f / h;
}
FN float atanh(float x) {
  const float a = abs(x);
  return copysign(0.5f * log1p((a + a) / (1.0f - a)), x);
}

// ---- lengths ----
// Squares of float32 neither overflow nor vanish in float64.
FN float hypot(float x, float y) {
  const double a = x, b = y;
  const auto v = static_cast<float>(sqrt(a * a + b * b));
  return isinf(x) || isinf(y) ? static_cast<float>(kInf) : v;
}

// ---- what division leaves ----
FN float fmod(float x, float y) { return ::fmodf(x, y); }
// For |x / y| up to 2^27, with y no zero: the quotient of two float32 is then farther from a whole
// number above it than float64 rounds, and its product with y has 51 bits. So nothing is rounded.
FN float fmod_easy(float x, float y) {
  const double a = x, b = y, q = trunc(a / b);
  const auto r = static_cast<float>(a - q * b);
  return copysign(q == 0.0 ? x : r, x);  // y may be infinite
}
// Quotients of whole numbers below 2^53 are farther from the next whole number than float64 rounds.
template <class T> FN T floor_whole(T a, T b) {
  const double q = static_cast<double>(a) / static_cast<double>(b);
  return static_cast<T>(floor(q));
}
template <class T> FN T trunc_whole(T a, T b) {
  return static_cast<T>(static_cast<double>(a) / static_cast<double>(b));
}
FN uint64_t whole_magnitude(int64_t x) {
  const auto u = static_cast<uint64_t>(x);
  return x < 0 ? 0 - u : u;
}
// What the easy form may be asked for.
struct EasyQuotient {
  FN static uint32_t range_key(float x, float y) { return magnitude(x / y); }
  FN static uint32_t range_limit(float) { return magnitude(0x1p27f); }
  FN static uint64_t range_key(double x, double y) { return magnitude(x / y); }
  FN static uint64_t range_limit(double) { return magnitude(0x1p52); }
  FN static uint32_t range_key(int32_t, int32_t y) { return y == 0 || y == -1 ? 1 : 0; }
  FN static uint32_t range_limit(int32_t) { return 0; }
  FN static uint64_t range_key(int64_t x, int64_t y) {
    return y == 0 ? ~uint64_t{0} : whole_magnitude(x) | whole_magnitude(y);
  }
  FN static uint64_t range_limit(int64_t) { return (uint64_t{1} << 53) - 1; }
};
template <class T>
inline constexpr bool easy_whole = same_type<T, int32_t> || same_type<T, int64_t>;
template <class T>
inline constexpr bool easy_quotient =
    same_type<T, float> || (same_type<T, double> && kFused) || easy_whole<T>;

// ---- the inverse error function ----
// x times a polynomial in w = -log(1 - x^2), or in sqrt(w) from w = 5 on, in float64: the one
// rounding to float32 is nearly all that is lost (max 0.501 ulp), as in PyTorch, whose users draw
// weights by it.
FN double erfinv_wide(double y) {
  const double a = abs(y), w = -log((1.0 - a) * (1.0 + a));
  const bool tail = w >= 5.0;
  const double t = tail ? sqrt(w) - 3.16131566292015 : w - 2.5;
  double p = tail ? 1.0453471483315685e-05 : -2.0256120936453248e-11;
  p = p * t + (tail ? -6.457990027232708e-06 : 1.2297984367849908e-10);
  p = p * t + (tail ? -5.917932334129241e-05 : 8.149118165832201e-10);
  p = p * t + (tail ? 1.2772524770638633e-4 : -1.0853547421317514e-08);
  p = p * t + (tail ? -4.70281992979066e-05 : 1.3816773423027955e-08);
  p = p * t + (tail ? -3.5476567164722297e-4 : 4.786394612287966e-07);
  p = p * t + (tail ? 1.173741466501463e-3 : -3.4175220496878684e-06);
  p = p * t + (tail ? -2.2530052355457584e-3 : -4.9958665972249785e-06);
  p = p * t + (tail ? 3.3613574747844237e-3 : 2.1825124687759132e-4);
  p = p * t + (tail ? -4.782025002664178e-3 : -1.2527081004784437e-3);
  p = p * t + (tail ? 6.499197622288806e-3 : -4.177318131326587e-3);
  p = p * t + (tail ? 1.0042103257876431 : 2.4664027679065925e-1);
  p = p * t + (tail ? 2.9947799075165076 : 1.5014093511388074);
  const double edge = a == 1.0 ? copysign(kInf, y) : kNan;
  return a < 1.0 ? p * y : edge;
}
FN float erfinv(float x) { return static_cast<float>(erfinv_wide(x)); }
// A start with six digits, from w = -log(1 - y^2) or its root, and what the function's derivatives
// make of the start's error. That is taken from erf up to 0.84, then from erfc.
FN float erfinv_start(float rest) {  // erfinv(y) / y from 1 - y^2
  const float w = -log_of(rest, 0.0f);
  const bool tail = w >= 5.0f;
  const float t = tail ? sqrt(w) - 4.2f : w - 2.5f;
  float p = tail ? 1.74421250147e-05f : 2.26059777412e-08f;
  p = p * t + (tail ? -5.17751047374e-05f : 3.42224708993e-07f);
  p = p * t + (tail ? 3.012328699e-06f : -3.45477951427e-06f);
  p = p * t + (tail ? 3.13459156469e-05f : -4.38034671412e-06f);
  p = p * t + (tail ? 0.000255023757072f : 0.000218312979841f);
  p = p * t + (tail ? -0.000753458979794f : -0.00125375888484f);
  p = p * t + (tail ? 0.000795376812739f : -0.00417734651729f);
  p = p * t + (tail ? 1.00993013519f : 0.246640766267f);
  p = p * t + (tail ? 4.04172726643f : 1.50140935111f);
  return p;
}
FN double erfinv(double y) {
  const double a = abs(y);
  const double x = a * static_cast<double>(erfinv_start(static_cast<float>((1.0 - a) * (1.0 + a))));
  const double z = x * x, e = exp_normal(z);
  const bool far = a > 0.84;
  const double error = far ? erfcx_from(x) - (1.0 - a) * e : (a - erf_near(x, z)) * e;
  const double s = error * (1 / kTwoOverSqrtPi);
  const double v = x + s * (s * (s * ((4.0 * z + 1.0) * (1.0 / 3.0)) + x) + 1.0);
  const double edge = a == 1.0 ? kInf : kNan;
  return copysign(a < 1.0 ? v : edge, y);
}

FN double erfc(double x) { return ::erfc(x); }

// ---- logarithms to other bases ----
// Through float64, so that the one rounding to float32 is all that is lost and powers are exact.
FN float log2(float x) { return static_cast<float>(log_wide(x) * 1.4426950408889634); }
FN float log10(float x) { return static_cast<float>(log_wide(x) * 0.43429448190325183); }

// ---- the rest of the library, one call per element ----
#define TAEDA_LIBRARY1(name)                      \
  FN float name(float x) { return ::name##f(x); } \
  FN double name(double x) { return ::name(x); }
TAEDA_LIBRARY1(asinh)
TAEDA_LIBRARY1(acosh)
#undef TAEDA_LIBRARY1
FN float nextafter(float x, float y) { return ::nextafterf(x, y); }

}  // namespace taeda::TAEDA_ISA
