// Matrices in compressed rows (CSR): the elements of row i are those from start[i] up to
// start[i + 1], each with a column and a value. Bounds are checked here, because the caller's
// tensors may have been changed since they were made. T: float, double, complex of both, int64_t.
#pragma once

#include <cstdint>

namespace taeda::cpu {

struct Rows {
  int64_t rows, columns, count;  // of the matrix; how many elements it has
  const int64_t *start, *column;
};

// y (m.rows x width) = matrix * x (m.columns x width). False where `m` is not valid.
template <class T>
bool sparse_product(const Rows& m, const T* values, const T* x, int64_t width, T* y);

// out[k] = the inner product, without conjugation, of the row of a and the row of b that element k
// lies in by its row and its column. a: m.rows x width, b: m.columns x width.
template <class T> bool sparse_inner(const Rows& m, const T* a, const T* b, int64_t width, T* out);

// Sorts `count` numbers within [0, size) by counting, equal ones in their order: those equal to i
// are at order[start[i]] up to order[start[i + 1]]. False where one is out of bounds.
bool group_rows(int64_t count, const int64_t* index, int64_t size, int64_t* start, int64_t* order);

// row[k] = the row that element k lies in.
bool expand_rows(const Rows& m, int64_t* row);

}  // namespace taeda::cpu
