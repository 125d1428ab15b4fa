// Fourier transforms along the middle of (outer, n, inner), contiguous memory. T: float or double;
// complex numbers are pairs of T. Results are multiplied by `scale`. Forwards is exp(-2 pi i jk /
// n).
#pragma once

#include <cstdint>

namespace taeda::cpu {

struct FftShape {
  int64_t outer, n, inner;
};

// `out` may be `in`.
template <class T> void fft_complex(const FftShape& s, bool forward, T scale, const T* in, T* out);
// From n real numbers to the first n / 2 + 1 complex ones, or to all n.
template <class T> void fft_real(const FftShape& s, bool half, T scale, const T* in, T* out);
// From the first n / 2 + 1 complex numbers to n real ones, backwards. The imaginary parts that
// are zero for a real signal are not read.
template <class T> void fft_to_real(const FftShape& s, T scale, const T* in, T* out);

}  // namespace taeda::cpu
