// Gamma, Dirichlet and binomial random numbers, and the derivatives of the first two by their
// parameters. The engine is host memory.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "base/random.h"
#include "base/thread_pool.h"
#include "kernels/deviates.h"
#include "kernels/gamma_gradients.h"
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

namespace plain {

template <class T> void fill_gamma(Engine& engine, T* out, const T* alpha, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const T x = static_cast<T>(gamma_deviate(engine, alpha[i]));
    out[i] = x < std::numeric_limits<T>::min() ? std::numeric_limits<T>::min() : x;
  }
}

template <class T>
void fill_dirichlet(Engine& engine, T* out, const T* alpha, int64_t rows, int64_t k) {
  std::vector<double> draws(static_cast<size_t>(k));
  for (int64_t r = 0; r < rows; ++r) {
    double total = 0;
    for (int64_t i = 0; i < k; ++i) {
      const double x = gamma_deviate(engine, static_cast<double>(alpha[r * k + i]));
      draws[static_cast<size_t>(i)] = std::max(x, std::numeric_limits<double>::min());
      total += draws[static_cast<size_t>(i)];
    }
    for (int64_t i = 0; i < k; ++i) {
      // Strictly between 0 and 1, where the density is finite.
      constexpr T least = std::numeric_limits<T>::min();
      constexpr T most = 1 - std::numeric_limits<T>::epsilon() / 2;
      out[r * k + i] =
          std::clamp(static_cast<T>(draws[static_cast<size_t>(i)] / total), least, most);
    }
  }
}

template <class T>
void fill_binomial(Engine& engine, T* out, const T* count, const T* p, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    out[i] = static_cast<T>(
        binomial_deviate(engine, static_cast<double>(count[i]), static_cast<double>(p[i])));
  }
}

inline constexpr int64_t kGammaGrain = 256;  // at a few microseconds per element

template <class T> void gamma_gradients(int64_t n, const T* alpha, const T* x, T* out) {
  parallel_each(n, kGammaGrain,
                [&](int64_t i) { out[i] = static_cast<T>(gamma::gamma_gradient(alpha[i], x[i])); });
}
template <class T>
void dirichlet_gradients(int64_t n, const T* x, const T* alpha, const T* total, T* out) {
  parallel_each(n, kGammaGrain, [&](int64_t i) {
    out[i] = static_cast<T>(gamma::dirichlet_gradient(x[i], alpha[i], total[i]));
  });
}

}  // namespace plain

template <class T>
const GammaKernels<T> GammaKernels<T>::cpu = {plain::fill_gamma<T>, plain::fill_dirichlet<T>,
                                              plain::fill_binomial<T>, plain::gamma_gradients<T>,
                                              plain::dirichlet_gradients<T>};

}  // namespace taeda
