// LAPACK on plain memory. Matrices are stored by columns, those of a batch one after the other, and
// results overwrite arguments. T: float, double, std::complex<float> or std::complex<double>.
//
// `info` has one element for each matrix: 0, or LAPACK's code of what went wrong. Sizes that
// LAPACK's 32-bit integers cannot hold are an Error. The matrices of a batch are shared among the
// threads. Each is one single-threaded call of OpenBLAS's LAPACK, except where our own loops were
// measured to take at most two thirds of its time (docs/kernels/linalg.md): small real matrices of
// a batch (simd/batched.h), QR (lapack_qr.cpp), and eigenvalues of real matrices that fit a near
// cache (simd/eigh.h, simd/eig.h). Results are the same for any number of threads.
#pragma once

#include <complex>
#include <cstdint>

#include "kernels/cpu/gemm/gemm.h"

namespace taeda::cpu::lapack {

template <class T> struct RealOf {
  using type = T;
};
template <class T> struct RealOf<std::complex<T>> {
  using type = T;
};
template <class T> using Real = typename RealOf<T>::type;

struct Shape {
  int64_t batch, rows, cols;
};

// ---- triangular systems, Cholesky, LU and LDL' (lapack_solve.cpp) ----

// Solves op(a) x = b, or x op(a) = b unless `left`, for b (rows x cols); a: the triangle of a
// square matrix, the next one `a_step` elements after it.
struct Triangle {
  bool left, upper, unit;
  Trans trans;
};
template <class T>
void solve_triangular(Shape b_shape, Triangle how, const T* a, int64_t a_step, T* b);

// a = L L^H or U^H U; the other triangle becomes zeros.
template <class T> void cholesky(int64_t batch, int64_t n, bool upper, T* a, int32_t* info);
// b (n x cols) = the solution of a x = b, given a's factor.
template <class T>
void cholesky_solve(Shape b_shape, bool upper, const T* factor, int64_t factor_step, T* b);
// The inverse of the matrix whose factor is given.
template <class T> void cholesky_inverse(int64_t batch, int64_t n, bool upper, T* a, int32_t* info);

// a = P L U; pivots: min(rows, cols) for each matrix, counted from 1.
template <class T> void lu_factor(Shape shape, T* a, int32_t* pivots, int32_t* info);
template <class T>
void lu_solve(Shape b_shape, Trans trans, const T* lu, int64_t lu_step, const int32_t* pivots,
              int64_t pivot_step, T* b);

// a = L D L^T, or L D L^H where `hermitian`, from its lower triangle; the other one becomes zeros.
template <class T>
void ldl_factor(int64_t batch, int64_t n, bool hermitian, T* a, int32_t* pivots, int32_t* info);
template <class T>
void ldl_solve(Shape b_shape, bool hermitian, const T* ld, const int32_t* pivots, T* b);

// ---- QR (lapack_qr.cpp) ----

// R in the upper triangle, reflectors below it; tau: min(rows, cols) for each matrix.
template <class T> void qr_factor(Shape shape, T* a, T* tau);
// The first `cols` columns of the product of the first k reflectors.
template <class T> void reflectors_to_q(Shape shape, int64_t k, T* a, const T* tau);
// c = op(Q) c or c op(Q), Q the product of k reflectors, each as long as Q is high.
template <class T>
void multiply_by_q(Shape c_shape, bool left, Trans trans, int64_t k, const T* a, const T* tau,
                   T* c);

// ---- eigenvalues and singular values (lapack_eigh.cpp, lapack_eig.cpp), least squares ----

// Of a Hermitian matrix, from one triangle: eigenvalues ascending, eigenvectors into `a`.
template <class T>
void eigh(int64_t batch, int64_t n, bool upper, bool vectors, T* a, Real<T>* values, int32_t* info);
// Of any square matrix; `a` is lost. vectors: nullptr where they are not wanted.
template <class T>
void eig(int64_t batch, int64_t n, T* a, std::complex<Real<T>>* values,
         std::complex<Real<T>>* vectors, int32_t* info);
// `a` is lost. u and vh may be nullptr (no vectors); with `full` they are square. The vectors have
// the signs that LAPACK finds, or any where these do not matter, which is faster for small
// matrices.
template <class T>
void svd(Shape shape, bool full, bool any_signs, T* a, Real<T>* s, T* u, T* vh, int32_t* info);

enum class LeastSquares : uint8_t { QR, PivotedQR, DivideAndConquer, SVD };  // gels, -y, -d, -s
// `b` (max(rows, cols) x b_cols) holds the right sides, then the solutions in its first rows. rank
// and s (min(rows, cols) singular values) are written by the methods that find them.
template <class T>
void least_squares(LeastSquares method, Shape shape, int64_t b_cols, T* a, T* b, double rcond,
                   int32_t* rank, Real<T>* s, int32_t* info);

}  // namespace taeda::cpu::lapack
