// Fourier transforms along the middle of (outer, n, inner), contiguous memory; complex numbers are
// pairs of T. Results are multiplied by `scale`. Forwards is exp(-2 pi i jk / n).
#pragma once

#include <cstdint>

#include "kernels/kernels.h"

namespace taeda {

struct FftShape {
  int64_t outer, n, inner;
};

// All of the last dimensions at once: (batch, n[0], ..., n[rank - 1]).
struct FftBlock {
  int rank;  // 1 to 3
  int64_t batch, n[3];
};

template <class T> struct FftKernels {  // T: float, double
  // `out` may be `in`.
  KernelFn<void(const FftShape& s, bool forward, T scale, const T* in, T* out)> complex;
  // From n real numbers to the first n / 2 + 1 complex ones, or to all n.
  KernelFn<void(const FftShape& s, bool half, T scale, const T* in, T* out)> real;
  // From the first n / 2 + 1 complex numbers to n real ones, backwards. The imaginary parts that
  // are zero for a real signal are not read.
  KernelFn<void(const FftShape& s, T scale, const T* in, T* out)> to_real;
  // `complex` along several dimensions, and `real` along the last of them, halved, and `complex`
  // along the others. Null where these are not faster than one after the other.
  KernelFn<void(const FftBlock& b, bool forward, T scale, const T* in, T* out)> complex_block;
  KernelFn<void(const FftBlock& b, T scale, const T* in, T* out)> real_block;

  static const FftKernels cpu;
};

}  // namespace taeda
