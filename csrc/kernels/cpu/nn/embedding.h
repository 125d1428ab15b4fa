// Sums of rows by index, and the gradient of the table that they come from. T: float or double.
#pragma once

#include <cstdint>

namespace taeda::cpu {

template <class T> struct Embedding {
  // Row i of out (bags x width) is the sum of the `size` rows of the table at index[i * size] and
  // after.
  static void sum_rows(int64_t bags, int64_t size, int64_t width, const T* table,
                       const int64_t* index, T* out);

  // out (rows x width) = 0, then out[index[i]] += g[i] for each of the `count` rows of g whose
  // index is not `skip`. Every index lies in [0, rows). Rows are added in the order in which they
  // come, whatever the number of threads.
  static void add_rows(int64_t count, int64_t rows, int64_t width, const T* g, const int64_t* index,
                       int64_t skip, T* out);

  // Scales the rows at `index` of a table (rows, width) whose p-norm is above `most` down to it.
  static void shorten_rows(int64_t count, int64_t rows, int64_t width, const int64_t* index,
                           double most, double p, T* table);
};

}  // namespace taeda::cpu
