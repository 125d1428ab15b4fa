// Gamma, Dirichlet and binomial random numbers, and the derivatives of the first two by their
// parameters. T: float or double.
#pragma once

#include <cstdint>

#include "base/random.h"

namespace taeda::cpu {

// out[i]: a gamma deviate of shape alpha[i] and scale 1.
template <class T> void fill_gamma(Engine& engine, T* out, const T* alpha, int64_t n);

// Each of `rows` rows of k: a point of the simplex, with concentrations alpha.
template <class T>
void fill_dirichlet(Engine& engine, T* out, const T* alpha, int64_t rows, int64_t k);

// out[i]: successes in count[i] trials, each with probability p[i].
template <class T>
void fill_binomial(Engine& engine, T* out, const T* count, const T* p, int64_t n);

// How a gamma deviate x moves with its shape, at a fixed value of the distribution function:
// -(dF/dalpha) / f at x.
double gamma_gradient(double alpha, double x);

// The same for x from a beta distribution with parameters alpha and beta, by alpha.
double beta_gradient(double x, double alpha, double beta);

}  // namespace taeda::cpu
