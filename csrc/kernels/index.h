// Lists of indices: bounds, offsets, coordinates, and the elements where a mask is true.
#pragma once

#include <optional>

#include "base/dims.h"
#include "base/dtype.h"
#include "kernels/kernels.h"

namespace taeda {

struct IndexKernels {
  // The first of n indices that is outside of [low, high), where low <= 0 <= high.
  KernelFn<std::optional<int64_t>(const int64_t* index, int64_t n, int64_t low, int64_t high)>
      find_outside;
  // out[i] = index[i], or 0 where that is outside; whoever waits for the device next gets an
  // IndexError. Null on a device that rather waits: then find_outside is asked.
  KernelFn<void(const int64_t* index, int64_t n, int64_t low, int64_t high, int64_t* out)>
      keep_inside;
  // out[i] = x[index[i]] for i < n, where negative indices count from `size`. Returns false, with
  // `out` written in part, if one lies outside of it.
  KernelFn<bool(void* out, const void* x, const int64_t* index, int64_t n, int64_t size,
                DType dtype)>
      take_elements;
  // offsets[i] += index[i] * stride, where negative indices count from `size`; with `first`,
  // offsets[i] was nothing before.
  KernelFn<void(const int64_t* index, int64_t n, int64_t size, int64_t stride, bool first,
                int64_t* offsets)>
      add_offsets;
  // out[i * classes + index[i]] = 1
  KernelFn<void(const int64_t* index, int64_t n, int64_t classes, int64_t* out)> mark;
  // index[i], plus `wrap` where it is negative, as rows[i] * size + rest[i]; rows may be null: then
  // it is rest[i]. There are fewer than 2^52 elements.
  KernelFn<void(const int64_t* index, int64_t n, int64_t size, int64_t wrap, int64_t* rows,
                int64_t* rest)>
      split;
  // The same for ascending indices that are not negative, in an array of one dimension or more: the
  // coordinate of indices[i] in dimension d is out[d][i * step]. `sizes`, `out`: host memory.
  KernelFn<void(const int64_t* indices, int64_t n, DimsRef sizes, int64_t* const* out,
                int64_t step)>
      coordinates;
  // All increasing (with `repeated`: not decreasing) sequences of r numbers below n, in order;
  // written to `out`, which holds `count` of them.
  KernelFn<void(int64_t n, int64_t r, bool repeated, int64_t count, int64_t* out)> sequences;
  // `out`: each i < n as often as counts[i] says.
  KernelFn<void(const int64_t* counts, int64_t n, int64_t* out)> repeat;

  // How many elements of a mask, of one byte each, are true.
  KernelFn<int64_t(const uint8_t* mask, int64_t n)> count_true;
  // Their row-major indices, `total` of them as count_true() says.
  KernelFn<void(const uint8_t* mask, int64_t n, int64_t* out, int64_t total)> true_indices;
  // The elements of x where the mask is true; and those of `out` replaced by the elements of
  // `from`, one after another. All contiguous.
  KernelFn<void(const void* x, const uint8_t* mask, int64_t n, void* out, int64_t total,
                DType dtype)>
      take_true;
  KernelFn<void(void* out, const uint8_t* mask, int64_t n, const void* from, int64_t total,
                DType dtype)>
      put_true;

  static const IndexKernels cpu;
};

}  // namespace taeda
