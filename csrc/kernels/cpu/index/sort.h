// Sorting and selecting along one dimension. Elements become unsigned keys in the same order (NaN
// above all numbers, -0 beside +0), so that one integer sort serves every type. Everything is
// stable.
#pragma once

#include "base/dims.h"
#include "base/dtype.h"

namespace taeda::cpu {

// Lines of n elements; line l of x begins where the outer dimensions say, its elements lie `stride`
// apart.
struct SortLines {
  Dims outer, x_strides, out_strides;
  int64_t n, x_stride;
  int64_t k, out_stride;  // results per line
};

// The k first of each line in ascending (descending) order, with their indices. k = n sorts.
void sort_lines(const void* x, void* values, int64_t* indices, const SortLines& l, DType dtype,
                bool descending, bool ordered);
// Element number `rank` of each line in ascending order. With `nan_first`, a NaN of a line is its
// result. With `skip_nan`, the middle one of those that are no NaN.
enum class Select { Rank, Median, NanMedian };
void select_lines(const void* x, void* values, int64_t* indices, const SortLines& l, DType dtype,
                  Select what, int64_t rank);

// out[i] = how many elements of a line of `sorted` are < (right: <=) values[i]; `order` sorts the
// line where given.
void search_sorted(const void* sorted, const int64_t* order, const void* values, int64_t* out,
                   int64_t lines, int64_t line_length, int64_t values_per_line, DType dtype,
                   bool right);

// found[i] = whether x[i] is one of the tests. `dtype`: real, of those that kernels compute with,
// and no half.
void find_members(const void* x, int64_t n, const void* tests, int64_t count, DType dtype,
                  uint8_t* found);

}  // namespace taeda::cpu
