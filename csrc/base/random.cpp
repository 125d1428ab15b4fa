#include "base/random.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <random>

#include "base/cpu_features.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace taeda {
namespace {

constexpr int kShift = 397;
constexpr int kWords = Engine::kWords;
constexpr uint32_t kUpperBit = 0x80000000u, kMatrix = 0x9908b0dfu;

[[gnu::always_inline]] inline uint32_t twist(uint32_t high, uint32_t low) {
  const uint32_t y = (high & kUpperBit) | (low & ~kUpperBit);
  return (y >> 1) ^ (-(low & 1u) & kMatrix);
}

// Generates the n words that follow the kWords before w; n is a multiple of kWords. Writing to a
// linear buffer instead of a ring avoids wrap-around, so the loop vectorises.
[[gnu::always_inline]] inline void follow(uint32_t* w, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i)
    w[i] = w[i + kShift - kWords] ^ twist(w[i - kWords], w[i - kWords + 1]);
}

[[gnu::optimize("O3")]] void follow_anywhere(uint32_t* w, int64_t n) { follow(w, n); }
#if defined(__x86_64__)
[[gnu::optimize("O3"), gnu::target("avx2")]] void follow_v3(uint32_t* w, int64_t n) {
  follow(w, n);
}
// The same for w aligned to a cache line: unaligned operands are assembled from registers that are
// already loaded, which saves most of the loads.
[[gnu::target("avx512f")]] void follow_v4(uint32_t* w, int64_t n) {
  constexpr int near = 240;  // a multiple of the vector length, below kWords - kShift by 13
  static_assert(near - 13 == kWords - kShift && near % 16 == 0 && kWords % 16 == 0);
  constexpr __mmask16 all = 0xffff;  // a full mask: GCC 12 warns about its own header without one
  const __m512i upper = _mm512_set1_epi32(static_cast<int>(kUpperBit));
  const __m512i one = _mm512_set1_epi32(1), matrix = _mm512_set1_epi32(static_cast<int>(kMatrix));
  __m512i a = _mm512_load_si512(w - kWords), b = _mm512_load_si512(w - near);
  for (int64_t i = 0; i < n; i += 16) {
    const __m512i next_a = _mm512_load_si512(w + i - kWords + 16);
    const __m512i next_b = _mm512_load_si512(w + i - near + 16);
    const __m512i low = _mm512_maskz_alignr_epi32(all, next_a, a, 1);
    const __m512i y = _mm512_ternarylogic_epi32(upper, a, low, 0xca);  // upper ? a : low
    const __m512i v = _mm512_xor_si512(_mm512_maskz_alignr_epi32(all, next_b, b, 13),
                                       _mm512_maskz_srli_epi32(all, y, 1));
    const __mmask16 odd = _mm512_test_epi32_mask(low, one);
    _mm512_store_si512(w + i, _mm512_mask_xor_epi32(v, odd, v, matrix));
    a = next_a;
    b = next_b;
  }
}
#endif

void follow_fast(uint32_t* w, int64_t n) {
#if defined(__x86_64__)
  const CpuLevel level = cpu_level();
  (level >= CpuLevel::v4 ? follow_v4 : level >= CpuLevel::v3 ? follow_v3 : follow_anywhere)(w, n);
#else
  follow_anywhere(w, n);
#endif
}

// The saved form: a C struct of the first Lua versions of Torch, with the float cache appended. One
// 64-bit slot a word.
struct SavedState {
  uint64_t seed;
  int32_t left;  // words until the next refill, plus one
  int32_t seeded;
  uint64_t next;
  uint64_t words[Engine::kWords];
  double unused_x;
  double normal;
  double unused_rho;
  int32_t normal_is_valid;
  int32_t padding;
  float float_normal;
  uint8_t float_normal_is_valid;
  uint8_t tail[3];
};
static_assert(sizeof(SavedState) == Engine::kStateBytes);

}  // namespace

void Engine::seed(uint64_t seed) {
  seed_ = seed;
  offset_ = 0;
  words_[0] = static_cast<uint32_t>(seed);
  for (uint32_t i = 1; i < kWords; ++i) {
    const uint32_t previous = words_[i - 1];
    words_[i] = 1812433253u * (previous ^ (previous >> 30)) + i;
  }
  position_ = kFresh;
  next_normal_.reset();
  next_float_normal_.reset();
}

void Engine::refill() {
  alignas(64) uint32_t room[2 * kWords];
  std::memcpy(room, words_.data(), sizeof words_);
  follow_fast(room + kWords, kWords);
  std::memcpy(words_.data(), room + kWords, sizeof words_);
  position_ = 0;
}

uint32_t* Engine::raw(uint32_t* room, int64_t count) {
  const int64_t begin = std::min(position_, kWords), end = begin + count;
  const int64_t more = std::max<int64_t>(0, end - 1) / kWords * kWords;  // words to generate
  std::memcpy(room, words_.data(), sizeof words_);
  if (more > 0) {
    follow_fast(room + kWords, more);
    std::memcpy(words_.data(), room + more, sizeof words_);
  }
  if (count > 0) position_ = static_cast<int>(end - more);
  return room + begin;
}

double Engine::normal() {
  if (next_normal_) {
    const double value = *next_normal_;
    next_normal_.reset();
    return value;
  }
  const double u1 = uniform();
  const double u2 = uniform();
  const auto [first, second] = normals(u1, u2);
  next_normal_ = second;
  return first;
}

std::pair<double, double> Engine::normals(double u1, double u2) {
  const double radius = std::sqrt(-2.0 * std::log1p(-u2));
  const double theta = 2.0 * std::numbers::pi * u1;
  return {radius * std::cos(theta), radius * std::sin(theta)};
}

void Engine::get_state(uint8_t* bytes) const {
  SavedState s{};
  s.seed = seed_;
  s.seeded = 1;
  // After a seed nothing has been generated (next = 0), yet the next draw refills, as it does after
  // the last word.
  s.next = position_ == kFresh ? 0 : static_cast<uint64_t>(position_);
  s.left = position_ == kFresh ? 1 : kWords - position_ + 1;
  for (int i = 0; i < kWords; ++i) s.words[i] = words_[i];
  s.normal = next_normal_.value_or(0.0);
  s.normal_is_valid = next_normal_.has_value();
  s.float_normal = next_float_normal_.value_or(0.0f);
  s.float_normal_is_valid = next_float_normal_.has_value();
  std::memcpy(bytes, &s, sizeof s);
}

bool Engine::set_state(const uint8_t* bytes, size_t count) {
  SavedState s;
  if (count != sizeof s) return false;
  std::memcpy(&s, bytes, sizeof s);
  const bool in_range = s.left > 0 && s.left <= kWords && s.next <= kWords;
  if (s.seeded != 1 || !in_range) return false;
  seed_ = s.seed;
  for (int i = 0; i < kWords; ++i) words_[i] = static_cast<uint32_t>(s.words[i]);
  position_ = s.left > 1 ? kWords - s.left + 1 : (s.next == 0 ? kFresh : kWords);
  next_normal_.reset();
  next_float_normal_.reset();
  if (s.normal_is_valid) next_normal_ = s.normal;
  if (s.float_normal_is_valid) next_float_normal_ = s.float_normal;
  return true;
}

uint64_t nondeterministic_seed() {
  std::random_device device;
  // 53 bits: such a seed is exact as a double too, and stays positive as an int64.
  return ((static_cast<uint64_t>(device()) << 32) | device()) & ((1ULL << 53) - 1);
}

}  // namespace taeda
