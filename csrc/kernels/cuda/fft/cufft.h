// Fourier transforms by cuFFT, NVIDIA's package nvidia-cufft.
#pragma once

#include "kernels/fft.h"

namespace taeda::cuda {

// A real signal's transform has the first n / 2 + 1 elements of its last dimension.
enum class FftKind : int64_t { Complex, FromReal, ToReal };

struct Transform {
  FftKind kind;
  bool doubles, forward;
  FftBlock block;  // the sizes of the signals: more than one element, and of real ones in the last
                   // dimension
  const void* in;  // aligned for complex numbers
  void* out;       // may be `in` of complex ones
};

// Not scaled. Transforms to real numbers may change `in`. Without cuFFT it is a MissingKernel.
void transform_by_cufft(const Transform& t);

}  // namespace taeda::cuda
