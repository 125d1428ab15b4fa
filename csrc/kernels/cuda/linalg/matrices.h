// Batches of matrices that lie in memory column by column, and products of them.
#pragma once

#include "kernels/cuda/common/convert.h"
#include "kernels/cuda/common/index.h"
#include "kernels/cuda/gemm/cublas.h"
#include "kernels/cuda/gemm/gemm.h"
#include "kernels/linalg.h"

namespace taeda::cuda {

// Element (i, j) of matrix b is data[b * step + j * ld + i].
template <class T> struct Columns {
  T* data;
  int64_t ld, step;

  Columns from(int64_t row, int64_t column) const { return {data + column * ld + row, ld, step}; }
  Columns<const T> readable() const { return {data, ld, step}; }
  auto stored() const {
    using S = Stored<std::remove_const_t<T>>;
    using P = std::conditional_t<std::is_const_v<T>, const S, S>;
    return Columns<P>{reinterpret_cast<P*>(data), ld, step};
  }
  __device__ T* matrix(int64_t b) const { return data + b * step; }
};

// c (m x n) = alpha op(a) op(b) + beta c, k columns of op(a). gemm is row-major: it sees the
// transpose of every matrix, and multiplies in reverse order.
template <class T>
void multiply(int64_t batch, int64_t m, int64_t n, int64_t k, T alpha, Columns<const T> a,
              Trans a_trans, Columns<const T> b, Trans b_trans, T beta, Columns<T> c) {
  if (m == 0 || n == 0 || k == 0) return;
  const WithoutTf32 exact;  // factors are as exact as their type, whatever products may be
  gemm_kernels<T>().batched(batch, n, m, k, alpha, {b.data, b.ld, b_trans}, b.step,
                            {a.data, a.ld, a_trans}, a.step, beta, c.data, c.ld, c.step);
}

// The first of two parts.
inline int64_t half_of(int64_t n) { return (n / 2 + 15) / 16 * 16; }

// op(a) x = b or x op(a) = b for a triangle a of n columns: b becomes x, which has as many columns,
// or rows, as there are `sides`.
template <class T>
void solve_triangle(int64_t batch, int64_t n, int64_t sides, TriangularSystem how,
                    Columns<const T> a, Columns<T> b);

template <class T> void write_identity(MatrixBatch s, T* a);
void write_codes(int64_t batch, int32_t code, int32_t* info);

template <class S> __device__ S conjugate(S v) {
  if constexpr (is_complex<S>) return portable::conj(v);
  else return v;
}
template <class S> struct RealPartOfStored {
  using type = S;
};
template <class R> struct RealPartOfStored<Complex<R>> {
  using type = R;
};
template <class S> using RealPartOf = typename RealPartOfStored<S>::type;
template <class S> __device__ RealPartOf<S> real_part(S v) {
  if constexpr (is_complex<S>) return v.re;
  else return v;
}

// The first element of each diagonal that is 0, counted from 1.
template <class S> void find_zeros(int64_t batch, int64_t n, Columns<S> a, int32_t* info) {
  each(batch, [=] __device__(int64_t i) {
    info[i] = 0;
    for (int64_t k = n; k-- > 0;)
      if (a.matrix(i)[k * (a.ld + 1)] == S(0)) info[i] = static_cast<int32_t>(k + 1);
  });
}

// to (columns x rows) = the adjoint of a.
template <class S>
void write_adjoint(int64_t batch, int64_t rows, int64_t columns, const S* a, S* to) {
  const Divisor by_columns(columns), by_rows(rows);
  each(batch * rows * columns, [=] __device__(int64_t i) {
    S* target = to + i;
    const int64_t column = by_columns.divide(i), row = by_rows.divide(i);
    *target = conjugate(a[(i * columns + column) * rows + row]);
  });
}

}  // namespace taeda::cuda
