// Linear algebra. Matrices are stored by columns, those of a batch one after the other, and results
// overwrite arguments. T: float, double, std::complex<float> or std::complex<double>.
//
// `info` has one element for each matrix: 0, or LAPACK's code of what went wrong. Sizes that
// LAPACK's 32-bit integers cannot hold are an Error on the CPU. There the matrices of a batch are
// shared among the threads. Each is one single-threaded call of OpenBLAS's LAPACK, except where our
// own loops were measured to take at most two thirds of its time (docs/kernels/linalg.md): small
// real matrices of a batch (simd/batched.h), QR (lapack_qr.cpp), and eigenvalues of real matrices
// that fit a near cache (simd/eigen.h). Results are the same for any number of threads.
#pragma once

#include <complex>
#include <cstdint>

#include "base/dtype.h"
#include "kernels/gemm.h"

namespace taeda {

template <class T> struct RealPart {
  using type = T;
};
template <class T> struct RealPart<std::complex<T>> {
  using type = T;
};
template <class T> using RealOf = typename RealPart<T>::type;

struct MatrixBatch {
  int64_t count, rows, cols;
};

// A system op(a) x = b, or x op(a) = b unless `left`, for one triangle of a square matrix a.
struct TriangularSystem {
  bool left, upper, unit;
  Trans trans;
};

// Triangular systems, Cholesky, LU and LDL'. The next factor of a batch is `..._step` elements
// after one, its pivots `pivot_step`.
template <class T> struct SolveKernels {
  // b: first the right sides, then the solutions.
  KernelFn<void(MatrixBatch b_shape, TriangularSystem how, const T* a, int64_t a_step, T* b)>
      triangular;

  // a = L L^H or U^H U; the other triangle becomes zeros.
  KernelFn<void(int64_t batch, int64_t n, bool upper, T* a, int32_t* info)> cholesky;
  // b (n x cols) = the solution of a x = b, given a's factor.
  KernelFn<void(MatrixBatch b_shape, bool upper, const T* factor, int64_t factor_step, T* b)>
      cholesky_solve;
  // The inverse of the matrix whose factor is given.
  KernelFn<void(int64_t batch, int64_t n, bool upper, T* a, int32_t* info)> cholesky_inverse;

  // a = P L U; pivots: min(rows, cols) for each matrix, counted from 1.
  KernelFn<void(MatrixBatch shape, T* a, int32_t* pivots, int32_t* info)> lu_factor;
  KernelFn<void(MatrixBatch b_shape, Trans trans, const T* lu, int64_t lu_step,
                const int32_t* pivots, int64_t pivot_step, T* b)>
      lu_solve;

  // a = L D L^T, or L D L^H where `hermitian`, from its lower triangle; the other one becomes
  // zeros.
  KernelFn<void(int64_t batch, int64_t n, bool hermitian, T* a, int32_t* pivots, int32_t* info)>
      ldl_factor;
  KernelFn<void(MatrixBatch b_shape, bool hermitian, const T* ld, const int32_t* pivots, T* b)>
      ldl_solve;

  static const SolveKernels cpu;
};

template <class T> struct QrKernels {
  // R in the upper triangle, reflectors below it; tau: min(rows, cols) for each matrix.
  KernelFn<void(MatrixBatch shape, T* a, T* tau)> factor;
  // The first `cols` columns of the product of the first k reflectors.
  KernelFn<void(MatrixBatch shape, int64_t k, T* a, const T* tau)> form_q;
  // c = op(Q) c or c op(Q), Q the product of k reflectors, each as long as Q is high.
  KernelFn<void(MatrixBatch c_shape, bool left, Trans trans, int64_t k, const T* a, const T* tau,
                T* c)>
      multiply;

  static const QrKernels cpu;
};

template <class T> struct HermitianKernels {
  // From one triangle: eigenvalues ascending, eigenvectors into `a`.
  KernelFn<void(int64_t batch, int64_t n, bool upper, bool vectors, T* a, RealOf<T>* values,
                int32_t* info)>
      eigh;

  static const HermitianKernels cpu;
};

template <class T> struct EigenKernels {
  using R = RealOf<T>;
  // Of any square matrix; `a` is lost. vectors: nullptr where they are not wanted.
  KernelFn<void(int64_t batch, int64_t n, T* a, std::complex<R>* values, std::complex<R>* vectors,
                int32_t* info)>
      eig;
  // `a` is lost. u and vh may be nullptr (no vectors); with `full` they are square. The vectors
  // have the signs that LAPACK finds, or any where these do not matter, which is faster for small
  // matrices.
  KernelFn<void(MatrixBatch shape, bool full, bool any_signs, T* a, R* s, T* u, T* vh,
                int32_t* info)>
      svd;

  static const EigenKernels cpu;
};

enum class LeastSquares : uint8_t { QR, PivotedQR, DivideAndConquer, SVD };  // gels, -y, -d, -s
template <class T> struct LeastSquaresKernels {
  // `b` (max(rows, cols) x b_cols) holds the right sides, then the solutions in its first rows.
  // rank and s (min(rows, cols) singular values) are written by the methods that find them.
  KernelFn<void(LeastSquares method, MatrixBatch shape, int64_t b_cols, T* a, T* b, double rcond,
                int32_t* rank, RealOf<T>* s, int32_t* info)>
      solve;

  static const LeastSquaresKernels cpu;
};

}  // namespace taeda
