// Order along one dimension: sorting, selecting, searching, and runs of equal neighbours. NaN is
// above all numbers, -0 beside +0. Everything is stable.
#pragma once

#include "base/dims.h"
#include "base/dtype.h"
#include "kernels/kernels.h"

namespace taeda {

// Lines of n elements; line l of x begins where the outer dimensions say, its elements lie `stride`
// apart.
struct SortLines {
  Dims outer, x_strides, out_strides;
  int64_t n, x_stride;
  int64_t k, out_stride;  // results per line
};

struct SortKernels {
  // The k first of each line in ascending (descending) order, with their indices. k = n sorts.
  KernelFn<void(const void* x, void* values, int64_t* indices, const SortLines& l, DType dtype,
                bool descending, bool ordered)>
      sort;

  static const SortKernels cpu;
};

// An element of each line in ascending order: number `rank`; the middle one, or the line's first
// NaN; the middle one of those that are no NaN.
enum class Select : uint8_t { Rank, Median, NanMedian };
struct SelectKernels {
  KernelFn<void(const void* x, void* values, int64_t* indices, const SortLines& l, DType dtype,
                Select what, int64_t rank)>
      select;

  static const SelectKernels cpu;
};

struct SearchKernels {
  // out[i] = how many elements of a line of `sorted` are < (right: <=) values[i]; `order` sorts the
  // line where given.
  KernelFn<void(const void* sorted, const int64_t* order, const void* values, int64_t* out,
                int64_t lines, int64_t line_length, int64_t values_per_line, DType dtype,
                bool right)>
      search;
  // found[i] = whether x[i] is one of the tests. `dtype`: real, of those that kernels compute with,
  // and no half.
  KernelFn<void(const void* x, int64_t n, const void* tests, int64_t count, DType dtype,
                uint8_t* found)>
      find_members;

  static const SearchKernels cpu;
};

}  // namespace taeda
