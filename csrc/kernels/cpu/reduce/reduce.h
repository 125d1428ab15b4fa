// Reductions over any set of dimensions of a strided array.
//
// The plan sorts and joins dimensions, then reads memory in the better of two ways: along rows,
// where a reduced dimension is contiguous, or over blocks of columns, where a kept one is. Work is
// cut by size alone, partial results are combined in order: the same bits for any number of
// threads.
#pragma once

#include "base/dims.h"
#include "base/dtype.h"
#include "kernels/cpu/reduce/simd/reduce.h"

namespace taeda::cpu {

using simd::Moments;
using simd::ReduceOp;
using simd::ValueIndex;

// Receives finished accumulators: `count` of them, for the elements first, first + stride, ... of
// the result, which is contiguous in the kept dimensions.
struct ReduceFinish {
  void (*call)(void* context, const void* acc, int64_t count, int64_t first, int64_t stride);
  void* context;
};

bool has_reduction(ReduceOp op, DType dtype);
void reduce(ReduceOp op, DType dtype, const void* x, DimsRef sizes, DimsRef strides,
            uint64_t reduced, ReduceFinish finish);

// f(const A* acc, int64_t count, int64_t first, int64_t stride)
template <class A, class F>
void reduce(ReduceOp op, DType dtype, const void* x, DimsRef sizes, DimsRef strides,
            uint64_t reduced, F&& f) {
  auto call = [](void* context, const void* acc, int64_t count, int64_t first, int64_t stride) {
    (*static_cast<std::remove_reference_t<F>*>(context))(static_cast<const A*>(acc), count, first,
                                                         stride);
  };
  reduce(op, dtype, x, sizes, strides, reduced, ReduceFinish{call, &f});
}

// y (before, columns) from x (before, n, columns): sums over few rows, which lie `stride` apart,
// added one after the other. T: float or double.
template <class T>
void sum_few_rows(int64_t before, int64_t n, int64_t stride, int64_t columns, const T* x, T* y);

// Whether all n elements of two contiguous arrays are equal, as == has it. `dtype`: real, of those
// that kernels compute with.
bool all_equal(const void* a, const void* b, int64_t n, DType dtype);

}  // namespace taeda::cpu
