// Odd functions f of float32, and what is made of them, by sixteen polynomials in |x|. A register
// of AVX-512 holds one coefficient of all, from which each lane takes its own: that halves the
// multiplications of one formula for the whole range.
//
// Only for the files of this folder that are compiled for each instruction set.
#pragma once

#include "kernels/cpu/pointwise/simd/math_avx512.h"

namespace taeda::TAEDA_ISA {

#if defined(__AVX512F__)

// The polynomials c, the highest power first, give f(|x|) from the distance of |x| to the nearest
// multiple of `width`, which has few bits, up to `limit`, which is below 15.5 widths. From there on
// f is what it is there (kLevel); or else value is what is made of f(x), and beyond the same from
// the limit on. kUnitSlope: the first polynomial lacks |x| itself, which comes to it unrounded.
template <class Op> struct Pieces {
  static constexpr bool kExist = false;
};

struct Erf;
struct Tanh;
struct Gelu;

template <> struct Pieces<Erf> {
  static constexpr bool kExist = true, kUnitSlope = true, kLevel = true;
  static constexpr float width = 17.0f / 64, limit = 4.0f;
  static constexpr LaneFloats c[] = {
      {0.0f, -0.0419249497f, -0.0483021736f, -0.0206953194f, 0.0105126612f, 0.0222008526f,
       0.0157174245f, 0.00469606603f, -0.00177879445f, -0.0030797089f, -0.00209743227f,
       -0.000979372067f, -0.000350346236f, -0.000100358666f, -2.35555817e-05f, -4.5930592e-06f},
      {0.112129807f, 0.075713098f, -0.00169181614f, -0.059355557f, -0.0658941939f, -0.0368686169f,
       -0.00514721591f, 0.0108948927f, 0.0124375857f, 0.00807198789f, 0.00383164245f,
       0.00143093406f, 0.000434371323f, 0.000109118278f, 2.29381076e-05f, 4.06522895e-06f},
      {0.0f, 0.133081734f, 0.183494806f, 0.137389451f, 0.0479603559f, -0.0225919653f,
       -0.0491672941f, -0.0431400687f, -0.0263612047f, -0.0124918269f, -0.00478743296f,
       -0.00151589268f, -0.000401588739f, -8.97367354e-05f, -1.70086187e-05f, -2.74561262e-06f},
      {-0.3761217f, -0.301038116f, -0.123539746f, 0.0538153611f, 0.15298973f, 0.162938148f,
       0.121027246f, 0.070111379f, 0.0330379158f, 0.0129298242f, 0.00425329572f, 0.00118496025f,
       0.000281033193f, 5.69475196e-05f, 9.88619649e-06f, 1.47338085e-06f},
      {0.0f, -0.279306889f, -0.452048004f, -0.476501226f, -0.38770932f, -0.256823659f,
       -0.141824186f, -0.06612207f, -0.0262242425f, -0.00889068749f, -0.00258516357f,
       -0.00064623612f, -0.000139125143f, -2.58290838e-05f, -4.13952375e-06f, -5.73173111e-07f},
      {0.128379166f, 1.05150831f, 0.850913882f, 0.59796232f, 0.364902914f, 0.193373099f,
       0.088987723f, 0.0355614461f, 0.0123408195f, 0.00371898082f, 0.000973238493f, 0.000221171984f,
       4.36472146e-05f, 7.47995182e-06f, 1.11315876e-06f, 1.43857264e-07f},
      {0.0f, 0.292823255f, 0.547528446f, 0.740236998f, 0.867058277f, 0.939653337f, 0.975797713f,
       0.99145031f, 0.997345984f, 0.999277413f, 0.999827683f, 0.999964058f, 0.999993443f,
       0.999998987f, 0.999999881f, 1.0f},
  };
};

template <> struct Pieces<Tanh> {
  static constexpr bool kExist = true, kUnitSlope = true, kLevel = true;
  static constexpr float width = 19.0f / 32, limit = 8.95f;
  static constexpr LaneFloats c[] = {
      {-0.0502949692f, 0.0289084446f, -0.00358055322f, -0.00176335836f, 1.10417668e-05f,
       9.0453992e-05f, 3.6961912e-05f, 1.21834364e-05f, 3.80156575e-06f, 1.16742717e-06f,
       3.56791617e-07f, 1.08884748e-07f, 3.32144339e-08f, 1.01304307e-08f, 3.08966275e-09f, 0.0f},
      {0.0f, -0.0308019444f, 0.0167369936f, 0.00172162848f, -0.00075118948f, -0.000394355098f,
       -0.000137202471f, -4.34657923e-05f, -1.34084739e-05f, -4.1035446e-06f, -1.25283145e-06f,
       -3.82214921e-07f, -1.16580395e-07f, -3.55560736e-08f, -1.08440892e-08f, 0.0f},
      {0.133134022f, -0.0499489009f, -0.0252808817f, 0.00403080368f, 0.00341822323f, 0.00129081134f,
       0.000418192794f, 0.000129863824f, 3.98234261e-05f, 1.21656958e-05f, 3.71221086e-06f,
       1.13233557e-06f, 3.45359126e-07f, 1.05330095e-07f, 3.21240066e-08f, 0.0f},
      {0.0f, 0.146141574f, -0.00564013328f, -0.0229228605f, -0.0100076683f, -0.00337147876f,
       -0.0010591388f, -0.000325927627f, -9.96738454e-05f, -3.04240912e-05f, -9.28117606e-06f,
       -2.83081749e-06f, -8.63370929e-07f, -2.63315144e-07f, -8.03067621e-08f, 0.0f},
      {-0.333329827f, -0.0355929211f, 0.110631682f, 0.0600188076f, 0.021520026f, 0.00688909972f,
       0.00213217712f, 0.00065319537f, 0.000199485425f, 6.08649425e-05f, 1.85651152e-05f,
       5.66225935e-06f, 1.72691193e-06f, 5.2668031e-07f, 1.60628588e-07f, 0.0f},
      {0.0f, -0.381519526f, -0.25842458f, -0.101377547f, -0.0334320962f, -0.0104437349f,
       -0.00320859067f, -0.000980756013f, -0.00029931785f, -9.13057884e-05f, -2.78484586e-05f,
       -8.49346452e-06f, -2.59037552e-06f, -7.90021318e-07f, -2.40943024e-07f, 0.0f},
      {-9.60726965e-09f, 0.716350794f, 0.311428785f, 0.107297339f, 0.0340156481f, 0.0104989931f,
       0.00321375742f, 0.000981237041f, 0.000299362495f, 9.13099066e-05f, 2.78488315e-05f,
       8.49349544e-06f, 2.59037756e-06f, 7.90021204e-07f, 2.40942938e-07f, 0.0f},
      {0.0f, 0.53258729f, 0.829801917f, 0.944829464f, 0.982845008f, 0.994736671f, 0.998391807f,
       0.999509275f, 0.999850333f, 0.999954343f, 0.999986053f, 0.999995768f, 0.999998689f,
       0.999999583f, 0.999999881f, 1.0f},
  };
};

// f(x) = P(X <= x) - 1/2
template <> struct Pieces<Gelu> {
  static constexpr bool kExist = true, kUnitSlope = false, kLevel = false;
  static constexpr float width = 3.0f / 8, limit = 5.6f;
  FN static LaneFloats value(LaneFloats x, LaneFloats f) { return x * (0.5f + f); }
  FN static LaneFloats beyond(LaneFloats x) { return x > 0.0f ? x : with_sign(LaneFloats{}, x); }
  static constexpr LaneFloats c[] = {
      {0.0099111842f, 0.00670827413f, -0.000129060209f, -0.00523863174f, -0.00583940698f,
       -0.00328594237f, -0.00047567318f, 0.000956879696f, 0.00110349746f, 0.000720158278f,
       0.000343544991f, 0.000128940417f, 3.93466507e-05f, 9.93947106e-06f, 2.10185158e-06f,
       3.74867057e-07f},
      {0.0f, 0.0164752565f, 0.022778498f, 0.0171564873f, 0.00610545743f, -0.00269760168f,
       -0.00608494179f, -0.00539880386f, -0.00332963839f, -0.00159261597f, -0.000616452249f,
       -0.00019729558f, -5.28762648e-05f, -1.19640499e-05f, -2.29834791e-06f, -3.76394013e-07f},
      {-0.0664895549f, -0.0532600358f, -0.0219581742f, 0.00937937573f, 0.0269824453f, 0.0288400669f,
       0.021490572f, 0.0124923876f, 0.00590919005f, 0.00232250546f, 0.000767609279f,
       0.000214969448f, 5.12744264e-05f, 1.04544961e-05f, 1.82708959e-06f, 2.7426313e-07f},
      {0.0f, -0.0697210059f, -0.112924434f, -0.119179703f, -0.0971386507f, -0.064488098f,
       -0.0357077979f, -0.0167006962f, -0.00664769718f, -0.00226300396f, -0.000661024824f,
       -0.000166071419f, -3.59478508e-05f, -6.713125e-06f, -1.08266431e-06f, -1.50914261e-07f},
      {0.398942292f, 0.37185508f, 0.301137447f, 0.211876646f, 0.1295176f, 0.0687862784f,
       0.0317396522f, 0.0127241816f, 0.00443184841f, 0.00134111883f, 0.000352595729f,
       8.05404779e-05f, 1.59837546e-05f, 2.75594698e-06f, 4.12848294e-07f, 5.37325917e-08f},
      {0.0f, 0.146169767f, 0.27337265f, 0.369705468f, 0.43319279f, 0.469603628f, 0.487775534f,
       0.495667547f, 0.498650104f, 0.499630928f, 0.499911577f, 0.499981463f, 0.499996603f,
       0.499999464f, 0.499999911f, 0.5f},
  };
};

template <class Op>
  requires Pieces<Op>::kExist
struct Lanes<Op> {
  static constexpr bool kExist = true;
  FN static LaneFloats at(LaneFloats x) {
    using P = Pieces<Op>;
    using F = LaneFloats;
    F a = (F)((LaneBits)x & 0x7fffffffu);
    if constexpr (P::kLevel) a = smaller(F{} + P::limit, a);  // NaN stays
    const F shifted = a * (1.0f / P::width) + 12582912.0f;    // the nearest piece in the low bits
    const F r = a - (shifted - 12582912.0f) * P::width;
    F f{};
    constexpr int degree = sizeof P::c / sizeof(F) - 1;
#pragma GCC unroll 8
    for (int i = 0; i < degree; ++i) f = f * r + __builtin_shuffle(P::c[i], (LaneBits)shifted);
    F first = __builtin_shuffle(P::c[degree], (LaneBits)shifted);
    if constexpr (P::kUnitSlope) first = larger(r, first);  // in the first polynomial only
    f = with_sign(f * r + first, x);
    if constexpr (P::kLevel) return f;
    else return a >= P::limit ? P::beyond(x) : P::value(x, f);
  }
};

#endif

}  // namespace taeda::TAEDA_ISA
