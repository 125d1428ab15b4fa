// Fills of contiguous memory with random numbers, drawn in memory order from one Engine, which is
// host memory.
//
// For one seed the CPU gives the numbers that PyTorch's CPU generator gives, bit for bit, and CUDA
// those of PyTorch's CUDA generator; docs/random-streams.md has the rules.
#pragma once

#include <optional>
#include <utility>

#include "base/random.h"
#include "kernels/kernels.h"

namespace taeda {

template <class T> struct RandomKernels {  // T: any real dtype
  KernelFn<void(Engine& engine, T* out, int64_t n, double p)> geometric;
  // 1 with probability p, else 0; or with one probability for each element.
  KernelFn<void(Engine& engine, T* out, int64_t n, double p)> bernoulli;
  KernelFn<void(Engine& engine, T* out, const float* p, int64_t n)> bernoulli_each;
  KernelFn<void(Engine& engine, T* out, const double* p, int64_t n)> bernoulli_each_double;
  // base + (a draw modulo range); range = 0 stands for 2^64.
  KernelFn<void(Engine& engine, T* out, int64_t n, uint64_t range, int64_t base)> range;
  // All that random_() without bounds gives: 0 .. the largest value (or integer held exactly).
  KernelFn<void(Engine& engine, T* out, int64_t n)> random;

  static const RandomKernels cpu;
};

template <class T> struct ContinuousKernels {  // T: float, double, Half, BFloat16
  // On [from, to).
  KernelFn<void(Engine& engine, T* out, int64_t n, double from, double to)> uniform;
  // In blocks of 16 from 16 elements on; call it once for a whole tensor.
  KernelFn<void(Engine& engine, T* out, int64_t n, double mean, double std)> normal;
  // The same distribution, but one by one whatever n is: what a tensor that is not contiguous gets.
  KernelFn<void(Engine& engine, T* out, int64_t n, double mean, double std)> normal_serial;
  KernelFn<void(Engine& engine, T* out, int64_t n, double rate)> exponential;
  KernelFn<void(Engine& engine, T* out, int64_t n, double median, double sigma)> cauchy;
  KernelFn<void(Engine& engine, T* out, int64_t n, double mean, double std)> log_normal;

  static const ContinuousKernels cpu;
};

template <class T> struct SampleKernels {  // T: float, double
  // The first of n numbers that is not in [0, 1].
  KernelFn<std::optional<T>(const T* p, int64_t n)> find_improbable;
  // Poisson counts with the given rates. Returns false, with nothing drawn, if one is negative.
  KernelFn<bool(Engine& engine, T* out, const T* rates, int64_t n)> poisson;
  // Whether all weights are finite and not negative, and whether each row (n) has a positive one.
  KernelFn<std::pair<bool, bool>(const T* weights, int64_t rows, int64_t n)> look_at_weights;
  // `samples` indices per row of `weights` (rows x categories), with replacement.
  KernelFn<void(Engine& engine, int64_t* out, const T* weights, int64_t rows, int64_t categories,
                int64_t samples)>
      multinomial;

  static const SampleKernels cpu;
};

// T: float, double, Half, BFloat16. Where one of them is null, the op draws a mask by
// RandomKernels, and scales in float.
template <class T> struct DropoutKernels {
  // keep: ones with probability p; y = x * (keep ? scale : 0), while they are drawn.
  KernelFn<void(Engine& engine, int64_t n, double p, const T* x, double scale, bool* keep, T* y)>
      dropout;
  // y = x * (keep ? scale : 0).
  KernelFn<void(int64_t n, const T* x, const bool* keep, double scale, T* y)> scale_kept;

  static const DropoutKernels cpu;
};

struct DrawKernels {
  // A random order of 0 .. n-1.
  KernelFn<void(Engine& engine, int64_t* out, int64_t n)> permutation;

  static const DrawKernels cpu;
};

}  // namespace taeda
