// Reading and writing by index.
#pragma once

#include "base/dims.h"
#include "base/dtype.h"

namespace taeda::cpu {

// A strided array seen as (outer..., count, run), of which the middle dimension is read at
// `offsets`, beside a flat one of the same shape. Strides are in elements.
struct IndexLayout {
  Dims outer, outer_strides, outer_flat;  // sizes; strides in the indexed and in the flat array
  const int64_t* offsets = nullptr;       // in the indexed array; none is negative
  int64_t count = 0;                      // how many
  int64_t count_flat = 0;                 // the middle dimension's stride in the flat array
  int64_t run = 1, run_stride = 1, run_flat = 1;
};

// flat[...] = indexed[...]
void index_read(void* flat, const void* indexed, const IndexLayout& l, DType dtype);
// Row i of out is row index[i] of the table; rows have `row_bytes` > 0 bytes.
void take_rows(int64_t count, int64_t row_bytes, const void* table, const int64_t* index,
               void* out);
// out[i] = x[index[i]] for i < n, where negative indices count from `size`. Returns false, with
// `out` written in part, if one lies outside of it.
bool take_elements(void* out, const void* x, const int64_t* index, int64_t n, int64_t size,
                   DType dtype);
// indexed[...] = flat[...] in order: of several writes to one element the last one stays
void index_write(void* indexed, const void* flat, const IndexLayout& l, DType dtype);
// indexed[...] += flat[...], in order
void index_accumulate(void* indexed, const void* flat, const IndexLayout& l, DType dtype);

// Whether any index lies outside of [low, high); low <= 0 <= high.
bool any_outside(const int64_t* index, int64_t n, int64_t low, int64_t high);
// The first i < n with index[i] outside of [low, high), or -1; low <= 0 <= high.
int64_t first_outside(const int64_t* index, int64_t n, int64_t low, int64_t high);
// offsets[i] += index[i] * stride, where negative indices count from `size`; with `first`,
// offsets[i] was nothing before.
void add_offsets(const int64_t* index, int64_t n, int64_t size, int64_t stride, bool first,
                 int64_t* offsets);

// Row-major indices of the elements of a contiguous array that are not zero, `total` of them as
// count_true() says. `mask` holds one byte for each.
int64_t count_true(const uint8_t* mask, int64_t n);
void true_indices(const uint8_t* mask, int64_t n, int64_t* out, int64_t total);
// The elements of x where the mask is true, as many as there are; and those of `out` replaced by
// the elements of `from`, one after another. All contiguous.
void take_true(const void* x, const uint8_t* mask, int64_t n, void* out, int64_t total,
               DType dtype);
void put_true(void* out, const uint8_t* mask, int64_t n, const void* from, int64_t total,
              DType dtype);
// Ascending indices as coordinates in an array of these sizes, one or more: that of indices[i] in
// dimension d is out[d][i * step].
void index_coordinates(const int64_t* indices, int64_t n, DimsRef sizes, int64_t* const* out,
                       int64_t step);

}  // namespace taeda::cpu
