#include "base/random.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <random>

#include "base/cpu_features.h"

namespace taeda {
namespace {

constexpr int kShift = 397;
constexpr int kWords = Engine::kWords;
constexpr uint32_t kUpperBit = 0x80000000u;

[[gnu::always_inline]] inline uint32_t twist(uint32_t high, uint32_t low) {
  const uint32_t y = (high & kUpperBit) | (low & ~kUpperBit);
  return (y >> 1) ^ (-(low & 1u) & 0x9908b0dfu);
}

// The next kWords words in place of the last ones: three loops without a wrap-around index, so that
// the first two vectorise.
[[gnu::always_inline]] inline void next_words(uint32_t* w) {
  for (int i = 0; i < kWords - kShift; ++i) w[i] = w[i + kShift] ^ twist(w[i], w[i + 1]);
  for (int i = kWords - kShift; i < kWords - 1; ++i)
    w[i] = w[i + kShift - kWords] ^ twist(w[i], w[i + 1]);
  w[kWords - 1] = w[kShift - 1] ^ twist(w[kWords - 1], w[0]);
}

[[gnu::optimize("O3")]] void next_words_anywhere(uint32_t* w) { next_words(w); }
#if defined(__x86_64__)
[[gnu::optimize("O3"), gnu::target("avx2")]] void next_words_v3(uint32_t* w) { next_words(w); }
[[gnu::optimize("O3"), gnu::target("avx512f,prefer-vector-width=512")]] void next_words_v4(
    uint32_t* w) {
  next_words(w);
}
#endif

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
#if defined(__x86_64__)
  const CpuLevel level = cpu_level();
  (level >= CpuLevel::v4   ? next_words_v4
   : level >= CpuLevel::v3 ? next_words_v3
                           : next_words_anywhere)(words_.data());
#else
  next_words_anywhere(words_.data());
#endif
  position_ = 0;
}

void Engine::raw(uint32_t* out, int64_t count) {
  while (count > 0) {
    if (position_ >= kWords) refill();
    const int64_t n = std::min<int64_t>(count, kWords - position_);
    std::memcpy(out, words_.data() + position_, static_cast<size_t>(n) * sizeof *out);
    position_ += static_cast<int>(n);
    out += n;
    count -= n;
  }
}

double Engine::normal() {
  if (next_normal_) {
    const double value = *next_normal_;
    next_normal_.reset();
    return value;
  }
  const double u1 = uniform();
  const double u2 = uniform();
  const double radius = std::sqrt(-2.0 * std::log1p(-u2));
  const double theta = 2.0 * std::numbers::pi * u1;
  next_normal_ = radius * std::sin(theta);
  return radius * std::cos(theta);
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
