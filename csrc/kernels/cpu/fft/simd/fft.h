// The inner loops of Fourier transforms. Real and imaginary parts are separate arrays, so that
// every loop is over contiguous numbers, and an inverse transform is a forward one with the two
// swapped. Signals are batch-interleaved: element j of signal q is at j * s + q.
#pragma once

#include <stdint.h>

#include "kernels/cpu/simd/pick.h"

namespace taeda::cpu::simd {

inline constexpr int kLargestRadix = 31;

// One pass of a self-sorting (Stockham) transform: x is seen as (radix, m, s), y as (m, radix, s).
// Column (p, q) of x becomes column (p, q) of y: a transform of length radix, times twiddle
// factors.
template <class T> struct FftPass {
  int radix;
  int64_t m;
  const T* twiddles;  // cos of (radix - 1, m), then sin: exp(-2 pi i k p / (radix m)), k = 1...
  const T* roots;     // for odd radices above 5: cos of 2 pi k / radix, then sin
};

template <class T> struct FftLoops {
  // The columns p0 <= p < p1, q0 <= q < q1.
  void (*pass)(const FftPass<T>& pass, int64_t s, const T* xr, const T* xi, T* yr, T* yi,
               int64_t p0, int64_t p1, int64_t q0, int64_t q1);
  // Deinterleaves complex numbers into their parts; interleaves them, times a factor.
  void (*split)(int64_t n, const T* in, T* re, T* im);
  void (*join)(int64_t n, const T* re, const T* im, T scale, T* out);
  // y = x * w for each of n rows of s elements with one w for each row; y may be x.
  void (*multiply)(int64_t n, int64_t s, const T* wr, const T* wi, const T* xr, const T* xi, T* yr,
                   T* yi);
  // A real signal of length 2h, read as h complex numbers: from their transform z (h rows) to the
  // signal's own (h + 1 rows), and back. w: exp(-2 pi i k / (2h)), k <= h / 2, cos and then sin.
  void (*real_after)(int64_t h, int64_t s, const T* w, const T* zr, const T* zi, T* xr, T* xi);
  void (*real_before)(int64_t h, int64_t s, const T* w, const T* xr, const T* xi, T* zr, T* zi);
};

TAEDA_TABLES(ForFloats<FftLoops>, fft_kernels)

}  // namespace taeda::cpu::simd
