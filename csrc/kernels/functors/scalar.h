// The vocabulary of functors: select, exp, log, tanh, ... for the types that kernels compute in.
//
// Everything lives in the namespace of the instruction set it is compiled for, is inlined, and
// avoids templates of the standard library, so that no object file offers a function that another
// instruction set's code could be linked to. The frequent functions are written without branches: a
// loop over them becomes vector code.
#pragma once

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#ifndef TAEDA_ISA
#define TAEDA_ISA portable
#endif

// FN: what functors consist of. SLOW_FN: what is too large to be inlined, a copy in each object
// file.
#ifdef __CUDACC__
#define FN __host__ __device__ inline
#define SLOW_FN [[maybe_unused]] __host__ __device__ static
#else
#define FN [[gnu::always_inline]] inline
#define SLOW_FN [[maybe_unused]] static
#endif

namespace taeda::TAEDA_ISA {

template <class A, class B> inline constexpr bool same_type = false;
template <class A> inline constexpr bool same_type<A, A> = true;

template <class To, class From> FN To bits_as(From v) {
  static_assert(sizeof(To) == sizeof(From));
  return __builtin_bit_cast(To, v);
}

// ---- choices ----
// `cond ? a : b` that also works on Tensors (ops/pointwise/tensor.h).
template <class T> FN T select(bool cond, T a, T b) { return cond ? a : b; }

inline constexpr double kInf = __builtin_inf();
inline constexpr double kNan = __builtin_nan("");
inline constexpr double kPi = 3.14159265358979323846;
inline constexpr double kLn2 = 0.693147180559945309417;
inline constexpr double kLn10 = 2.30258509299404568402;
inline constexpr double kSqrt2 = 1.41421356237309504880;
inline constexpr double kTwoOverSqrtPi = 1.12837916709551257390;

template <class T> inline constexpr bool is_float = same_type<T, float> || same_type<T, double>;
template <class T>
inline constexpr bool is_integer =
    same_type<T, int8_t> || same_type<T, int16_t> || same_type<T, int32_t> ||
    same_type<T, int64_t> || same_type<T, uint8_t>;
template <class T> inline constexpr bool is_signed = !same_type<T, bool> && !same_type<T, uint8_t>;

// ---- elementary operations that become one instruction ----
FN float abs(float x) { return __builtin_fabsf(x); }
FN double abs(double x) { return __builtin_fabs(x); }
FN float sqrt(float x) { return __builtin_sqrtf(x); }
FN double sqrt(double x) { return __builtin_sqrt(x); }
FN float floor(float x) { return __builtin_floorf(x); }
FN double floor(double x) { return __builtin_floor(x); }
FN float ceil(float x) { return __builtin_ceilf(x); }
FN double ceil(double x) { return __builtin_ceil(x); }
FN float trunc(float x) { return __builtin_truncf(x); }
FN double trunc(double x) { return __builtin_trunc(x); }
FN float round(float x) { return __builtin_rintf(x); }  // half to even
FN double round(double x) { return __builtin_rint(x); }
FN float copysign(float x, float s) { return __builtin_copysignf(x, s); }
FN double copysign(double x, double s) { return __builtin_copysign(x, s); }
// n / d, where neither d nor the quotient is near the ends of the range.
FN float bounded_divide(float n, float d) {
#ifdef __CUDA_ARCH__
  const float reciprocal = __fdividef(1.0f, d), q = n * reciprocal;
  return __fmaf_rn(reciprocal, __fmaf_rn(-q, d, n), q);
#else
  return n / d;
#endif
}
FN bool signbit(float x) { return bits_as<int32_t>(x) < 0; }
FN bool signbit(double x) { return bits_as<int64_t>(x) < 0; }
FN bool isnan(float x) { return x != x; }
FN bool isnan(double x) { return x != x; }
FN bool isinf(float x) { return abs(x) == static_cast<float>(kInf); }
FN bool isinf(double x) { return abs(x) == kInf; }
// The bits of |x|, which are ordered as |x| is, with infinity and NaN above all numbers.
FN uint32_t magnitude(float x) { return bits_as<uint32_t>(x) & 0x7fffffffu; }
FN uint64_t magnitude(double x) { return bits_as<uint64_t>(x) & 0x7fffffffffffffffu; }

// A real number is its own conjugate; Tensor and Complex have overloads.
FN float conj(float x) { return x; }
FN double conj(double x) { return x; }
template <class T>
  requires(is_integer<T> || same_type<T, bool>)
FN T conj(T x) {
  return x;
}

// ---- exp and log ----
// x = n ln2 + r with |r| <= ln2/2; exp(x) = 2^n exp(r). 2^n is applied in two steps, so that
// subnormal results and the last powers before overflow come out right. Adding 1.5 * 2^23 rounds to
// an integer and leaves it in the low bits.
struct FloatReduced {
  float r, p;  // the remainder, and exp(r) - 1
  int32_t n;
};
FN FloatReduced exp_reduce(float x) {
  float c = x < -104.0f ? -104.0f : x;
  c = c > 89.0f ? 89.0f : c;
  const float shifted = c * 1.44269504088896340736f + 12582912.0f;
  const auto n = static_cast<int32_t>(bits_as<uint32_t>(shifted) - 0x4b400000u);
  const float k = shifted - 12582912.0f;
  const float r = (c - k * 0.693145751953125f) - k * 1.42860682031e-6f;
  float q = 1.98910095963e-4f;
  q = q * r + 1.39336669e-3f;
  q = q * r + 8.33331090857e-3f;
  q = q * r + 4.16664647730e-2f;
  q = q * r + 1.66666666816e-1f;
  q = q * r + 0.500000001348f;
  return {r, q * (r * r) + r, n};
}
FN float pow2i(int32_t n, float) { return bits_as<float>(static_cast<uint32_t>(n + 127) << 23); }
// 2 exp(r), and n - 1, of a float or of a vector of them. All exponentials below share it, so that
// they agree to the bit where their ranges overlap; max 0.87 ulp with FMA instructions, 1.1
// without.
template <class F, class U> FN F exp_power(F x, U& n) {
  const F shifted = x * 1.44269504088896340736f + 12582912.0f, k = shifted - 12582912.0f;
  const F r = (x - k * 0.693145751953125f) - k * 1.42860682031e-6f;
  n = bits_as<U>(shifted) - 0x4b400001u;
  F q = r * 2.7629216e-3f + 1.67374238e-2f;
  q = q * r + 8.3336778e-2f;
  q = q * r + 3.33330423e-1f;
  q = q * r + 0.99999988f;
  q = q * r + 2.0f;
  return q * r + 2.0f;
}
FN float exp(float x) {
  float c = x < -104.0f ? -104.0f : x;
  c = c > 89.0f ? 89.0f : c;
  uint32_t bits;
  const float q = exp_power(c, bits);
  const auto n = static_cast<int32_t>(bits), half = n >> 1;
  return q * pow2i(half, 0.0f) * pow2i(n - half, 0.0f);
}
// For -86 <= x < 88.7228394 only: 2^n goes straight to the exponent.
FN float exp_easy(float x) {
  uint32_t n;
  const float q = exp_power(x, n);
  return bits_as<float>(bits_as<uint32_t>(q) + (n << 23));
}

struct DoubleReduced {
  double r, p;
  int64_t n;
};
FN double exp_rest(double r) {  // exp(r) - 1 for |r| <= ln2/2
  double q = 2.51004037165766914e-8;
  q = q * r + 2.76201121395723645e-7;
  q = q * r + 2.75572684216826123e-6;
  q = q * r + 2.48015212461314944e-5;
  q = q * r + 1.98412698630782798e-4;
  q = q * r + 1.38888889172457876e-3;
  q = q * r + 8.33333333333005689e-3;
  q = q * r + 4.16666666666240636e-2;
  q = q * r + 1.66666666666666675e-1;
  q = q * r + 0.5;
  return q * (r * r) + r;
}
FN DoubleReduced exp_reduce(double x, double most = 710.0) {
  double c = x < -746.0 ? -746.0 : x;
  c = c > most ? most : c;
  const double shifted = c * 1.44269504088896340736 + 0x1.8p52;
  const auto n = static_cast<int64_t>(bits_as<uint64_t>(shifted) - 0x4338000000000000u);
  const double k = shifted - 0x1.8p52;
  const double r = (c - k * 0x1.62e42feep-1) - k * 0x1.a39ef35793c76p-33;
  return {r, exp_rest(r), n};
}
FN double pow2i(int64_t n, double) {
  return bits_as<double>((static_cast<uint64_t>(n) + 1023) << 52);
}
// n - half, also where n is what became of a NaN.
FN int64_t rest(int64_t n, int64_t half) {
  return static_cast<int64_t>(static_cast<uint64_t>(n) - static_cast<uint64_t>(half));
}
FN double exp(double x) {
  const DoubleReduced e = exp_reduce(x);
  // An arithmetic shift of 64 bits is no vector instruction before AVX-512: shift an unsigned
  // number instead.
  const auto half = static_cast<int64_t>((static_cast<uint64_t>(e.n) + 4096) >> 1) - 2048;
  return (e.p + 1.0) * pow2i(half, 0.0) * pow2i(rest(e.n, half), 0.0);
}

// Without subnormal results 2^n takes one step: 2 exp(r) times 2^(n - 1).
FN float exp_normal(float x) {  // for -86 <= x < 88.7228394, and NaN
  uint32_t n;
  const float q = exp_power(x, n);
  return q * pow2i(static_cast<int32_t>(n), 0.0f);
}
// 1 + exp(x)
FN float one_plus_exp(float x) {
  float c = x < -86.0f ? -86.0f : x;
  c = c > 88.72283f ? 88.72283f : c;
  return x > 88.72283f ? static_cast<float>(kInf) : 1.0f + exp_normal(c);
}
// exp(x) for x <= 0, where results below the normal numbers count as 0.
FN float exp_or_zero(float x) {
  uint32_t bits;
  const float q = exp_power(x < -1000.0f ? -1000.0f : x, bits);
  const auto n = static_cast<int32_t>(bits + 127u);
  return q * bits_as<float>(static_cast<uint32_t>(n > 0 ? n : 0) << 23);
}
FN double exp_or_zero(double x) { return exp(x); }
template <class T> FN T one_plus_exp(T x) { return T(1) + exp(x); }
template <class T> FN T one_plus_exp_easy(T x) { return one_plus_exp(x); }
FN float one_plus_exp_easy(float x) { return 1.0f + exp_easy(x); }

FN float expm1(float x) {
  const FloatReduced e = exp_reduce(x);
  const int32_t half = e.n >> 1;
  // 2^n may be above all numbers: half of it is taken out of the sum.
  const float a = pow2i(half, 0.0f), b = pow2i(e.n - half, 0.0f);
  const float v = (e.p * a + (a - pow2i(half - e.n, 0.0f))) * b;
  return x > 89.0f ? static_cast<float>(kInf) : (x == 0.0f ? x : v);
}
FN double expm1(double x) {
  const DoubleReduced e = exp_reduce(x);
  const auto half = static_cast<int64_t>((static_cast<uint64_t>(e.n) + 4096) >> 1) - 2048;
  const double a = pow2i(half, 0.0), b = pow2i(rest(e.n, half), 0.0);
  const double v = (e.p * a + (a - pow2i(rest(half, e.n), 0.0))) * b;
  return x > 710.0 ? kInf : (x == 0.0 ? x : v);
}

// x = 2^e m with m in [sqrt(1/2), sqrt(2)); log(m) from s = (m-1)/(m+1) as 2 atanh(s). Max 0.79
// ulp.
FN float log_of(float x, float more) {  // of a positive normal number; `more` is added to e
  const uint32_t u = bits_as<uint32_t>(x) - 0x3f3504f3u;
  const auto e = static_cast<float>(static_cast<int32_t>(u) >> 23) + more;
  const float f = bits_as<float>((u & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
  const float s = f / (2.0f + f), z = s * s, half = 0.5f * f * f;
  float q = 0.2335354248644f;
  q = q * z + 0.2854996428482f;
  q = q * z + 0.4000012946568f;
  q = q * z + 0.6666666654508f;
  return e * 0.693145751953125f + (f - (half - (s * (half + q * z) + e * 1.42860682031e-6f)));
}
FN float log(float x) {
  const bool tiny = x < 1.17549435e-38f;
  const float v = log_of(tiny ? x * 8388608.0f : x, tiny ? -23.0f : 0.0f);
  const float special =
      x == 0.0f ? -static_cast<float>(kInf) : (x > 0.0f ? x : static_cast<float>(kNan));
  return (x > 0.0f && x < static_cast<float>(kInf)) ? v : special;
}
FN float log_easy(float x) { return log_of(x, 0.0f); }  // for positive normal numbers only
struct DoubleLog {
  double e, m;  // log(x) = e log(2) + m
  double sum;   // m and e times the last bits of log(2)
};
FN DoubleLog log_parts(double x) {
  const bool tiny = x < 2.2250738585072014e-308;
  const uint64_t u = bits_as<uint64_t>(tiny ? x * 0x1p52 : x) - 0x3fe6a09e667f3bcdu;
  // The exponent as a double without a 64-bit conversion: u >> 52 sits in the low bits of 2^52 +
  // 2048 + e.
  const uint64_t biased = ((u >> 52) ^ 0x800) + 0x4330000000000000u;
  const double e = bits_as<double>(biased) - (0x1p52 + 2048.0) - (tiny ? 52.0 : 0.0);
  const double f = bits_as<double>((u & 0x000fffffffffffffu) + 0x3fe6a09e667f3bcdu) - 1.0;
  const double s = f / (2.0 + f), z = s * s, half = 0.5 * f * f;
  double q = 0.131149760967170383;
  q = q * z + 0.132660350372610508;
  q = q * z + 0.153863429743081531;
  q = q * z + 0.181817937222725056;
  q = q * z + 0.222222224098440379;
  q = q * z + 0.285714285707228267;
  q = q * z + 0.400000000000010103;
  q = q * z + 0.666666666666666664;
  const double part = s * (half + q * z);
  return {e, f - (half - part), f - (half - (part + e * 0x1.a39ef35793c76p-33))};
}
FN double log(double x) {
  const DoubleLog l = log_parts(x);
  const double v = l.e * 0x1.62e42feep-1 + l.sum;
  const double special = x == 0.0 ? -kInf : (x > 0.0 ? x : kNan);
  return (x > 0.0 && x < kInf) ? v : special;
}
// Other types have no easier range. (After all overloads: templates see those before them only.)
template <class T> FN T exp_easy(T x) { return exp(x); }
template <class T> FN T log_easy(T x) { return log(x); }
// log(1 + x) from log(u), u = 1 + x rounded, and the rounding error over u.
template <class T>
  requires is_float<T>
FN T log1p(T x) {
  const T u = T(1) + x;
  const T c = (x - (u - T(1))) / u;
  const T v = log(u) + ((x > T(-1) && u < T(kInf)) ? c : T(0));
  return x == T(0) ? x : v;
}

// ---- hyperbolic and logistic ----
FN double tanh(double x) {
  const double t = expm1(-2.0 * abs(x));
  return copysign(-t / (t + 2.0), x);
}
// t / (t + 2) with t = exp(2x) - 1 = 2^n (exp(2r) - 1) + (2^n - 1). Max 2.5 ulp.
FN float tanh(float x) {
  float c = x < -10.0f ? -10.0f : x;
  c = c > 10.0f ? 10.0f : c;
  const float shifted = c * 2.88539008f + 12582912.0f, k = shifted - 12582912.0f;
  const float r = (c - k * 0.3465728759765625f) - k * 7.1430341e-7f;
  float q = 8.89487364e-2f;
  q = q * r + 2.67715177e-1f;
  q = q * r + 6.66669678e-1f;
  q = q * r + 1.33332386f;
  q = q * r + 2.0f;
  const float p = q * (r * r) + (r + r);
  const float a = bits_as<float>((bits_as<uint32_t>(shifted) - 0x4b400000u + 127u) << 23);
  const float t = p * a + (a - 1.0f);
  return copysign(t / (t + 2.0f), x);
}
template <class T>
  requires is_float<T>
FN T sigmoid(T x) {
  return T(1) / one_plus_exp(-x);
}
template <class T> FN T sigmoid_easy(T x) { return sigmoid(x); }
FN float sigmoid_easy(float x) { return 1.0f / one_plus_exp_easy(-x); }  // |x| <= 86
// log(1 + t) for t from 0 to 1: 2 atanh(s) with s = t / (2 + t). Max 1 ulp.
FN float log1p_unit(float t) {
  const float s = t / (2.0f + t), z = s * s;
  float q = 0.24300939f;
  q = q * z + 0.21427657f;
  q = q * z + 0.28616884f;
  q = q * z + 0.39998877f;
  q = q * z + 0.66666675f;
  return t - s * (t - z * q);
}
FN double log1p_unit(double t) {
  const double u = 1.0 + t;
  return log(u) + (t - (u - 1.0)) / u;
}
// log(1 + exp(x)) without overflow.
template <class T>
  requires is_float<T>
FN T log1p_exp(T x) {
  return (x > T(0) ? x : T(0)) + log1p_unit(exp(-abs(x)));
}
// tanh(log(1 + exp(x))) is n / (n + 2) with n = exp(x) (exp(x) + 2); 1 from 20 on.
template <class T>
  requires is_float<T>
FN T tanh_log1p_exp(T x) {
  const T e = exp(x > T(20) ? T(20) : x), n = e * (e + T(2));
  return n / (n + T(2));
}

// ---- trigonometry ----
// |x| must be at most easy_angle: kernels look at a whole block first and take the library's
// functions where one is not.
template <class T> inline constexpr T easy_angle = same_type<T, float> ? T(8192) : T(1048576);

// x - k pi. Pieces of pi have exact products with k, an integer or half of one.
FN float less_pi(float x, float k) {
  const float near =
      ((x - k * 3.140625f) - k * 9.67502593994140625e-4f) - k * 1.5099067240953445434e-7f;
  return near - k * 5.12668830318e-12f;
}
// sin(x - k pi), negated where the lowest bit of n is 1. Max 1.9 ulp.
FN float sin_from(float x, float k, uint32_t n) {
  const float r = less_pi(x, k), z = r * r;
  float p = 2.60563118e-6f;
  p = p * z - 1.9809539e-4f;
  p = p * z + 8.33306543e-3f;
  p = p * z - 1.66666595e-1f;
  const float v = copysign(p * (z * r) + r, r);  // -0 stays
  return bits_as<float>(bits_as<uint32_t>(v) ^ (n << 31));
}
FN float sin(float x) {
  const float shifted = x * 0.318309886f + 12582912.0f;
  return sin_from(x, shifted - 12582912.0f, bits_as<uint32_t>(shifted));
}
FN float cos(float x) {
  const float shifted = (x * 0.318309886f - 0.5f) + 12582912.0f;
  return sin_from(x, (shifted - 12582912.0f) + 0.5f, bits_as<uint32_t>(shifted) + 1);
}

FN double sin_poly(double r, double z) {
  double p = 2.81145725434552076e-15;
  p = p * z - 7.64716373181981648e-13;
  p = p * z + 1.60590438368216146e-10;
  p = p * z - 2.50521083854417188e-8;
  p = p * z + 2.75573192239858907e-6;
  p = p * z - 1.98412698412698413e-4;
  p = p * z + 8.33333333333333333e-3;
  p = p * z - 1.66666666666666667e-1;
  return copysign(p * (z * r) + r, r);  // of -0 too
}
FN double cos_poly(double z) {
  double p = 4.77947733238738530e-14;
  p = p * z - 1.14707455977297247e-11;
  p = p * z + 2.08767569878680990e-9;
  p = p * z - 2.75573192239858907e-7;
  p = p * z + 2.48015873015873016e-5;
  p = p * z - 1.38888888888888889e-3;
  p = p * z + 4.16666666666666667e-2;
  return (p * z - 0.5) * z + 1.0;
}
// x - k pi/2, in pieces of pi/2 whose products with k are exact.
FN double less_half_pi(double x, double k) {
  return ((x - k * 0x1.921fb544p+0) - k * 0x1.0b4611a6p-34) - k * 0x1.3198a2e037073p-69;
}
// sin(x + quarter * pi/2)
FN double sin_shifted(double x, uint64_t quarter) {
  const double shifted = x * 0.636619772367581343 + 0x1.8p52, k = shifted - 0x1.8p52;
  const uint64_t n = bits_as<uint64_t>(shifted) + quarter;
  const double r = less_half_pi(x, k), z = r * r;
  const double v = (n & 1) ? cos_poly(z) : sin_poly(r, z);
  return bits_as<double>(bits_as<uint64_t>(v) ^ ((n & 2) << 62));
}
FN double sin(double x) { return sin_shifted(x, 0); }
FN double cos(double x) { return sin_shifted(x, 1); }

// ---- erf ----
// x plus x times a polynomial up to 0.9; from there 1 - 2^q with a polynomial for log2(erfc).
// Max 1.6 ulp.
FN float erf(float x) {
  const float z = x * x;
  float p = -6.09039682e-4f;
  p = p * z + 5.01197108e-3f;
  p = p * z - 2.67789157e-2f;
  p = p * z + 1.12821411e-1f;
  p = p * z - 3.76125233e-1f;
  p = p * z + 1.2837915e-1f;
  const float a = abs(x), t = a > 4.0f ? 4.0f : a;
  float q = 2.84473121e-4f;
  q = q * t - 4.40831005e-3f;
  q = q * t + 3.21390435e-2f;
  q = q * t - 1.50094183e-1f;
  q = q * t - 9.19082947e-1f;
  q = q * t - 1.6269987f;
  q = q * t - 2.5607075e-4f;
  const float shifted = q + 12582912.0f, r = q - (shifted - 12582912.0f);
  float e = 1.32763417e-3f;
  e = e * r + 9.67565538e-3f;
  e = e * r + 5.55071453e-2f;
  e = e * r + 2.40221176e-1f;
  e = e * r + 6.93146966e-1f;
  e = e * r + 1.00000007f;
  const float tail = bits_as<float>(bits_as<uint32_t>(e) + (bits_as<uint32_t>(shifted) << 23));
  return a > 0.9f ? copysign(1.0f - tail, x) : x * p + x;
}

// ---- the library's sine and cosine, for all angles ----
FN float library_sin(float x) { return ::sinf(x); }
FN double library_sin(double x) { return ::sin(x); }
FN float library_cos(float x) { return ::cosf(x); }
FN double library_cos(double x) { return ::cos(x); }

}  // namespace taeda::TAEDA_ISA
