// How a Fourier transform of one length is computed: its passes and their twiddle factors. Plans
// are made once and kept in a small cache.
#pragma once

#include <memory>
#include <vector>

#include "kernels/cpu/fft/simd/fft.h"

namespace taeda::cpu {

template <class T> const simd::FftLoops<T>& fft_loops() {
  return typed<T>(TAEDA_PICK(fft_kernels));
}

// Real and imaginary parts of n numbers each.
template <class T> struct Parts {
  T *re, *im;
  Parts swapped() const { return {im, re}; }
};

template <class T> class FftPlan {
 public:
  explicit FftPlan(int64_t n);

  int64_t size() const { return n_; }
  // Elements of each of the two buffers that run() works in, for one signal.
  int64_t buffer() const { return chirp_ ? chirp_->size() : n_; }
  // Transforms s signals forwards: element j of signal q is at j * s + q of `data`. Returns where
  // the result is: `data` or `other`, both of buffer() * s elements.
  Parts<T> run(int64_t s, Parts<T> data, Parts<T> other) const;
  // For a real signal of 2n elements: exp(-2 pi i k / (2n)), k <= n / 2, cos and then sin.
  const T* half_twiddles() const { return half_twiddles_.data(); }
  size_t bytes() const;

 private:
  void plan_passes();
  void plan_chirp();
  Parts<T> run_passes(int64_t s, Parts<T> data, Parts<T> other) const;
  Parts<T> run_chirp(int64_t s, Parts<T> data, Parts<T> other) const;

  int64_t n_;
  std::vector<simd::FftPass<T>> passes_;
  std::vector<T> numbers_;  // what the passes point to
  std::vector<T> half_twiddles_;
  // Bluestein's algorithm, for lengths with a large prime factor: a convolution with a chirp, by
  // transforms of this longer length.
  std::shared_ptr<const FftPlan> chirp_;
  std::vector<T> chirp_numbers_;  // the chirp (n, cos and then sin), its transform (longer length)
};

// The plan for length n, from the cache or new.
template <class T> std::shared_ptr<const FftPlan<T>> fft_plan(int64_t n);

}  // namespace taeda::cpu
