// Singular values by way of a bidiagonal form, most of whose work are our own loops and products,
// on all threads.
#pragma once

#include <cstdint>

namespace taeda::cpu::lapack {

constexpr int64_t kBidiagonal = 3;  // rows and columns at least

// Whether a matrix's numbers are finite and can be squared.
template <class T> bool is_moderate(int64_t count, const T* a);

// The k = min(m, n) singular values of a (m x n), descending, and unless they are null the first k
// left (m x k) and right vectors (k x n), with LAPACK's signs. `a` is lost. Returns LAPACK's info.
// T: float or double.
template <class T> int32_t large_svd(int64_t m, int64_t n, T* a, T* s, T* u, T* vt);

// Of a bidiagonal matrix with the diagonal `values` and `beside` next to it (lapack_bidiagonal_
// divide.cpp): the singular values, descending, and n left and right vectors. Returns false, with
// nothing written, where LAPACK is to do it.
template <class T>
bool divided_svd(bool lower, int64_t n, T* values, const T* beside, T* u, int64_t ldu, T* vt,
                 int64_t ldvt);

}  // namespace taeda::cpu::lapack
