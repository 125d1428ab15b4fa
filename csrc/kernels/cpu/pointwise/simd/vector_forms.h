// Functions of float32 that are written for registers, where that gains at least 1.2 times over the
// loop that the compiler makes of the functor.
//
// Only for the files of this folder that are compiled for each instruction set.
#pragma once

#include "kernels/cpu/simd/vec.h"

namespace taeda::TAEDA_ISA {

// How a functor is computed on registers, kTogether of them at once.
template <class Op> struct VectorForm {
  static constexpr bool kExists = false;
};

struct Log;
struct Erf;
struct Gelu;
using Floats = cpu::simd::TAEDA_ISA::Vec<float>;
using Bits = cpu::simd::TAEDA_ISA::Vec<uint32_t>;

#if defined(__AVX512F__)

// By tables of 16 numbers that lie in registers: each lane takes its own from them. A polynomial
// gets shorter, as it holds in a sixteenth of the range only. (AVX2, where a table takes two
// registers, would lose by them.)
struct alignas(64) FloatTable {
  float at[16];

  FN Floats operator[](Bits index) const {  // by the low four bits of each lane
    return (Floats)_mm512_maskz_permutexvar_ps(0xffff, (__m512i)index, _mm512_load_ps(at));
  }
};

// log(2^e m) = e log(2) - log(c) + log(c m), with c near 1 / m for each sixteenth of m. The first
// parts of both logarithms have few bits, so that their sum is exact. Max 0.8 ulp.
template <> struct VectorForm<Log> {
  static constexpr bool kExists = true;
  static constexpr int kTogether = 1;
  static constexpr FloatTable c = {{1.0f, 0.914285719f, 0.864864886f, 0.820512831f, 0.780487776f,
                                    0.744186044f, 0.711111128f, 0.680851042f, 0.653061211f,
                                    0.627451003f, 0.603773594f, 0.581818163f, 0.561403513f,
                                    0.542372882f, 0.524590135f, 0.5f}};
  static constexpr FloatTable high = {{0.0f, 0.0896148682f, 0.145187378f, 0.1978302f, 0.247833252f,
                                       0.295471191f, 0.340927124f, 0.384414673f, 0.426086426f,
                                       0.466094971f, 0.504562378f, 0.541595459f, 0.577316284f,
                                       0.611801147f, 0.645141602f, 0.693145752f}};
  static constexpr FloatTable low = {
      {0.0f, -2.71506224e-06f, -5.3922995e-06f, -4.46990407e-06f, 2.94920437e-06f, -6.97478708e-06f,
       -5.61267257e-07f, -2.9422763e-06f, -2.00998124e-06f, -5.27616885e-06f, -6.38207848e-06f,
       1.85511328e-06f, -9.26595419e-07f, 3.91782407e-07f, -3.58430952e-06f, 1.42860682e-06f}};
  FN static Floats at(Floats x) {
    // Of 0, infinity and NaN the exponent is what their logarithm is; negative numbers give NaN.
    const auto e = (Floats)_mm512_maskz_getexp_ps(0xffff, (__m512)x);
    const auto m =
        (Floats)_mm512_maskz_getmant_ps(0xffff, (__m512)x, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_nan);
    const Bits j = (Bits)m >> 19;
    const Floats r = m * c[j] - 1.0f;
    const Floats h = e * 0.693145751953125f + high[j];
    const Floats l = e * 1.42860682e-06f + low[j];
    Floats q = r * 0.188557491f - 0.250066936f;
    q = q * r + 0.33334446f;
    q = q * r - 0.5f;
    return h + (r + (r * r * q + l));
  }
};

// f(|x|) of an odd function f, with the sign of x, from a = |x|: by polynomials in the distance of
// a to the nearest multiple of `width`, which has few bits. c has their coefficients, the highest
// power first. UnitSlope: the first polynomial lacks a itself, which comes to it unrounded.
template <bool UnitSlope, int N>
FN Floats odd_in_pieces(const FloatTable (&c)[N], float width, Floats a, Floats x) {
  const Floats shifted = a * (1.0f / width) + 12582912.0f;  // the nearest piece in the low bits
  const Floats r = a - (shifted - 12582912.0f) * width;
  const Bits piece = (Bits)shifted;
  Floats f = c[0][piece];
#pragma GCC unroll 8
  for (int i = 1; i < N - 1; ++i) f = f * r + c[i][piece];
  Floats first = c[N - 1][piece];
  if constexpr (UnitSlope) first = cpu::simd::TAEDA_ISA::max(r, first);  // in the first piece only
  return (Floats)((Bits)(f * r + first) | ((Bits)x & 0x80000000u));
}

template <> struct VectorForm<Erf> {
  static constexpr bool kExists = true;
  static constexpr int kTogether = 1;
  static constexpr float width = 17.0f / 64, limit = 4.0f;  // erf is 1 from there on
  static constexpr FloatTable c[] = {
      {{0.0f, -0.0419249497f, -0.0483021736f, -0.0206953194f, 0.0105126612f, 0.0222008526f,
        0.0157174245f, 0.00469606603f, -0.00177879445f, -0.0030797089f, -0.00209743227f,
        -0.000979372067f, -0.000350346236f, -0.000100358666f, -2.35555817e-05f, -4.5930592e-06f}},
      {{0.112129807f, 0.075713098f, -0.00169181614f, -0.059355557f, -0.0658941939f, -0.0368686169f,
        -0.00514721591f, 0.0108948927f, 0.0124375857f, 0.00807198789f, 0.00383164245f,
        0.00143093406f, 0.000434371323f, 0.000109118278f, 2.29381076e-05f, 4.06522895e-06f}},
      {{0.0f, 0.133081734f, 0.183494806f, 0.137389451f, 0.0479603559f, -0.0225919653f,
        -0.0491672941f, -0.0431400687f, -0.0263612047f, -0.0124918269f, -0.00478743296f,
        -0.00151589268f, -0.000401588739f, -8.97367354e-05f, -1.70086187e-05f, -2.74561262e-06f}},
      {{-0.3761217f, -0.301038116f, -0.123539746f, 0.0538153611f, 0.15298973f, 0.162938148f,
        0.121027246f, 0.070111379f, 0.0330379158f, 0.0129298242f, 0.00425329572f, 0.00118496025f,
        0.000281033193f, 5.69475196e-05f, 9.88619649e-06f, 1.47338085e-06f}},
      {{0.0f, -0.279306889f, -0.452048004f, -0.476501226f, -0.38770932f, -0.256823659f,
        -0.141824186f, -0.06612207f, -0.0262242425f, -0.00889068749f, -0.00258516357f,
        -0.00064623612f, -0.000139125143f, -2.58290838e-05f, -4.13952375e-06f, -5.73173111e-07f}},
      {{0.128379166f, 1.05150831f, 0.850913882f, 0.59796232f, 0.364902914f, 0.193373099f,
        0.088987723f, 0.0355614461f, 0.0123408195f, 0.00371898082f, 0.000973238493f,
        0.000221171984f, 4.36472146e-05f, 7.47995182e-06f, 1.11315876e-06f, 1.43857264e-07f}},
      {{0.0f, 0.292823255f, 0.547528446f, 0.740236998f, 0.867058277f, 0.939653337f, 0.975797713f,
        0.99145031f, 0.997345984f, 0.999277413f, 0.999827683f, 0.999964058f, 0.999993443f,
        0.999998987f, 0.999999881f, 1.0f}},
  };
  FN static Floats at(Floats x) {
    const auto a = (Floats)((Bits)x & 0x7fffffffu);
    return odd_in_pieces<true>(c, width, cpu::simd::TAEDA_ISA::min(Floats{} + limit, a), x);
  }
};

// x (1/2 + f(x)), with f(x) = P(X <= x) - 1/2.
template <> struct VectorForm<Gelu> {
  static constexpr bool kExists = true;
  static constexpr int kTogether = 1;
  static constexpr float width = 3.0f / 8, limit = 5.6f;
  static constexpr FloatTable c[] = {
      {{0.0099111842f, 0.00670827413f, -0.000129060209f, -0.00523863174f, -0.00583940698f,
        -0.00328594237f, -0.00047567318f, 0.000956879696f, 0.00110349746f, 0.000720158278f,
        0.000343544991f, 0.000128940417f, 3.93466507e-05f, 9.93947106e-06f, 2.10185158e-06f,
        3.74867057e-07f}},
      {{0.0f, 0.0164752565f, 0.022778498f, 0.0171564873f, 0.00610545743f, -0.00269760168f,
        -0.00608494179f, -0.00539880386f, -0.00332963839f, -0.00159261597f, -0.000616452249f,
        -0.00019729558f, -5.28762648e-05f, -1.19640499e-05f, -2.29834791e-06f, -3.76394013e-07f}},
      {{-0.0664895549f, -0.0532600358f, -0.0219581742f, 0.00937937573f, 0.0269824453f,
        0.0288400669f, 0.021490572f, 0.0124923876f, 0.00590919005f, 0.00232250546f, 0.000767609279f,
        0.000214969448f, 5.12744264e-05f, 1.04544961e-05f, 1.82708959e-06f, 2.7426313e-07f}},
      {{0.0f, -0.0697210059f, -0.112924434f, -0.119179703f, -0.0971386507f, -0.064488098f,
        -0.0357077979f, -0.0167006962f, -0.00664769718f, -0.00226300396f, -0.000661024824f,
        -0.000166071419f, -3.59478508e-05f, -6.713125e-06f, -1.08266431e-06f, -1.50914261e-07f}},
      {{0.398942292f, 0.37185508f, 0.301137447f, 0.211876646f, 0.1295176f, 0.0687862784f,
        0.0317396522f, 0.0127241816f, 0.00443184841f, 0.00134111883f, 0.000352595729f,
        8.05404779e-05f, 1.59837546e-05f, 2.75594698e-06f, 4.12848294e-07f, 5.37325917e-08f}},
      {{0.0f, 0.146169767f, 0.27337265f, 0.369705468f, 0.43319279f, 0.469603628f, 0.487775534f,
        0.495667547f, 0.498650104f, 0.499630928f, 0.499911577f, 0.499981463f, 0.499996603f,
        0.499999464f, 0.499999911f, 0.5f}},
  };
  FN static Floats at(Floats x) {
    const auto a = (Floats)((Bits)x & 0x7fffffffu);
    const auto zero = (Floats)((Bits)x & 0x80000000u);  // with the sign of x
    const Floats v = x * (0.5f + odd_in_pieces<false>(c, width, a, x));
    return a >= limit ? (x > 0.0f ? x : zero) : v;
  }
};

#elif defined(__SSE2__) && !defined(__AVX2__)

// What the functors do, of several registers in turns: without FMA instructions their chains of
// multiplications and additions are so long that one register after the other waits for them.
template <int N, class F> FN void each(const F& f) {
#pragma GCC unroll 4
  for (int k = 0; k < N; ++k) f(k);
}
// p = p v + c for the coefficients c
template <int N> FN void horner(Floats (&p)[N], const Floats (&v)[N], auto... c) {
  (each<N>([&](int k) { p[k] = p[k] * v[k] + c; }), ...);
}

template <> struct VectorForm<Gelu> {
  static constexpr bool kExists = true;
  static constexpr int kTogether = 4;
  template <int N> FN static void at(Floats (&x)[N]) {
    Floats c[N], z[N], p[N], q[N];
    each<N>([&](int k) {
      c[k] = (Floats)_mm_max_ps(_mm_set1_ps(-5.6f), (__m128)x[k]);  // NaN stays
      c[k] = (Floats)_mm_min_ps(_mm_set1_ps(5.6f), (__m128)c[k]);
      z[k] = c[k] * c[k];
      p[k] = z[k] * 2.2297433e-8f + 6.289794e-6f;
      q[k] = z[k] * 1.1796589e-6f + 7.3344505e-5f;
    });
    horner(p, z, 1.6893001e-4f, 4.677355e-3f, 3.392909e-2f, 3.9894226e-1f);
    horner(q, z, 1.8854961e-3f, 2.8677594e-2f, 2.5171393e-1f, 1.0f);
    each<N>([&](int k) {
      const Floats v = x[k] * (0.5f + c[k] * p[k] / q[k]);
      x[k] = x[k] < -5.6f ? -Floats{} : v;
    });
  }
};

template <> struct VectorForm<Erf> {
  static constexpr bool kExists = true;
  static constexpr int kTogether = 4;
  template <int N> FN static void at(Floats (&x)[N]) {
    Floats near[N], a[N], q[N], shifted[N];
    each<N>([&](int k) {
      a[k] = (Floats)((Bits)x[k] & 0x7fffffffu);
      a[k] = (Floats)_mm_min_ps(_mm_set1_ps(4.0f), (__m128)a[k]);  // NaN stays
      q[k] = a[k] * 2.84473121e-4f - 4.40831005e-3f;
    });
    horner(q, a, 3.21390435e-2f, -1.50094183e-1f, -9.19082947e-1f, -1.6269987f, -2.5607075e-4f);
    Floats e[N];
    each<N>([&](int k) {
      shifted[k] = q[k] + 12582912.0f;
      q[k] -= shifted[k] - 12582912.0f;
      e[k] = q[k] * 1.32763417e-3f + 9.67565538e-3f;
    });
    horner(e, q, 5.55071453e-2f, 2.40221176e-1f, 6.93146966e-1f, 1.00000007f);
    Floats z[N];
    each<N>([&](int k) {
      z[k] = x[k] * x[k];
      near[k] = z[k] * -6.09039682e-4f + 5.01197108e-3f;
    });
    horner(near, z, -2.67789157e-2f, 1.12821411e-1f, -3.76125233e-1f, 1.2837915e-1f);
    each<N>([&](int k) {
      const Floats far = 1.0f - (Floats)((Bits)e[k] + ((Bits)shifted[k] << 23));
      const auto signed_far = (Floats)((Bits)far | ((Bits)x[k] & 0x80000000u));
      x[k] = a[k] > 0.9f ? signed_far : x[k] * near[k] + x[k];
    });
  }
};

#endif

template <class Op> struct VectorLoop {
  static constexpr int64_t kLanes = cpu::simd::TAEDA_ISA::kLanes<float>;
  static void loop(void* out, const void* const* in, int64_t n) {
    run(n, static_cast<float*>(out), static_cast<const float*>(in[0]));
  }
  FN static void run(int64_t n, float* y, const float* x) {
    constexpr int together = VectorForm<Op>::kTogether;
    int64_t i = 0;
#pragma GCC unroll 4
    for (; i + together * kLanes <= n; i += together * kLanes) some<together>(y + i, x + i);
    for (; together > 1 && i + kLanes <= n; i += kLanes) some<1>(y + i, x + i);
    if (i == n) return;
    const cpu::simd::TAEDA_ISA::FirstLanes<float> tail(n - i);
    Floats v[1] = {tail.load(x + i)};
    apply(v);
    tail.store(y + i, v[0]);
  }

 private:
  template <int N> FN static void some(float* y, const float* x) {
    Floats v[N];
    for (int k = 0; k < N; ++k) v[k] = cpu::simd::TAEDA_ISA::load(x + k * kLanes);
    apply(v);
    for (int k = 0; k < N; ++k) cpu::simd::TAEDA_ISA::store(y + k * kLanes, v[k]);
  }
  template <int N> FN static void apply(Floats (&v)[N]) {
    if constexpr (VectorForm<Op>::kTogether == 1) v[0] = VectorForm<Op>::at(v[0]);
    else VectorForm<Op>::at(v);
  }
};

}  // namespace taeda::TAEDA_ISA
