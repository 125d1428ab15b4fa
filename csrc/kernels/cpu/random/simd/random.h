// The vector parts of the random fills.
#pragma once

#include <cstdint>

#include "kernels/cpu/simd/pick.h"

namespace taeda::cpu::simd {

// bits: the engine's raw words, as they are before Engine::temper.
template <class T> struct FloatRandomKernels {
  // low + range * u for a uniform u in [0, 1): the low 24 bits of one word for float, or the low 53
  // of two for double, rounded once (fma).
  void (*uniform)(const uint32_t* bits, T* out, int64_t n, T low, T range);
  // Turns blocks of 16 uniforms into normal deviates, in place: elements j and j + 8 make two.
  void (*normal)(T* data, int64_t blocks, T mean, T std);
  // y[i] = x[i] * (keep[i] ? scale : 0).
  void (*scale_kept)(const T* x, const bool* keep, T scale, T* y, int64_t n);
};
struct RandomKernels {
  FloatRandomKernels<float> f32;
  FloatRandomKernels<double> f64;
  // out[i] = word i modulo range, which is at most 2^31.
  void (*remainder)(const uint32_t* bits, uint32_t* out, int64_t n, uint32_t range);
  // Natural logarithms of positive numbers, in place; within a few ulp.
  void (*log)(double* x, int64_t n);
  // keep[i] = the low 53 bits of two words are less than limit, which is at most 2^53.
  void (*bernoulli)(const uint32_t* bits, bool* keep, int64_t n, uint64_t limit);
  // bernoulli and scale_kept at once.
  void (*dropout_float)(const uint32_t* bits, uint64_t limit, const float* x, float scale,
                        bool* keep, float* y, int64_t n);
};

TAEDA_TABLES(RandomKernels, random_kernels)

}  // namespace taeda::cpu::simd
