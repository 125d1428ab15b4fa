// Reflectors 1 - tau v v', and QR factors made of them, by matrix products on all threads. Matrices
// lie by columns, in LAPACK's form. T: float or double.
#pragma once

#include "kernels/cpu/lapack.h"
#include "kernels/cpu/simd/symmetric.h"

namespace taeda::cpu::lapack {

template <class T> const simd::SymmetricLoops<T>& symmetric_loops();

// Makes v, of which the elements from `first` to `last` are given, the v of the reflector that
// takes them to one number, `beside`, and zeros; returns its tau. v[first] becomes 1. v is aligned
// and zero elsewhere up to `end`, as the loops above want it.
template <class T> T reflect(int64_t first, int64_t last, int64_t end, T* v, T& beside);

// From this many reflectors on, the functions below are faster than LAPACK's factors and products.
constexpr int64_t kFactorPanels = 40, kMultiplyPanels = 24;

// R in the upper triangle of a (m x n), reflectors below it; tau: min(m, n).
template <class T> void qr_panels(int64_t m, int64_t n, T* a, T* tau);
// The first n columns of the product of the k reflectors in a (m x n), in their place.
template <class T> void q_panels(int64_t m, int64_t n, int64_t k, T* a, const T* tau);
// c (m x n) = op(Q) c or c op(Q), Q the product of k reflectors, each as long as Q is high.
template <class T>
void multiply_by_q_panels(int64_t m, int64_t n, bool left, bool turned, int64_t k, const T* a,
                          const T* tau, T* c);

}  // namespace taeda::cpu::lapack
