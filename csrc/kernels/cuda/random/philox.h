// Random numbers by Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as
// 1, 2, 3, SC 2011), and what becomes of a round's four words. docs/random-streams.md has the
// rules.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/cuda/launch.h"

namespace taeda::cuda {

struct Words {
  uint32_t v[4];
};

// Where a kernel's draws begin, in the stream of a seed.
struct Place {
  uint64_t seed, offset;  // counted in words, a multiple of 4
  // In a graph, null elsewhere: seed and offset in the device's memory; `offset` comes on top.
  const uint64_t* replayed = nullptr;
};

// A thread's own stream: each thread of a kernel has another subsequence.
class Philox {
 public:
  __device__ Philox(Place place, uint64_t subsequence)
      : seed_(place.replayed ? place.replayed[0] : place.seed),
        counter_((place.offset + (place.replayed ? place.replayed[1] : 0)) / 4),
        subsequence_(subsequence) {}

  __device__ Words next() {
    constexpr uint32_t weyl[2] = {0x9e3779b9, 0xbb67ae85};
    uint32_t key[2] = {low(seed_), high(seed_)};
    Words w{low(counter_), high(counter_), low(subsequence_), high(subsequence_)};
    ++counter_;
#pragma unroll
    for (int round = 0; round < 10; ++round) {
      w = mix(w, key);
      key[0] += weyl[0];
      key[1] += weyl[1];
    }
    return w;
  }

 private:
  __device__ static uint32_t low(uint64_t x) { return static_cast<uint32_t>(x); }
  __device__ static uint32_t high(uint64_t x) { return static_cast<uint32_t>(x >> 32); }
  __device__ static Words mix(const Words& w, const uint32_t (&key)[2]) {
    const uint64_t a = uint64_t{0xd2511f53} * w.v[0], b = uint64_t{0xcd9e8d57} * w.v[2];
    return {high(b) ^ w.v[1] ^ key[0], low(b), high(a) ^ w.v[3] ^ key[1], low(a)};
  }

  uint64_t seed_, counter_, subsequence_;
};

// ---- what a round gives: `count` numbers v ----

__device__ inline float in_unit(uint32_t word) {  // in (0, 1]
  return static_cast<float>(word) * 0x1p-32f + 0x1p-33f;
}
__device__ inline double in_unit(uint32_t a, uint32_t b) {
  return static_cast<double>(a ^ uint64_t{b} << 21) * 0x1p-53 + 0x1p-54;
}

template <class T> struct Uniform;
template <> struct Uniform<float> {
  static constexpr int count = 4;
  float v[count];
  __device__ explicit Uniform(const Words& w) {
#pragma unroll
    for (int i = 0; i < 4; ++i) v[i] = in_unit(w.v[i]);
  }
};
template <> struct Uniform<double> {
  static constexpr int count = 2;
  double v[count];
  __device__ explicit Uniform(const Words& w)
      : v{in_unit(w.v[0], w.v[1]), in_unit(w.v[2], w.v[3])} {}
};

// Standard normal numbers, in pairs (Box, Muller 1958).
template <class T> struct Normal;
template <> struct Normal<float> {
  static constexpr int count = 4;
  float v[count];
  __device__ explicit Normal(const Words& w) {
    constexpr float turn = 0x1p-32f * 6.2831855f;
#pragma unroll
    for (int i = 0; i < 4; i += 2) {
      const float radius = std::sqrt(-2.0f * std::log(in_unit(w.v[i])));
      const float angle = std::fma(static_cast<float>(w.v[i + 1]), turn, turn / 2);
      float sine, cosine;
      __sincosf(angle, &sine, &cosine);
      v[i] = radius * sine;
      v[i + 1] = radius * cosine;
    }
  }
};
template <> struct Normal<double> {
  static constexpr int count = 2;
  double v[count];
  __device__ explicit Normal(const Words& w) {
    const double radius = std::sqrt(-2.0 * std::log(in_unit(w.v[0], w.v[1])));
    double sine, cosine;
    sincospi(2 * in_unit(w.v[2], w.v[3]), &sine, &cosine);
    v[0] = radius * sine;
    v[1] = radius * cosine;
  }
};

struct Words32 {
  static constexpr int count = 4;
  uint32_t v[count];
  __device__ explicit Words32(const Words& w) : v{w.v[0], w.v[1], w.v[2], w.v[3]} {}
};
struct Words64 {
  static constexpr int count = 2;
  uint64_t v[count];
  __device__ explicit Words64(const Words& w)
      : v{uint64_t{w.v[0]} << 32 | w.v[1], uint64_t{w.v[2]} << 32 | w.v[3]} {}
};

}  // namespace taeda::cuda
