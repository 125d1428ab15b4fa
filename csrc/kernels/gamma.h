// Gamma, Dirichlet and binomial random numbers, and the derivatives of the first two by their
// parameters. The engine is host memory.
#pragma once

#include "base/random.h"
#include "kernels/kernels.h"

namespace taeda {

template <class T> struct GammaKernels {  // T: float, double
  // out[i]: a gamma deviate of shape alpha[i] and scale 1.
  KernelFn<void(Engine& engine, T* out, const T* alpha, int64_t n)> gamma;
  // Each of `rows` rows of k: a point of the simplex, with concentrations alpha.
  KernelFn<void(Engine& engine, T* out, const T* alpha, int64_t rows, int64_t k)> dirichlet;
  // out[i]: successes in count[i] trials, each with probability p[i].
  KernelFn<void(Engine& engine, T* out, const T* count, const T* p, int64_t n)> binomial;

  // How a gamma deviate x moves with its shape, at a fixed value of the distribution function:
  // -(dF/dalpha) / f at x.
  KernelFn<void(int64_t n, const T* alpha, const T* x, T* out)> gamma_gradient;
  // The same for a component x of a Dirichlet deviate by its concentration alpha, over 1 - x;
  // `total`: the sum of all concentrations.
  KernelFn<void(int64_t n, const T* x, const T* alpha, const T* total, T* out)> dirichlet_gradient;

  static const GammaKernels cpu;
};

}  // namespace taeda
