#include "kernels/cpu/random/simd/random.h"

#include <bit>
#include <cmath>
#include <cstdint>

#include "kernels/cpu/simd/vec.h"
#include "kernels/functors/scalar.h"

// Compiled once per instruction set: everything here lives in that set's namespace.
namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

// Normal floats by the method of Box and Muller. The steps below are part of the random stream:
// another order of operations changes last bits of what randn returns. PyTorch has vector code for
// x86-64 alone, with polynomials of its own; elsewhere its numbers are the C library's.
#if defined(__x86_64__)
// Natural logarithm of a positive normal float: the polynomial of Cephes' logf, with fused steps.
float log_of(float x) {
  uint32_t bits = std::bit_cast<uint32_t>(x);
  float e = static_cast<float>(static_cast<int32_t>(bits >> 23) - 126);
  x = std::bit_cast<float>((bits & 0x807fffffu) | 0x3f000000u);
  const bool below = x < 0.707106781186547524f;
  const float again = below ? x : 0.0f;
  x = (x - 1.0f) + again;
  e = below ? e - 1.0f : e;
  const float z = x * x;
  float y = 7.0376836292e-2f;
  y = std::fma(y, x, -1.1514610310e-1f);
  y = std::fma(y, x, 1.1676998740e-1f);
  y = std::fma(y, x, -1.2420140846e-1f);
  y = std::fma(y, x, 1.4249322787e-1f);
  y = std::fma(y, x, -1.6668057665e-1f);
  y = std::fma(y, x, 2.0000714765e-1f);
  y = std::fma(y, x, -2.4999993993e-1f);
  y = std::fma(y, x, 3.3333331174e-1f);
  y = y * x;
  y = std::fma(y, z, e * -2.12194440e-4f);
  y = std::fma(-z, 0.5f, y);
  return std::fma(e, 0.693359375f, x + y);
}

// Sine and cosine of an angle in [0, 2 pi], by Cephes' reduction to an octant.
void sin_cos(float x, float& sine, float& cosine) {
  int32_t octant = static_cast<int32_t>(x * 1.27323954473516f);
  octant = (octant + 1) & ~1;
  const float n = static_cast<float>(octant);
  x = std::fma(n, -0.78515625f, x);
  x = std::fma(n, -2.4187564849853515625e-4f, x);
  x = std::fma(n, -3.77489497744594108e-8f, x);
  const float z = x * x;
  float c = 2.443315711809948e-5f;
  c = std::fma(c, z, -1.388731625493765e-3f);
  c = std::fma(c, z, 4.166664568298827e-2f);
  c = c * z;
  c = std::fma(c, z, -(z * 0.5f)) + 1.0f;
  float s = -1.9515295891e-4f;
  s = std::fma(s, z, 8.3321608736e-3f);
  s = std::fma(s, z, -1.6666654611e-1f);
  s = s * z;
  s = std::fma(s, x, x);
  const bool swap = (octant & 2) != 0;
  sine = swap ? c : s;
  cosine = swap ? s : c;
  sine = (octant & 4) != 0 ? -sine : sine;
  cosine = ((octant - 2) & 4) == 0 ? -cosine : cosine;
}
// Of a part of a turn in [0, 1).
void sin_cos_of_turn(float turn, float& sine, float& cosine) {
  sin_cos(6.28318530717958647692f * turn, sine, cosine);
}
#else
float log_of(float x) { return std::log(x); }
void sin_cos_of_turn(float turn, float& sine, float& cosine) {
  const auto angle = static_cast<float>(6.28318530717958647692 * static_cast<double>(turn));
  sine = std::sin(angle);
  cosine = std::cos(angle);
}
#endif

// What Engine::temper does, here for every instruction set.
template <class U> FN U temper(U y) {
  y ^= y >> 11;
  y ^= (y << 7) & 0x9d2c5680u;
  y ^= (y << 15) & 0xefc60000u;
  return y ^ (y >> 18);
}

void uniform_float(const uint32_t* bits, float* out, int64_t n, float low, float range) {
  for (int64_t i = 0; i < n; ++i) {
    const float u =
        static_cast<float>(static_cast<int32_t>(temper(bits[i]) & 0xffffffu)) * 0x1p-24f;
    out[i] = std::fma(u, range, low);
  }
}

void uniform_double(const uint32_t* bits, double* out, int64_t n, double low, double range) {
  for (int64_t i = 0; i < n; ++i) {
    const uint64_t word =
        (static_cast<uint64_t>(temper(bits[2 * i])) << 32) | temper(bits[2 * i + 1]);
    const double u = static_cast<double>(static_cast<int64_t>(word & ((1ULL << 53) - 1))) * 0x1p-53;
    out[i] = std::fma(u, range, low);
  }
}

// By the quotient in float64, rounded to a whole number: all steps after it are exact. Numbers
// below 2^32 are the low bits of 2^52 and more.
void remainder(const uint32_t* bits, uint32_t* out, int64_t n, uint32_t range) {
  const auto by = static_cast<double>(range), inverse = 1.0 / by;
  for (int64_t i = 0; i < n; ++i) {
    const uint64_t word = temper(bits[i]);
    const double x = std::bit_cast<double>(0x4330000000000000u | word) - 0x1p52;
    const double quotient = (x * inverse + 0x1p52) - 0x1p52, rest = x - quotient * by;
    const double above = rest < 0.0 ? rest + by : rest;
    out[i] = static_cast<uint32_t>(std::bit_cast<uint64_t>(above + 0x1p52));
  }
}

