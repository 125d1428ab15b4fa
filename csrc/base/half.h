// float16 and bfloat16 storage types. Arithmetic converts to float and back, rounding to nearest
// even.
#pragma once

#include <bit>
#include <cstdint>

namespace taeda {

struct BFloat16 {
  uint16_t bits = 0;
  BFloat16() = default;
  constexpr BFloat16(float f) : bits(round(f)) {}
  constexpr operator float() const { return std::bit_cast<float>(uint32_t(bits) << 16); }

 private:
  static constexpr uint16_t round(float f) {
    uint32_t u = std::bit_cast<uint32_t>(f);
    if ((u & 0x7fffffff) > 0x7f800000) return 0x7fc0;
    return static_cast<uint16_t>((u + 0x7fff + ((u >> 16) & 1)) >> 16);
  }
};

struct Half {
  uint16_t bits = 0;
  Half() = default;
  constexpr Half(float f) : bits(from_float(f)) {}
  constexpr operator float() const { return to_float(bits); }

  static constexpr uint16_t from_float(float f) {
    uint32_t u = std::bit_cast<uint32_t>(f);
    uint32_t sign = (u >> 16) & 0x8000;
    u &= 0x7fffffff;
    if (u > 0x7f800000) return static_cast<uint16_t>(sign | 0x7e00);
    if (u >= 0x477ff000) return static_cast<uint16_t>(sign | 0x7c00);
    if (u < 0x38800000) {  // subnormal half: let float addition do the rounding
      float magic = std::bit_cast<float>(uint32_t(0x3f000000));
      return static_cast<uint16_t>(
          sign | (std::bit_cast<uint32_t>(std::bit_cast<float>(u) + magic) - 0x3f000000));
    }
    return static_cast<uint16_t>(sign | ((u - 0x38000000 + 0xfff + ((u >> 13) & 1)) >> 13));
  }
  static constexpr float to_float(uint16_t h) {
    uint32_t sign = uint32_t(h & 0x8000) << 16, e = (h >> 10) & 31, m = h & 0x3ff;
    if (e == 31) return std::bit_cast<float>(sign | 0x7f800000 | (m << 13));
    if (e) return std::bit_cast<float>(sign | ((e + 112) << 23) | (m << 13));
    float v = static_cast<float>(m) * 0x1p-24f;
    return sign ? -v : v;
  }
};

}  // namespace taeda
