// The tridiagonal form of a symmetric matrix, on all threads. T: float or double.
#pragma once

#include <atomic>
#include <cstdint>

#include "kernels/cpu/linalg/spin_team.h"

namespace taeda::cpu::lapack {

// Q' a Q = the tridiagonal matrix with the diagonal d (n elements) and e (n - 1) beside it, for the
// lower triangle of a (n x n, by columns), whose numbers can be squared. The reflectors of Q take
// a's place below what is beside the diagonal, as LAPACK's do; tau: n - 1.
// finished: how many columns, and elements of d, e and tau, are as they will be.
template <class T>
void tridiagonal(int64_t n, T* a, T* d, T* e, T* tau, Team& team, std::atomic<int64_t>& finished);

}  // namespace taeda::cpu::lapack
