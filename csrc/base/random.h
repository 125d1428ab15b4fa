// The random engine: mt19937 for the CPU, with the seeding and the saved-state layout that
// PyTorch's default generator has; and for devices that compute their numbers from a seed and a
// place, these.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

namespace taeda {

// One stream of random numbers. Not thread-safe: whoever shares an Engine holds a lock around a
// whole fill.
class Engine {
 public:
  static constexpr uint64_t kDefaultSeed = 67280421310721ULL;
  static constexpr size_t kStateBytes = 5056;
  static constexpr int kWords = 624;

  explicit Engine(uint64_t seed = kDefaultSeed) { this->seed(seed); }

  // Restarts the stream. Only the low 32 bits choose it; all 64 are kept for initial_seed().
  void seed(uint64_t seed);
  uint64_t initial_seed() const { return seed_; }

  uint32_t random() {
    if (position_ >= kWords) refill();
    return temper(words_[position_++]);
  }

  uint64_t random64() {
    const uint64_t high = random();
    return (high << 32) | random();
  }

  // `count` successive draws, as random() would return them, but untempered: apply temper() to each
  // word. They are written to `room`, a buffer of raw_room(count) words that is aligned to a cache
  // line.
  uint32_t* raw(uint32_t* room, int64_t count);
  static constexpr int64_t raw_room(int64_t count) { return count + 2 * kWords; }
  static constexpr uint32_t temper(uint32_t y) {
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
  }

  // The place in the stream that a device computes from initial_seed(), in 32-bit numbers. The
  // CPU's draws leave it as it is. Taking numbers takes whole groups of four; the old place is
  // returned.
  uint64_t offset() const { return offset_; }
  void set_offset(uint64_t offset) { offset_ = offset; }
  uint64_t take(uint64_t count) { return std::exchange(offset_, offset_ + (count + 3) / 4 * 4); }

  // A double in [0, 1) with 53 random bits, from two draws.
  double uniform() { return static_cast<double>(random64() & ((1ULL << 53) - 1)) * 0x1p-53; }

  // A standard normal deviate (Box-Muller). They come in pairs: the second one is kept for the next
  // call.
  double normal();
  bool normal_is_kept() const { return next_normal_.has_value(); }
  // The pair of normal deviates computed from two uniform numbers.
  static std::pair<double, double> normals(double u1, double u2);

  // The state as bytes, in the layout of torch.Generator().get_state(). set_state() returns false
  // if the bytes are not such a state.
  void get_state(uint8_t* bytes) const;
  bool set_state(const uint8_t* bytes, size_t count);

 private:
  static constexpr int kFresh = kWords + 1;  // seeded, nothing drawn yet

  void refill();

  uint64_t seed_ = kDefaultSeed;
  uint64_t offset_ = 0;
  std::array<uint32_t, kWords> words_{};
  int position_ = kFresh;
  std::optional<double> next_normal_;
  std::optional<float>
      next_float_normal_;  // never used by a fill; kept so that a state survives a round trip
};

// A seed from the operating system's entropy source.
uint64_t nondeterministic_seed();

}  // namespace taeda
