#include "base/checksum.h"

#include <array>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

// Bytes are the coefficients of a polynomial over GF(2), lowest bit first, and the checksum is its
// remainder. "Reflected" means that bit 31 of a remainder is the coefficient of x^0.
//
// The fast way keeps a state of 4 blocks, a polynomial with the same remainder as all bytes so far:
// to advance it by the next 4 blocks of the message, multiply it by x^(their bits) modulo the
// polynomial. With carry-less multiplication this takes two instructions for 16 bytes. (V. Gopal et
// al., Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction, Intel, 2009.)

namespace taeda {
namespace {

constexpr uint32_t kPolynomial = 0xEDB88320u;

constexpr uint32_t times_x(uint32_t a) { return (a >> 1) ^ (a & 1 ? kPolynomial : 0); }

// Eight bytes per step: row k is the contribution of a byte to the checksum k bytes later.
constexpr auto kTables = [] {
  std::array<std::array<uint32_t, 256>, 8> t{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t c = i;
    for (int bit = 0; bit < 8; ++bit) c = times_x(c);
    t[0][i] = c;
  }
  for (size_t k = 1; k < 8; ++k) {
    for (size_t i = 0; i < 256; ++i) t[k][i] = (t[k - 1][i] >> 8) ^ t[0][t[k - 1][i] & 255];
  }
  return t;
}();

// Without the initial and final inversion.
uint32_t by_table(uint32_t c, const uint8_t* p, size_t n) {
  const auto& t = kTables;
  if constexpr (std::endian::native == std::endian::little) {
    for (; n >= 8; n -= 8, p += 8) {
      uint32_t low, high;
      std::memcpy(&low, p, 4);
      std::memcpy(&high, p + 4, 4);
      low ^= c;
      c = t[7][low & 255] ^ t[6][low >> 8 & 255] ^ t[5][low >> 16 & 255] ^ t[4][low >> 24] ^
          t[3][high & 255] ^ t[2][high >> 8 & 255] ^ t[1][high >> 16 & 255] ^ t[0][high >> 24];
    }
  }
  for (; n; --n) c = t[0][(c ^ *p++) & 255] ^ (c >> 8);
  return c;
}

uint32_t multiply(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (uint32_t bit = 0x80000000u; bit; bit >>= 1, b = times_x(b)) {
    if (a & bit) product ^= b;
  }
  return product;
}

#if defined(__x86_64__)

// x^n modulo the polynomial, as an operand of carry-less multiplication (whose reflected product is
// shifted by 1).
constexpr int64_t power(int n) {
  uint32_t v = 0x80000000u;
  for (int i = 0; i < n; ++i) v = times_x(v);
  return static_cast<int64_t>(static_cast<uint64_t>(v) << 1);
}

// Factors for the first and the second half of a block that advance it by `bits`.
template <int bits> __attribute__((target("sse2"))) __m128i shift_by() {
  constexpr int64_t first = power(bits + 32), second = power(bits - 32);
  return _mm_set_epi64x(second, first);
}

__attribute__((target("pclmul"))) inline __m128i fold(__m128i block, __m128i k, __m128i next) {
  __m128i a = _mm_clmulepi64_si128(block, k, 0x00), b = _mm_clmulepi64_si128(block, k, 0x11);
  return _mm_xor_si128(_mm_xor_si128(a, b), next);
}

inline __m128i load16(const uint8_t* p) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
}

// Reduces the state of four blocks and the remaining bytes (fewer than a block) to a checksum.
__attribute__((target("pclmul"))) uint32_t finish(const __m128i (&state)[4], const uint8_t* p,
                                                  size_t n) {
  const __m128i k = shift_by<128>();
  __m128i x = fold(state[0], k, state[1]);
  x = fold(x, k, state[2]);
  x = fold(x, k, state[3]);
  for (; n >= 16; n -= 16, p += 16) x = fold(x, k, load16(p));
  uint8_t last[16];
  std::memcpy(last, &x, sizeof last);
  return by_table(by_table(0, last, sizeof last), p, n);
}

// n >= 64.
__attribute__((target("pclmul"))) uint32_t by_pclmul(uint32_t c, const uint8_t* p, size_t n) {
  __m128i x[4];
  for (int i = 0; i < 4; ++i) x[i] = load16(p + 16 * i);
  x[0] = _mm_xor_si128(x[0], _mm_cvtsi32_si128(static_cast<int>(c)));
  const __m128i k = shift_by<512>();
  for (p += 64, n -= 64; n >= 64; p += 64, n -= 64) {
    for (int i = 0; i < 4; ++i) x[i] = fold(x[i], k, load16(p + 16 * i));
  }
  return finish(x, p, n);
}

// The same with four blocks in each register.

template <int bits> __attribute__((target("avx512f,pclmul,vpclmulqdq"))) __m512i wide_shift_by() {
  constexpr int64_t first = power(bits + 32), second = power(bits - 32);
  return _mm512_set_epi64(second, first, second, first, second, first, second, first);
}

__attribute__((target("avx512f,pclmul,vpclmulqdq"))) inline __m512i fold(__m512i block, __m512i k,
                                                                         __m512i next) {
  __m512i a = _mm512_clmulepi64_epi128(block, k, 0x00);
  __m512i b = _mm512_clmulepi64_epi128(block, k, 0x11);
  return _mm512_ternarylogic_epi64(a, b, next, 0x96);  // a ^ b ^ next
}

// n >= 256.
__attribute__((target("avx512f,pclmul,vpclmulqdq"))) uint32_t by_vpclmul(uint32_t c,
                                                                         const uint8_t* p,
                                                                         size_t n) {
  __m512i x[4];
  for (int i = 0; i < 4; ++i) x[i] = _mm512_loadu_si512(p + 64 * i);
  x[0] = _mm512_xor_si512(x[0], _mm512_set_epi64(0, 0, 0, 0, 0, 0, 0, c));
  const __m512i far = wide_shift_by<2048>(), near = wide_shift_by<512>();
  for (p += 256, n -= 256; n >= 256; p += 256, n -= 256) {
    for (int i = 0; i < 4; ++i) x[i] = fold(x[i], far, _mm512_loadu_si512(p + 64 * i));
  }
  __m512i y = fold(x[0], near, x[1]);
  y = fold(y, near, x[2]);
  y = fold(y, near, x[3]);
  for (; n >= 64; n -= 64, p += 64) y = fold(y, near, _mm512_loadu_si512(p));
  __m128i state[4];
  _mm512_storeu_si512(state, y);
  // GCC forgets it here. Registers whose upper halves are in use slow down all SSE code.
  _mm256_zeroupper();
  return finish(state, p, n);
}

#endif

}  // namespace

uint32_t crc32_portable(uint32_t crc, const void* data, size_t size) {
  return ~by_table(~crc, static_cast<const uint8_t*>(data), size);
}

uint32_t crc32(uint32_t crc, const void* data, size_t size) {
#if defined(__x86_64__)
  static const bool wide = __builtin_cpu_supports("avx512f") &&
                           __builtin_cpu_supports("vpclmulqdq") && __builtin_cpu_supports("pclmul");
  static const bool narrow = __builtin_cpu_supports("pclmul");
  const auto* p = static_cast<const uint8_t*>(data);
  if (wide && size >= 256) return ~by_vpclmul(~crc, p, size);
  if (narrow && size >= 64) return ~by_pclmul(~crc, p, size);
#endif
  return crc32_portable(crc, data, size);
}

uint32_t crc32_combine(uint32_t a, uint32_t b, uint64_t size_of_b) {
  uint32_t square = times_x(0x80000000u);                         // x^1
  for (int i = 0; i < 3; ++i) square = multiply(square, square);  // x^8: one byte
  for (; size_of_b; size_of_b >>= 1, square = multiply(square, square)) {
    if (size_of_b & 1) a = multiply(a, square);
  }
  return a ^ b;
}

}  // namespace taeda
