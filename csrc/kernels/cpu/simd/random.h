// The vector parts of the random fills.
#pragma once

#include <cstdint>

namespace taeda::cpu::simd {

struct RandomKernels {
  // low + range * u for a uniform u in [0, 1): the low 24 bits of one word, or the low 53 of two,
  // rounded once (fma).
  void (*uniform_float)(const uint32_t* bits, float* out, int64_t n, float low, float range);
  void (*uniform_double)(const uint32_t* bits, double* out, int64_t n, double low, double range);
  // Turns blocks of 16 uniforms into normal deviates, in place: elements j and j + 8 make two.
  void (*normal_float)(float* data, int64_t blocks, float mean, float std);
  void (*normal_double)(double* data, int64_t blocks, double mean, double std);
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