void log(double* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) x[i] = taeda::TAEDA_ISA::log(x[i]);
}

void normal_float(float* data, int64_t blocks, float mean, float std) {
  for (int64_t b = 0; b < blocks; ++b, data += 16) {
    float first[8], second[8];
    for (int j = 0; j < 8; ++j) {
      const float radius = std::sqrt(-2.0f * log_of(1.0f - data[j]));
      float sine, cosine;
      sin_cos_of_turn(data[j + 8], sine, cosine);
      first[j] = std::fma(radius * cosine, std, mean);
      second[j] = std::fma(radius * sine, std, mean);
    }
    for (int j = 0; j < 8; ++j) data[j] = first[j];
    for (int j = 0; j < 8; ++j) data[j + 8] = second[j];
  }
}

void normal_double(double* data, int64_t blocks, double mean, double std) {
  for (int64_t b = 0; b < blocks; ++b, data += 16) {
    for (int j = 0; j < 8; ++j) {
      const double radius = std::sqrt(-2.0 * std::log(1.0 - data[j]));
      const double theta = 6.28318530717958647692 * data[j + 8];
      data[j] = std::fma(radius * std::cos(theta), std, mean);
      data[j + 8] = std::fma(radius * std::sin(theta), std, mean);
    }
  }
}

// As two halves: the first word's low 21 bits come first. Where they are equal, which is one time
// in two million, the second word decides.
void bernoulli(const uint32_t* bits, bool* keep, int64_t n, uint64_t limit) {
  const auto high = static_cast<int32_t>(limit >> 32);
  const auto low = static_cast<uint32_t>(limit);
  constexpr int64_t block = 256;
  int32_t first[block];
  for (int64_t begin = 0; begin < n; begin += block, bits += 2 * block) {
    const int64_t m = n - begin < block ? n - begin : block;
    bool* out = keep + begin;
    int32_t equal = 0;
    for (int64_t i = 0; i < m; ++i) first[i] = static_cast<int32_t>(bits[2 * i]);
    for (int64_t i = 0; i < m; ++i) {
      first[i] = static_cast<int32_t>(temper(static_cast<uint32_t>(first[i])) & 0x1fffffu);
      equal |= first[i] == high;
    }
    for (int64_t i = 0; i < m; ++i) out[i] = first[i] < high;
    for (int64_t i = 0; equal && i < m; ++i)
      out[i] |= (first[i] == high) & (temper(bits[2 * i + 1]) < low);
  }
}

template <class T> void scale_kept(const T* x, const bool* keep, T scale, T* y, int64_t n) {
  const auto* kept = reinterpret_cast<const uint8_t*>(keep);
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * (kept[i] ? scale : T(0));
}

// bernoulli and scale_kept at once in registers. Returns whether they must be called after all,
// because a second word decides.
bool drop_block(const uint32_t* bits, int32_t high, const float* x, float scale, bool* keep,
                float* y, int64_t n) {
  constexpr int64_t lanes = kLanes<float>, ahead = 512;
  using Words = Vec<uint32_t>;
  using Ints = Vec<int32_t>;
  const Ints factor = (Ints)broadcast_to(scale);
  auto* kept = reinterpret_cast<uint8_t*>(keep);
  Ints equal{};
  for (int64_t i = 0; i < n; i += lanes) {
    const Words w = even_lanes(load(bits + 2 * i), load(bits + 2 * i + lanes));
    const Ints first = (Ints)(temper(w) & 0x1fffffu), below = first < high;
    equal |= first == high;
    prefetch<3>(x + i + ahead);
    __builtin_prefetch(y + i + ahead, 1);
    store(kept + i, convert<uint8_t>(below & 1));
    store(y + i, load(x + i) * (Vec<float>)(below & factor));
  }
  return reduce(equal, [](auto a, auto b) { return a | b; }) != 0;
}

void dropout_float(const uint32_t* bits, uint64_t limit, const float* x, float scale, bool* keep,
                   float* y, int64_t n) {
  constexpr int64_t block = 256;
  for (int64_t i = 0; i < n; i += block) {
    const int64_t m = n - i < block ? n - i : block;
    const auto high = static_cast<int32_t>(limit >> 32);
    if (m == block && !drop_block(bits + 2 * i, high, x + i, scale, keep + i, y + i, m)) continue;
    bernoulli(bits + 2 * i, keep + i, m, limit);
    scale_kept(x + i, keep + i, scale, y + i, m);
  }
}

}  // namespace

extern const RandomKernels random_kernels = {{uniform_float, normal_float, scale_kept<float>},
                                             {uniform_double, normal_double, scale_kept<double>},
                                             remainder,
                                             log,
                                             bernoulli,
                                             dropout_float};

}  // namespace taeda::cpu::simd::TAEDA_ISA
