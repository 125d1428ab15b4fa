// Inner loops of reductions, for each instruction set. Only plain memory and plain types here.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/simd/pick.h"
#include "kernels/reduce_op.h"

namespace taeda::cpu::simd {

// Numbered as DType is (bool reads as U8).
enum class Element : int { Bool, U8, I8, I16, I32, I64, F16, BF16, F32, F64 };

// Running mean and sum of squared distances from it.
struct Moments {
  double mean, m2, count;
};
// index < 0: nothing seen yet
template <class V> struct ValueIndex {
  V value;
  int64_t index;
};

// Strides are in elements. Each call adds to accumulators that hold earlier results (or come from
// `init`).
struct ReduceKernel {
  // acc[r] gets the n elements of row r that lie `stride` apart; the first of them counts as
  // element number `first`. Far: memory is beyond the caches.
  void (*rows)(const void* x, int64_t rows, int64_t row_stride, int64_t n, int64_t stride,
               int64_t first, bool far, void* acc);
  // acc[c] gets element c of each of n rows; the columns are contiguous and at most kMaxColumns.
  void (*cols)(const void* x, int64_t n, int64_t stride, int64_t cols, int64_t first, void* acc);
  void (*init)(void* acc, int64_t count);
  void (*combine)(void* acc, const void* other,
                  int64_t count);  // what `other` saw comes after what `acc` saw
  size_t acc_size;
};
// Accumulators: double for sums and products of floats, int64 for those of integers, uint8 for Any
// and All, Moments, the element type for Max and Min (float for the halves), and ValueIndex of that
// for ArgMax and ArgMin.

constexpr int64_t kMaxColumns = 4096;

// The kernel for an element type, or null.
using FindReduce = const ReduceKernel* (*)(ReduceOp op, Element e);
TAEDA_TABLES(FindReduce, find_reduce_sum)
TAEDA_TABLES_UP_TO_V3(FindReduce, find_reduce_order)

// y[c] = x[c] + x[stride + c] + ..., of n rows, in this order, for c < columns.
template <class T>
using RowSums = void (*)(const T* x, int64_t n, int64_t stride, int64_t columns, T* y);
TAEDA_TABLES(ForFloats<RowSums>, row_sums)

}  // namespace taeda::cpu::simd
