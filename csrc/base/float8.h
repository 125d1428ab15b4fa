// 8-bit floating-point storage types: a sign, an exponent, and a fraction of two or three bits.
// Conversions round to nearest even.
#pragma once

#include <bit>
#include <cstdint>

namespace taeda {

// Meaning of the largest exponent's codes, and the result of overflow.
enum class Float8Kind : uint8_t {
  Ieee,         // infinities and nans; overflows to infinity
  Finite,       // one nan (of either sign), no infinities; overflows to the largest number
  UnsignedZero  // one nan where others have -0, no infinities; overflows to nan
};

template <int Fraction, int Bias, Float8Kind Kind> struct Float8 {
  uint8_t bits = 0;
  Float8() = default;
  constexpr Float8(float f) : bits(encode(f)) {}
  constexpr operator float() const { return decode(bits); }

 private:
  static constexpr uint32_t kNan = Kind == Float8Kind::UnsignedZero ? 0x80 : 0x7f;
  static constexpr uint32_t kInfinity = 0x7f >> Fraction << Fraction;  // where there is one
  static constexpr uint32_t kLargest = Kind == Float8Kind::Ieee     ? kInfinity - 1
                                       : Kind == Float8Kind::Finite ? 0x7e
                                                                    : 0x7f;

  static constexpr uint8_t encode(float f) {
    constexpr int drop = 23 - Fraction;
    constexpr uint32_t rebias = uint32_t(127 - Bias) << Fraction;
    constexpr uint32_t smallest_normal = uint32_t(127 + 1 - Bias) << 23;
    const uint32_t u = std::bit_cast<uint32_t>(f), magnitude = u & 0x7fffffff;
    const uint32_t sign = (u >> 24) & 0x80;
    if (magnitude > 0x7f800000)
      return static_cast<uint8_t>(Kind == Float8Kind::UnsignedZero ? kNan : sign | kNan);
    uint32_t code;
    if (magnitude < smallest_normal) {  // let float addition do the rounding
      constexpr uint32_t magic = uint32_t(127 + 1 - Bias + drop) << 23;
      code =
          std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + std::bit_cast<float>(magic)) -
          magic;
    } else {
      code = ((magnitude + ((1u << (drop - 1)) - 1) + ((magnitude >> drop) & 1)) >> drop) - rebias;
    }
    if (code > kLargest) {
      if (Kind == Float8Kind::UnsignedZero) return kNan;
      code = Kind == Float8Kind::Ieee ? kInfinity : kLargest;
    }
    if (Kind == Float8Kind::UnsignedZero && code == 0) return 0;
    return static_cast<uint8_t>(sign | code);
  }

  static constexpr float decode(uint32_t code) {
    const uint32_t sign = (code & 0x80) << 24, magnitude = code & 0x7f;
    const uint32_t exponent = magnitude >> Fraction, fraction = magnitude & ((1u << Fraction) - 1);
    if (Kind == Float8Kind::UnsignedZero && code == kNan)
      return std::bit_cast<float>(uint32_t(0x7fc00000));
    if (Kind != Float8Kind::UnsignedZero && magnitude > kLargest) {
      if (Kind == Float8Kind::Ieee && magnitude == kInfinity)
        return std::bit_cast<float>(sign | 0x7f800000);
      return std::bit_cast<float>(sign | 0x7fc00000);
    }
    if (exponent == 0) {
      const float unit = std::bit_cast<float>(uint32_t(127 + 1 - Bias - Fraction) << 23);
      const float value = static_cast<float>(fraction) * unit;
      return sign ? -value : value;
    }
    return std::bit_cast<float>(sign | (exponent + (127 - Bias)) << 23 |
                                fraction << (23 - Fraction));
  }
};

using Float8_e5m2 = Float8<2, 15, Float8Kind::Ieee>;
using Float8_e4m3fn = Float8<3, 7, Float8Kind::Finite>;
using Float8_e5m2fnuz = Float8<2, 16, Float8Kind::UnsignedZero>;
using Float8_e4m3fnuz = Float8<3, 8, Float8Kind::UnsignedZero>;

// A power of two, stored as its exponent: the scale of a block of numbers. It has no sign; ties
// round up.
struct Float8_e8m0fnu {
  uint8_t bits = 0;
  Float8_e8m0fnu() = default;
  constexpr Float8_e8m0fnu(float f) : bits(encode(f)) {}
  constexpr operator float() const {
    if (bits == 0xff) return std::bit_cast<float>(uint32_t(0x7fc00000));
    return std::bit_cast<float>(bits == 0 ? uint32_t(0x00400000) : uint32_t(bits) << 23);
  }

 private:
  static constexpr uint8_t encode(float f) {
    const uint32_t u = std::bit_cast<uint32_t>(f);
    const uint32_t exponent = (u >> 23) & 0xff;
    if (exponent == 0xff) return 0xff;
    if (exponent == 0) return (u & 0x7fffff) > 0x400000;  // 2^-127 has the code 0
    return static_cast<uint8_t>(exponent + ((u >> 22) & 1));
  }
};

}  // namespace taeda
