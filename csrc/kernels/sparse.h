// Matrices in compressed rows (CSR): the elements of row i are those from start[i] up to
// start[i + 1], each with a column and a value. Bounds are checked here, because the caller's
// tensors may have been changed since they were made.
#pragma once

#include <cstdint>

#include "kernels/kernels.h"

namespace taeda {

struct CsrRows {
  int64_t rows, columns, count;  // of the matrix; how many elements it has
  const int64_t *start, *column;
};

template <class T> struct SparseKernels {  // T: float, double, complex of both, int64_t
  // y (m.rows x width) = matrix * x (m.columns x width); without values its elements are ones.
  // False where `m` is not valid.
  KernelFn<bool(const CsrRows& m, const T* values, const T* x, int64_t width, T* y)> product;
  // out[k] = the inner product, without conjugation, of the row of a and the row of b that element
  // k lies in by its row and its column. a: m.rows x width, b: m.columns x width.
  KernelFn<bool(const CsrRows& m, const T* a, const T* b, int64_t width, T* out)> inner;

  static const SparseKernels cpu;
};

struct CsrKernels {
  // Sorts `count` numbers within [0, size) by counting, equal ones in their order: those equal to i
  // are at order[start[i]] up to order[start[i + 1]]. False where one is out of bounds.
  KernelFn<bool(int64_t count, const int64_t* index, int64_t size, int64_t* start, int64_t* order)>
      group_rows;
  // row[k] = the row that element k lies in.
  KernelFn<bool(const CsrRows& m, int64_t* row)> expand_rows;

  static const CsrKernels cpu;
};

}  // namespace taeda
