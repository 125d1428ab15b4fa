// The vector parts of the random fills.
#pragma once

#include <cstdint>

namespace taeda::cpu::simd {

// bits: the engine's raw words, as they are before Engine::temper.
struct RandomKernels {
  // low + range * u for a uniform u in [0, 1): the low 24 bits of one word, or the low 53 of two,
  // rounded once (fma).
  void (*uniform_float)(const uint32_t* bits, float* out, int64_t n, float low, float range);
  void (*uniform_double)(const uint32_t* bits, double* out, int64_t n, double low, double range);
  // out[i] = word i modulo range, which is at most 2^31.
  void (*remainder)(const uint32_t* bits, uint32_t* out, int64_t n, uint32_t range);
  // Natural logarithms of positive numbers, in place; within a few ulp.
  void (*log)(double* x, int64_t n);
  // Turns blocks of 16 uniforms into normal deviates, in place: elements j and j + 8 make two.
  void (*normal_float)(float* data, int64_t blocks, float mean, float std);
  void (*normal_double)(double* data, int64_t blocks, double mean, double std);
  // keep[i] = the low 53 bits of two words are less than limit, which is at most 2^53.
  void (*bernoulli)(const uint32_t* bits, bool* keep, int64_t n, uint64_t limit);
  // y[i] = x[i] * (keep[i] ? scale : 0).
  void (*scale_kept_float)(const float* x, const bool* keep, float scale, float* y, int64_t n);
  void (*scale_kept_double)(const double* x, const bool* keep, double scale, double* y, int64_t n);
  // bernoulli and scale_kept at once.
  void (*dropout_float)(const uint32_t* bits, uint64_t limit, const float* x, float scale,
                        bool* keep, float* y, int64_t n);
};

namespace v2 {
extern const RandomKernels random_kernels;
}
namespace v3 {
extern const RandomKernels random_kernels;
}
namespace v4 {
extern const RandomKernels random_kernels;
}
namespace base {
extern const RandomKernels random_kernels;
}

}  // namespace taeda::cpu::simd
